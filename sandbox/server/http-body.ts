/** Reads a small request body completely. */
import type { IncomingMessage } from 'node:http';
import { AwsError } from '../aws-error.ts';

export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) throw new AwsError('RequestEntityTooLarge', 'The request body is too large', 413);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

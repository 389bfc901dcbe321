/** Reads a small request body completely. */
import type { IncomingMessage } from 'node:http';
import { AwsError } from './aws-error.ts';

export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  tooLarge = new AwsError('RequestEntityTooLarge', 'The request body is too large', 413),
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) throw tooLarge;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

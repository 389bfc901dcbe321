/**
 * Decodes the aws-chunked framing of a body: `size[;chunk-signature=…]` lines, data, a last chunk of size 0 and
 * trailers. Signatures are not checked, as everywhere in the sandbox.
 */
import { AwsError } from '../aws-error.ts';

const MAX_LINE_BYTES = 16_384;

/** Yields the data; fills `trailers` (lower-case names) before the last yield ends. */
export async function* decodeAwsChunked(
  body: AsyncIterable<Buffer>,
  trailers: Map<string, string>,
): AsyncGenerator<Buffer> {
  let buffer: Buffer = Buffer.alloc(0);
  let left = 0;
  let phase = 'size' as 'size' | 'data' | 'data-end' | 'trailer';
  for await (const piece of body) {
    buffer = buffer.length === 0 ? piece : Buffer.concat([buffer, piece]);
    for (;;) {
      if (phase === 'data') {
        if (buffer.length === 0) break;
        const data = buffer.subarray(0, left);
        buffer = buffer.subarray(data.length);
        left -= data.length;
        yield data;
        if (left === 0) phase = 'data-end';
        continue;
      }
      const end = buffer.indexOf('\r\n');
      if (end < 0) {
        if (buffer.length > MAX_LINE_BYTES) throw malformed();
        break;
      }
      const line = buffer.toString('utf8', 0, end);
      buffer = buffer.subarray(end + 2);
      if (phase === 'data-end') {
        if (line !== '') throw malformed();
        phase = 'size';
      } else if (phase === 'size') {
        const size = /^([0-9a-fA-F]{1,8})(?:;.*)?$/.exec(line)?.[1];
        if (size === undefined) throw malformed();
        left = Number.parseInt(size, 16);
        phase = left === 0 ? 'trailer' : 'data';
      } else if (line !== '') {
        const colon = line.indexOf(':');
        if (colon < 1) throw malformed();
        trailers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
      }
    }
  }
  if (phase !== 'trailer') throw new AwsError('IncompleteBody', 'The request body terminated unexpectedly');
}

function malformed(): AwsError {
  return new AwsError('InvalidRequest', 'The body is not in the aws-chunked form its headers announce.');
}

/** The lines of a gzipped text that another machine wrote, in bounded memory. */
import { createGunzip, gunzipSync } from 'node:zlib';

const NEWLINE = 0x0a;
/** A text up to this size is unpacked at once, which is quicker; a larger one as a stream, in chunks. */
const WHOLE_BYTES = 12_000_000;
const CHUNK_BYTES = 256 * 1_024;
/** Minimum that zlib accepts. */
const MIN_CHUNK_BYTES = 64;

/**
 * The non-empty lines in order, without their newline, in runs that are read at once: waiting for each line would take
 * longer than to unpack it. A run must be read to its end before the next. Throws an Error of one sentence for a longer
 * line or text, and zlib's for what is not gzip.
 *
 * @param most bytes of one line, and of all together
 */
export async function* gzipLines(
  packed: Uint8Array,
  most: { line: number; text: number },
): AsyncGenerator<Iterable<Buffer>> {
  const tooLong = (): Error => new Error(`it has a line of more than ${most.line} bytes`);
  /** The beginning of a line whose end is still packed. */
  let begun: Buffer[] = [];
  let [begunBytes, bytes] = [0, 0];
  function* linesIn(chunk: Buffer): Generator<Buffer> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const rest = chunk.subarray(start, end);
      start = end + 1;
      if (begunBytes + rest.length > most.line) throw tooLong();
      const line = begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
      begun = [];
      begunBytes = 0;
      if (line.length > 0) yield line;
    }
    if (start < chunk.length) begun.push(chunk.subarray(start));
    begunBytes += chunk.length - start;
    if (begunBytes > most.line) throw tooLong();
  }
  for await (const chunk of unpack(packed)) {
    bytes += chunk.length;
    if (bytes > most.text) throw new Error(`it unpacks to more than ${most.text} bytes`);
    yield linesIn(chunk);
  }
  const [only, ...more] = begun;
  if (only !== undefined) yield [more.length === 0 ? only : Buffer.concat(begun)];
}

function unpack(packed: Uint8Array): Iterable<Buffer> | AsyncIterable<Buffer> {
  try {
    return [gunzipSync(packed, { maxOutputLength: WHOLE_BYTES, chunkSize: chunkSizeOf(packed) })];
  } catch (error) {
    // Of another type where it is not gzip.
    if (!(error instanceof RangeError)) throw error;
    const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
    gunzip.end(packed);
    return gunzip;
  }
}

/** One piece for all of the text, to save copying: gzip ends with the size of its content, modulo 2^32 (RFC 1952). */
function chunkSizeOf(packed: Uint8Array): number {
  if (packed.length < 4) return MIN_CHUNK_BYTES;
  const size = Buffer.from(packed.buffer, packed.byteOffset, packed.length).readUInt32LE(packed.length - 4);
  // One more than the text: a full piece would be followed by an empty one. The trailer may claim anything.
  return Math.min(Math.max(size + 1, MIN_CHUNK_BYTES), WHOLE_BYTES + 1);
}

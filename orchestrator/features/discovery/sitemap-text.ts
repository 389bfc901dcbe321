/** The way from the bytes of a sitemap to its text, piece by piece: gzip, encoding, and the limits on its size. */
import { decoded } from '../../../shared/adapters/http/content-decoder.ts';
import { describeError } from '../../../shared/domain/errors.ts';

/** Why the rest of a file is not read; what came before is right. */
export class CutShort extends Error {
  override name = 'CutShort';
}

/** The XML declaration must be within these. */
const HEAD_BYTES = 256;
/** The size of a piece, so that the parser never has much in hand, whatever the source sends at once. */
const PIECE_BYTES = 16_384;

/**
 * The text of a file that may be compressed with gzip. Throws CutShort at `maxBytes`, compressed or decoded, and at the
 * first fault of the compression; errors of the source go through as they are.
 */
export async function* sitemapText(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const bytes = limited(decompressed(limited(chunks, maxBytes)), maxBytes);
  let decoder: InstanceType<typeof TextDecoder> | null = null;
  for await (const chunk of withHead(bytes, HEAD_BYTES)) {
    decoder ??= new TextDecoder(encodingOf(chunk));
    for (let start = 0; start < chunk.length; start += PIECE_BYTES)
      yield decoder.decode(chunk.subarray(start, start + PIECE_BYTES), { stream: true });
  }
  if (decoder) yield decoder.decode();
}

async function* limited(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let left = maxBytes;
  for await (const chunk of chunks) {
    if (chunk.length > left) {
      if (left > 0) yield chunk.subarray(0, left);
      throw new CutShort(`longer than ${maxBytes} bytes`);
    }
    left -= chunk.length;
    yield chunk;
  }
}

/** Recognizes gzip by its magic bytes, whatever the file is called and the reply's headers say. */
async function* decompressed(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = withHead(chunks, 2);
  try {
    const first = await source.next();
    if (first.done) return;
    const [magic0, magic1] = first.value;
    const whole = prepend(first.value, source);
    yield* magic0 === 0x1f && magic1 === 0x8b ? gunzipped(whole) : whole;
  } finally {
    await source.return(undefined);
  }
}

async function* gunzipped(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const failures: unknown[] = [];
  async function* watched(): AsyncGenerator<Uint8Array> {
    try {
      yield* chunks;
    } catch (error) {
      failures.push(error);
      throw error;
    }
  }
  try {
    yield* decoded(watched(), 'gzip');
  } catch (error) {
    throw failures.length > 0 ? error : new CutShort(`broken gzip: ${describeError(error)}`);
  }
}

/** The same bytes, with at least `size` of them in the first chunk unless the file is shorter. */
async function* withHead(chunks: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | null = new Uint8Array(0);
  try {
    for await (const chunk of chunks) {
      if (head) head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      const ready: Uint8Array = head ?? chunk;
      if (head && head.length < size) continue;
      head = null;
      yield ready;
    }
  } catch (error) {
    if (head && head.length > 0) yield head;
    throw error;
  }
  if (head && head.length > 0) yield head;
}

async function* prepend(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}

/** The encoding by byte order mark, else by the XML declaration, else UTF-8. */
function encodingOf(head: Uint8Array): string {
  const [byte0, byte1] = head;
  if ((byte0 === 0xff && byte1 === 0xfe) || (byte0 === 0x3c && byte1 === 0)) return 'utf-16le';
  if ((byte0 === 0xfe && byte1 === 0xff) || (byte0 === 0 && byte1 === 0x3c)) return 'utf-16be';
  const start = Buffer.from(head.subarray(0, HEAD_BYTES)).toString('latin1');
  const label = /<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']/i.exec(start)?.[1];
  // The declaration was read as single bytes: then the file is not UTF-16, whatever it declares.
  if (label === undefined || /^utf-?16/i.test(label)) return 'utf-8';
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return 'utf-8';
  }
}

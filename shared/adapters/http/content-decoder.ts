/**
 * Decodes a reply's content-encoding as it streams, so that a cap can apply to the decoded size, not the size sent. As
 * lenient as browsers: a checksum does not count, nor do bytes behind the end, and an unknown encoding passes
 * unchanged.
 */
import zlib from 'node:zlib';
import { type ContentDecoder, type DecoderEvents, DecoderLayer, type Format } from './decoder-layer.ts';
import { gunzipFormat, inflateFormat } from './inflate-formats.ts';

/** Node has zstd since 22.15; without it, it is not offered in Accept-Encoding. */
const hasZstd = typeof zlib.createZstdDecompress === 'function';

export const ACCEPT_ENCODING = hasZstd ? 'gzip, deflate, br, zstd' : 'gzip, deflate, br';

/** Servers apply several by mistake, seldom more than two. */
const MAX_LAYERS = 3;

/** Found in the header, but no content encodings; the body is plain. */
const PLAIN = new Set(['', 'identity', 'none', 'utf-8', 'utf8', 'binary', 'text']);

const FORMATS = new Map<string, Format>([
  ['gzip', gunzipFormat],
  ['x-gzip', gunzipFormat],
  ['deflate', inflateFormat],
  ['br', { open: openBrotli }],
  ...(hasZstd ? ([['zstd', { open: openZstd }]] as const) : []),
]);

const namesOf = (encoding: string): string[] =>
  encoding
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => !PLAIN.has(name));

/** True when a body with this header may not be decoded completely: then it need not be text. */
export function isUnsupported(encoding: string): boolean {
  const names = namesOf(encoding);
  return names.length > MAX_LAYERS || !names.every((name) => FORMATS.has(name));
}

/**
 * A decoder for a content-encoding header, also for several encodings in the order they were applied (`gzip, br`). A
 * body that is plain despite the header passes through unchanged.
 */
export function createContentDecoder(encoding: string, events: DecoderEvents): ContentDecoder {
  const formats = namesOf(encoding).flatMap((name) => FORMATS.get(name) ?? []);
  // The first layer decodes the encoding applied first, so the bytes pass through it last.
  const layers: ContentDecoder[] = [];
  for (const [index, format] of formats.slice(0, MAX_LAYERS).entries()) {
    const inner = layers[index - 1];
    layers.push(
      new DecoderLayer(format, {
        onBytes: inner ? (bytes) => inner.push(bytes) : events.onBytes,
        onEnd: inner ? () => inner.end() : events.onEnd,
        onDrain: () => {
          const outer = layers[index + 1];
          if (outer) outer.resume();
          else events.onDrain();
        },
        onError: events.onError,
      }),
    );
  }
  const first = layers[0];
  const last = layers.at(-1);
  if (!first || !last)
    return { push: events.onBytes, end: events.onEnd, resume: events.onDrain, destroy: () => undefined };
  return {
    push: (chunk) => last.push(chunk),
    end: () => last.end(),
    resume: () => first.resume(),
    destroy: () => layers.forEach((layer) => layer.destroy()),
  };
}

/** The bytes that are pushed at once: few, because each may become a thousand. */
const PIECE_BYTES = 16_384;

/**
 * The decoded bytes of a body. Throws at the first fault of the encoding, after the bytes before it; errors of the body
 * go through as they are.
 */
export async function* decoded(body: AsyncIterable<Uint8Array>, encoding: string): AsyncGenerator<Uint8Array> {
  const ready: Uint8Array[] = [];
  const faults: Error[] = [];
  let news = Promise.withResolvers<void>();
  /** The decoder has what it was given, and wants no more yet. */
  const state = { isBusy: false };
  const settle = (): void => {
    state.isBusy = false;
    news.resolve();
  };
  const decoder = createContentDecoder(encoding, {
    onBytes(bytes) {
      ready.push(bytes);
      news.resolve();
      return false;
    },
    onDrain: settle,
    onEnd: settle,
    onError(error) {
      faults.push(error);
      settle();
    },
  });
  /** What is decoded until the decoder wants more. */
  async function* take(): AsyncGenerator<Uint8Array> {
    while (state.isBusy || ready.length > 0) {
      if (ready.length === 0) {
        decoder.resume();
        await news.promise;
      }
      news = Promise.withResolvers();
      yield* ready.splice(0);
    }
    if (faults.length > 0) throw faults[0];
  }
  try {
    for await (const chunk of body) {
      for (let start = 0; start < chunk.length; start += PIECE_BYTES) {
        state.isBusy = true;
        if (decoder.push(chunk.subarray(start, start + PIECE_BYTES))) state.isBusy = false;
        yield* take();
      }
    }
    state.isBusy = true;
    decoder.end();
    yield* take();
  } finally {
    decoder.destroy();
  }
}

/** Brotli has no magic number, but no valid stream begins with either of these. */
function openBrotli(head: Uint8Array): ReturnType<Format['open']> {
  return head[0] === LESS_THAN || head[0] === BRACE ? 'plain' : { stream: zlib.createBrotliDecompress(), skip: 0 };
}

function openZstd(head: Uint8Array): ReturnType<Format['open']> {
  const [a = 0, b, c, d] = head;
  const isFrame = a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd;
  const isSkippable = (a & 0xf0) === 0x50 && b === 0x2a && c === 0x4d && d === 0x18;
  return isFrame || isSkippable ? { stream: zlib.createZstdDecompress(), skip: 0 } : 'plain';
}

const LESS_THAN = 0x3c;
const BRACE = 0x7b;

/** Number of bytes that decide whether a body is text. */
const SNIFFED_BYTES = 512;

/** True for a body whose beginning no text has (https://mimesniff.spec.whatwg.org/#binary-data-byte). */
export function isBinary(body: Uint8Array): boolean {
  const head = Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, SNIFFED_BYTES)).toString('latin1');
  // oxlint-disable-next-line no-control-regex
  return !/^(?:\xfe\xff|\xff\xfe)/.test(head) && /[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]/.test(head);
}

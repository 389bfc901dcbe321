/** Decodes a reply's content-encoding as it streams, so that a cap can apply to the decoded size, not the size sent. */
import zlib from 'node:zlib';
import type { Transform } from 'node:stream';

/** Node has zstd since 22.15; without it, it is not offered in Accept-Encoding. */
const hasZstd = typeof zlib.createZstdDecompress === 'function';

export const ACCEPT_ENCODING = hasZstd ? 'gzip, deflate, br, zstd' : 'gzip, deflate, br';

export interface DecoderEvents {
  /** Returns false to receive nothing more (or little) until `resume` is called. */
  onBytes: (bytes: Uint8Array) => boolean;
  /** There is room again after `push` returned false. */
  onDrain: () => void;
  onEnd: () => void;
  /** The bytes are not valid for the encoding, or end too early. No event follows. */
  onError: (error: Error) => void;
}

export interface ContentDecoder {
  /** False when the sender should wait for `onDrain`. */
  push(chunk: Uint8Array): boolean;
  end(): void;
  /** The receiver has room again after `onBytes` returned false. */
  resume(): void;
  /** Stops at once; no event follows. */
  destroy(): void;
}

/** Servers apply several by mistake, seldom more than two. */
const MAX_LAYERS = 3;

/** Found in the header, but no content encodings; the body is plain. */
const PLAIN = new Set(['', 'identity', 'none', 'utf-8', 'utf8', 'binary', 'text']);

/**
 * Opens the decompressor for a body that begins with `head` (4 bytes, or the whole body); null when it is plain anyway.
 */
type Open = (head: Uint8Array) => Transform | null;

const ENCODINGS = new Map<string, Open>([
  ['gzip', openGzip],
  ['x-gzip', openGzip],
  ['deflate', openDeflate],
  ['br', openBrotli],
  ...(hasZstd ? ([['zstd', openZstd]] as const) : []),
]);

/**
 * A decoder for a content-encoding header, also for several encodings in the order they were applied (`gzip, br`). A
 * body that is plain despite the header passes through unchanged. Null when an encoding is unknown.
 */
export function createContentDecoder(encoding: string, events: DecoderEvents): ContentDecoder | null {
  const names = encoding
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => !PLAIN.has(name));
  if (names.length > MAX_LAYERS || !names.every((name) => ENCODINGS.has(name))) return null;
  // The first layer decodes the encoding applied first, so the bytes pass through it last.
  const layers: ContentDecoder[] = [];
  for (const [index, name] of names.entries()) {
    const inner = layers[index - 1];
    layers.push(
      createLayer(ENCODINGS.get(name)!, {
        onBytes: inner ? (bytes) => inner.push(bytes) : events.onBytes,
        onEnd: inner ? () => inner.end() : events.onEnd,
        onDrain: () => (layers[index + 1] ? layers[index + 1]!.resume() : events.onDrain()),
        onError: events.onError,
      }),
    );
  }
  const first = layers[0];
  const last = layers.at(-1);
  if (!first || !last) return passOn(events);
  return {
    push: (chunk) => last.push(chunk),
    end: () => last.end(),
    resume: () => first.resume(),
    destroy: () => layers.forEach((layer) => layer.destroy()),
  };
}

function passOn(events: DecoderEvents): ContentDecoder {
  return { push: events.onBytes, end: events.onEnd, resume: events.onDrain, destroy: () => undefined };
}

/** Enough to recognise every format. */
const HEAD_BYTES = 4;

function createLayer(open: Open, events: DecoderEvents): ContentDecoder {
  let head: Uint8Array = Buffer.alloc(0);
  let destroyed = false;
  let stream: Transform | null = null;
  let plain: ContentDecoder | null = null;

  const start = (): boolean => {
    stream = open(head);
    if (!stream) {
      plain = passOn(events);
      return plain.push(head);
    }
    const { onBytes, onDrain, onEnd, onError } = events;
    stream.on('data', (bytes: Uint8Array) => {
      if (!destroyed && !onBytes(bytes)) stream!.pause();
    });
    stream.on('drain', () => destroyed || onDrain());
    stream.on('end', () => destroyed || onEnd());
    stream.on('error', (error) => destroyed || onError(error));
    return stream.write(head);
  };

  return {
    push(chunk) {
      if (destroyed || chunk.length === 0) return true;
      if (plain) return plain.push(chunk);
      if (stream) return stream.write(chunk);
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      return head.length < HEAD_BYTES || start();
    },
    end() {
      if (destroyed) return;
      // An empty body is not valid gzip, but servers send it with redirects and errors.
      if (!stream && !plain && head.length > 0) start();
      if (stream) stream.end();
      else events.onEnd();
    },
    resume() {
      if (plain) plain.resume();
      else stream?.resume();
    },
    destroy() {
      destroyed = true;
      stream?.destroy();
    },
  };
}

function openGzip(head: Uint8Array): Transform | null {
  return head[0] === 0x1f && (head[1] ?? 0x8b) === 0x8b ? zlib.createGunzip() : null;
}

/** Some servers send the raw deflate stream, without the zlib header that the name implies. */
function openDeflate(head: Uint8Array): Transform | null {
  const [first = 0, second = 0] = head;
  if ((first & 0x0f) === 8 && (first * 256 + second) % 31 === 0) return zlib.createInflate();
  return first === LESS_THAN && isTagStart(second) ? null : zlib.createInflateRaw();
}

/** Brotli has no magic number, but no valid stream begins with either of these. */
function openBrotli(head: Uint8Array): Transform | null {
  return head[0] === LESS_THAN || head[0] === BRACE ? null : zlib.createBrotliDecompress();
}

function openZstd(head: Uint8Array): Transform | null {
  const [a = 0, b, c, d] = head;
  const isFrame = a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd;
  const isSkippable = (a & 0xf0) === 0x50 && b === 0x2a && c === 0x4d && d === 0x18;
  return isFrame || isSkippable ? zlib.createZstdDecompress() : null;
}

const LESS_THAN = 0x3c;
const BRACE = 0x7b;

function isTagStart(byte: number): boolean {
  return /[!?/a-z]/i.test(String.fromCharCode(byte));
}

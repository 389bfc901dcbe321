/** Undoes the content-encoding of a reply as it streams, so that a cap can hold on what it becomes, not on what was sent. */
import zlib from 'node:zlib';
import type { Transform } from 'node:stream';

/** zstd came to Node in 22.15; without it we do not say that we take it. */
const hasZstd = typeof zlib.createZstdDecompress === 'function';

export const ACCEPT_ENCODING = hasZstd ? 'gzip, deflate, br, zstd' : 'gzip, deflate, br';

export interface DecoderEvents {
  onBytes: (bytes: Uint8Array) => void;
  /** It has room again after `push` said no. */
  onDrain: () => void;
  onEnd: () => void;
  onError: (error: Error) => void;
}

export interface ContentDecoder {
  /** False when the sender should wait for `onDrain`. */
  push(chunk: Uint8Array): boolean;
  end(): void;
  /** Stops at once; no event follows. */
  destroy(): void;
}

/** A decoder for this content-encoding; null when it is not one of ACCEPT_ENCODING. */
export function createContentDecoder(encoding: string, events: DecoderEvents): ContentDecoder | null {
  switch (encoding) {
    case '':
    case 'identity':
      return {
        push: (chunk) => (events.onBytes(chunk), true),
        end: () => events.onEnd(),
        destroy: () => undefined,
      };
    case 'gzip':
    case 'x-gzip':
      return wrap(() => zlib.createGunzip(), events);
    case 'br':
      return wrap(() => zlib.createBrotliDecompress(), events);
    case 'deflate':
      // Some servers send the bare deflate stream, without the zlib header that the name stands for.
      return wrap((first) => ((first & 0x0f) === 8 ? zlib.createInflate() : zlib.createInflateRaw()), events);
    case 'zstd':
      return hasZstd ? wrap(() => zlib.createZstdDecompress(), events) : null;
    default:
      return null;
  }
}

function wrap(create: (firstByte: number) => Transform, events: DecoderEvents): ContentDecoder {
  let stream: Transform | null = null;
  let destroyed = false;
  return {
    push(chunk) {
      if (destroyed || chunk.length === 0) return true;
      if (!stream) {
        stream = create(chunk[0]!);
        stream.on('data', (bytes: Uint8Array) => destroyed || events.onBytes(bytes));
        stream.on('drain', () => destroyed || events.onDrain());
        stream.on('end', () => destroyed || events.onEnd());
        stream.on('error', (error) => destroyed || events.onError(error));
      }
      return stream.write(chunk);
    },
    end() {
      // An empty body is no valid gzip, but servers send it with redirects and errors.
      if (stream) stream.end();
      else events.onEnd();
    },
    destroy() {
      destroyed = true;
      stream?.destroy();
    },
  };
}

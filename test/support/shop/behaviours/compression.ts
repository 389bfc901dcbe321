/** Compressed responses, valid and invalid, and a gzip bomb that costs the shop almost nothing. */
import {
  brotliCompressSync,
  constants,
  crc32,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { z } from 'zod';
import { renderPage } from '../page.ts';
import type { Exchange } from './behaviour.ts';
import { HTML } from './behaviour.ts';
import { send } from './flood.ts';

export const compressionShapes = [
  z.strictObject({
    type: z.literal('compressed'),
    encoding: z.enum(['gzip', 'deflate', 'br', 'zstd']),
    /** The declared content-encoding, when it differs from the real one; null: none is declared. */
    declared: z.string().nullable().optional(),
    /** Ends the response after this many compressed bytes, as if it were complete. */
    keepBytes: z.int().positive().optional(),
  }),
  /** The plain page with a wrong content-encoding. */
  z.strictObject({ type: z.literal('falsely-compressed'), declared: z.string().min(1) }),
  /** A small gzip response that unpacks to the start of the page and this many zero bytes. */
  z.strictObject({ type: z.literal('gzip-bomb'), bytes: z.int().positive().default(1_000_000_000) }),
] as const;

export type CompressionBehaviour = z.output<(typeof compressionShapes)[number]>;

const COMPRESS = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: (page: Buffer) => brotliCompressSync(page, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: zstdCompressSync,
} as const;

export function answerCompression(exchange: Exchange, behaviour: CompressionBehaviour): void {
  const { response, product } = exchange;
  const page = Buffer.from(renderPage(product));
  switch (behaviour.type) {
    case 'compressed': {
      const { encoding, declared = encoding, keepBytes } = behaviour;
      const body = COMPRESS[encoding](page).subarray(0, keepBytes);
      if (declared !== null) response.setHeader('content-encoding', declared);
      response.writeHead(200, { 'content-type': HTML, 'content-length': body.length }).end(body);
      return;
    }
    case 'falsely-compressed':
      response.writeHead(200, { 'content-type': HTML, 'content-encoding': behaviour.declared }).end(page);
      return;
    case 'gzip-bomb':
      return send(exchange, [bomb(page.subarray(0, 1_000), behaviour.bytes)], {
        'content-type': HTML,
        'content-encoding': 'gzip',
      });
  }
}

const MEGABYTE = Buffer.alloc(1_000_000);
const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);

/**
 * One gzip stream. A full flush leaves deflate at a byte boundary with an empty window, so the same compressed megabyte
 * can be sent repeatedly; only the checksum is computed along the way.
 */
function* bomb(start: Buffer, bytes: number): Generator<Buffer> {
  const flushed = { finishFlush: constants.Z_FULL_FLUSH };
  const zeros = deflateRawSync(MEGABYTE, flushed);
  yield GZIP_HEADER;
  yield deflateRawSync(start, flushed);
  let checksum = crc32(start);
  const megabytes = Math.ceil(bytes / MEGABYTE.length);
  for (let i = 0; i < megabytes; i++) {
    checksum = crc32(MEGABYTE, checksum);
    yield zeros;
  }
  yield deflateRawSync(Buffer.alloc(0));
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(checksum, 0);
  trailer.writeUInt32LE((start.length + megabytes * MEGABYTE.length) % 2 ** 32, 4);
  yield trailer;
}

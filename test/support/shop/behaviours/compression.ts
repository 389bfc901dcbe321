/** Compressed responses. */
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { z } from 'zod';
import { renderPage } from '../page.ts';
import { type Exchange, HTML } from './behaviour.ts';

export const compressionShapes = [
  z.strictObject({ type: z.literal('compressed'), encoding: z.enum(['gzip', 'deflate', 'br', 'zstd']) }),
] as const;

export type CompressionBehaviour = z.output<(typeof compressionShapes)[number]>;

const COMPRESS = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: (page: Buffer) => brotliCompressSync(page, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: zstdCompressSync,
} as const;

export function answerCompression({ response, product }: Exchange, { encoding }: CompressionBehaviour): void {
  const body = COMPRESS[encoding](Buffer.from(renderPage(product)));
  response.setHeader('content-encoding', encoding);
  response.writeHead(200, { 'content-type': HTML, 'content-length': body.length }).end(body);
}

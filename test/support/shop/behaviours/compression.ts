/** Compressed responses. */
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { z } from 'zod';
import { renderPage } from '../page.ts';
import { type Answers, HTML } from './behaviour.ts';

export const compressionShapes = [
  z.strictObject({ type: z.literal('compressed'), encoding: z.enum(['gzip', 'deflate', 'br', 'zstd']) }),
] as const;

const COMPRESS = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: (page: Buffer) => brotliCompressSync(page, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: zstdCompressSync,
} as const;

export const compressionAnswers: Answers<z.output<(typeof compressionShapes)[number]>> = {
  compressed({ response, product }, { encoding }) {
    const body = COMPRESS[encoding](Buffer.from(renderPage(product)));
    response.setHeader('content-encoding', encoding);
    response.writeHead(200, { 'content-type': HTML, 'content-length': body.length }).end(body);
  },
};

/** Answers 200 with something that is not the page asked for. */
import { z } from 'zod';
import { renderPage } from '../page.ts';
import type { Exchange } from './behaviour.ts';

export const contentShapes = [
  z.strictObject({
    type: z.literal('missing-field'),
    fields: z.array(z.enum(['title', 'price', 'json-ld'])).min(1),
  }),
  /** The page under another content type; null sends none. */
  z.strictObject({ type: z.literal('content-type'), value: z.string().nullable() }),
  /** The page, and behind it filler up to `bytes`, without a length. */
  z.strictObject({ type: z.literal('huge'), bytes: z.int().positive() }),
  z.strictObject({ type: z.literal('empty') }),
] as const;

export type ContentBehaviour = z.output<(typeof contentShapes)[number]>;

export function answerContent(exchange: Exchange, behaviour: ContentBehaviour): void {
  const { product, response } = exchange;
  switch (behaviour.type) {
    case 'missing-field':
      exchange.sendPage(behaviour.fields);
      return;
    case 'content-type':
      if (behaviour.value !== null) response.setHeader('content-type', behaviour.value);
      response.end(renderPage(product));
      return;
    case 'huge':
      sendHuge(exchange, behaviour.bytes);
      return;
    case 'empty':
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': 0 });
      response.end();
  }
}

const FILLER = Buffer.from('<p>more and more and more of the same</p>\n'.repeat(1_600));

function sendHuge({ product, response }: Exchange, bytes: number): void {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
  const page = Buffer.from(renderPage(product));
  let left = bytes - page.length;
  response.write(page);
  const more = (): void => {
    // The client may hang up in the middle, which is what this is for.
    while (left > 0 && !response.destroyed) {
      const piece = FILLER.subarray(0, Math.min(left, FILLER.length));
      left -= piece.length;
      if (!response.write(piece)) {
        response.once('drain', more);
        return;
      }
    }
    response.end();
  };
  more();
}

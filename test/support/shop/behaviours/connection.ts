/** Faults below HTTP: no response, a late one, a broken connection. */
import { z } from 'zod';
import { renderPage } from '../page.ts';
import { type Exchange, HTML } from './behaviour.ts';

export const connectionShapes = [
  /** Never answers; with `afterBytes` the response stalls in the middle of the page. */
  z.strictObject({ type: z.literal('hang'), afterBytes: z.int().min(0).default(0) }),
  /** Resets the connection; with `afterBytes` in the middle of the page. */
  z.strictObject({ type: z.literal('reset'), afterBytes: z.int().min(0).default(0) }),
  /** Answers normally, after `ms`. */
  z.strictObject({ type: z.literal('slow'), ms: z.int().min(0) }),
] as const;

export type ConnectionBehaviour = z.output<(typeof connectionShapes)[number]>;

export function answerConnection(exchange: Exchange, behaviour: ConnectionBehaviour): void {
  switch (behaviour.type) {
    case 'slow':
      exchange.later(behaviour.ms, () => exchange.sendPage());
      return;
    case 'hang':
      sendStart(exchange, behaviour.afterBytes, () => undefined);
      return;
    case 'reset':
      sendStart(exchange, behaviour.afterBytes, () => exchange.response.socket?.resetAndDestroy());
      return;
  }
}

/** Sends the first bytes of the page with the full content-length, then calls back. */
function sendStart({ product, response }: Exchange, bytes: number, then: () => void): void {
  if (bytes === 0) return then();
  const page = Buffer.from(renderPage(product));
  response.writeHead(200, { 'content-type': HTML, 'content-length': page.length });
  // A reset discards unsent bytes, so wait until they are sent.
  response.write(page.subarray(0, bytes), then);
}

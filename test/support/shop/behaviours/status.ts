/** Responses with another status: gone, broken, refused, redirected. */
import { z } from 'zod';
import { renderPage } from '../page.ts';
import { type Exchange, sendHtml } from './behaviour.ts';

const redirectStatus = z.union([z.literal(301), z.literal(302), z.literal(303), z.literal(307), z.literal(308)]);

export const statusShapes = [
  z.strictObject({
    type: z.literal('status'),
    /** Some sites refuse with 999. */
    status: z.union([z.int().min(400).max(599), z.literal(999)]),
    /** Value of Retry-After; any text, because sites send any text. */
    retryAfter: z.string().optional(),
  }),
  /** 304, whatever was asked. */
  z.strictObject({ type: z.literal('not-modified') }),
  /** The page, with another 2xx status. */
  z.strictObject({ type: z.literal('page'), status: z.int().min(200).max(299) }),
  z.strictObject({
    type: z.literal('redirect'),
    to: z.string().min(1),
    status: redirectStatus.default(302),
  }),
  /** Number of redirects within the site before the page. */
  z.strictObject({ type: z.literal('chain'), hops: z.int().positive(), status: redirectStatus.default(302) }),
] as const;

export type StatusBehaviour = z.output<(typeof statusShapes)[number]>;

export function answerStatus(exchange: Exchange, behaviour: StatusBehaviour): void {
  const { response, path, query } = exchange;
  switch (behaviour.type) {
    case 'not-modified':
      return void response.writeHead(304).end();
    case 'page':
      return sendHtml(exchange, renderPage(exchange.product), behaviour.status);
    case 'redirect': {
      return sendRedirect(exchange, behaviour.to, behaviour.status);
    }
    case 'chain': {
      const left = Number(query.get('hops') ?? behaviour.hops);
      if (!(left > 0)) return exchange.sendPage();
      return sendRedirect(exchange, `${path}?hops=${left - 1}`, behaviour.status);
    }
    case 'status': {
      const { status, retryAfter } = behaviour;
      if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
      return sendHtml(exchange, note(status), status);
    }
  }
}

function sendRedirect(exchange: Exchange, to: string, status: number): void {
  exchange.response.setHeader('location', to);
  sendHtml(exchange, note(status), status);
}

function note(status: number): string {
  return `<!doctype html><title>${status}</title><h1>${status}</h1>`;
}

/** Responses with another status: gone, broken, refused, redirected. */
import { z } from 'zod';
import { renderPage } from '../page.ts';
import { type Answers, sendHtml } from './behaviour.ts';

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
  /** Number of redirects within the site before the page. */
  z.strictObject({ type: z.literal('chain'), hops: z.int().positive(), status: redirectStatus.default(302) }),
] as const;

export const statusAnswers: Answers<z.output<(typeof statusShapes)[number]>> = {
  'not-modified': ({ response }) => void response.writeHead(304).end(),
  page: (exchange, { status }) => sendHtml(exchange, renderPage(exchange.product), status),
  chain(exchange, { hops, status }) {
    const left = Number(exchange.query.get('hops') ?? hops);
    if (!(left > 0)) return exchange.sendPage();
    exchange.response.setHeader('location', `${exchange.path}?hops=${left - 1}`);
    sendHtml(exchange, note(status), status);
  },
  status(exchange, { status, retryAfter }) {
    if (retryAfter !== undefined) exchange.response.setHeader('retry-after', retryAfter);
    sendHtml(exchange, note(status), status);
  },
};

const note = (status: number): string => `<!doctype html><title>${status}</title><h1>${status}</h1>`;

/** The input shared by all families of misbehaviour. */
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { PageField } from '../page.ts';
import type { ShopProduct } from '../languages.ts';

export interface Exchange {
  product: ShopProduct;
  /** As sent: percent-encoded, without the query. */
  path: string;
  query: URLSearchParams;
  response: ServerResponse;
  /** Sends the normal page, or the page without some of its fields. */
  sendPage(without?: readonly PageField[]): void;
  /** Calls `then` after `ms` unless the client has disconnected. */
  later(ms: number, then: () => void): void;
}

/** How a family answers, by the type of the behaviour. */
export type Answers<B extends { type: string }> = {
  [T in B['type']]: (exchange: Exchange, behaviour: Extract<B, { type: T }>) => void;
};

export const HTML = 'text/html; charset=utf-8';

const MODIFIED = 'Thu, 01 Jan 2026 00:00:00 GMT';

/** Sends an ordinary page with an ETag that changes with it; answers 304 to a request with that ETag. */
export function sendNamed({ response }: Pick<Exchange, 'response'>, html: string): void {
  const etag = `"${createHash('sha1').update(html).digest('base64url')}"`;
  const { 'if-none-match': known, 'if-modified-since': since } = response.req.headers;
  response.setHeader('etag', etag).setHeader('last-modified', MODIFIED);
  if (known === undefined ? since === MODIFIED : known === etag) response.writeHead(304).end();
  else sendHtml({ response }, html);
}

/** Sends an HTML page with a content-length. */
export function sendHtml({ response }: Pick<Exchange, 'response'>, html: string, status = 200): void {
  const body = Buffer.from(html);
  response.writeHead(status, { 'content-type': HTML, 'content-length': body.length }).end(body);
}

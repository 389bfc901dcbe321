/** The input shared by all families of misbehaviour. */
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

/** Sends an HTML page with a content-length. */
export function sendHtml({ response }: Pick<Exchange, 'response'>, html: string, status = 200): void {
  const body = Buffer.from(html);
  response.writeHead(status, { 'content-type': HTML, 'content-length': body.length }).end(body);
}

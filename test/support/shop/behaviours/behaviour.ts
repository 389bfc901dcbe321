/** What every family of misbehaviour gets to work with. */
import type { ServerResponse } from 'node:http';
import type { PageField } from '../page.ts';
import type { ShopProduct } from '../languages.ts';

export interface Exchange {
  product: ShopProduct;
  /** As sent: percent-encoded, without the query. */
  path: string;
  query: URLSearchParams;
  response: ServerResponse;
  /** Where a canary listens that nobody may ever visit, as a URL without a final slash. */
  canaryUrl: string;
  /** Sends the page as a good shop would, or without some of its fields. */
  sendPage(without?: readonly PageField[]): void;
  /** Calls back after `ms` unless the client has gone by then. */
  later(ms: number, then: () => void): void;
}

export const HTML = 'text/html; charset=utf-8';

/** Answers with a page of markup under its length. */
export function sendHtml({ response }: Pick<Exchange, 'response'>, html: string, status = 200): void {
  const body = Buffer.from(html);
  response.writeHead(status, { 'content-type': HTML, 'content-length': body.length }).end(body);
}

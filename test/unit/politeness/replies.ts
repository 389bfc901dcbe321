/** Realistic replies for the ban rules. */
import { readShape } from '../../../crawl-api/fetch/shape-reader.ts';
import type { SeenPage, SeenReply } from '../../../crawl-api/politeness/judgement.ts';

export const URL_ASKED = 'https://shop.example.jp/item/P1';
/** The request for it. */
export const ASKED = { url: URL_ASKED, product: { id: 'P1', url: URL_ASKED } };

export function reply(changes: Partial<SeenReply> = {}): SeenReply {
  return {
    url: URL_ASKED,
    status: 200,
    headers: { 'content-type': 'text/html; charset=utf-8' },
    body: '',
    waitMs: 40,
    shape: () => readShape(changes.body ?? ''),
    ...changes,
  };
}

/** A page with all required fields. */
export const right = (body: string, changes: Partial<SeenReply> = {}): SeenPage => ({
  kind: 'page',
  reply: reply({ body, ...changes }),
  missing: null,
  hasValues: true,
});

/** A page without the required field `title`. */
export const without = (body: string, changes: Partial<SeenReply> = {}): SeenPage => ({
  kind: 'page',
  reply: reply({ body, ...changes }),
  missing: 'title',
  hasValues: false,
});

export const gone = (body: string, status = 404): SeenPage => ({ kind: 'gone', reply: reply({ body, status }) });

export const status = (
  code: number,
  body = '',
  headers: Record<string, string> = {},
  retryAfterMs: number | null = null,
): SeenPage => ({ kind: 'failed', reply: reply({ status: code, body, headers }), retryAfterMs });

export const redirect = (to: string, code = 302): SeenPage => ({
  kind: 'redirect',
  reply: reply({ status: code, headers: { location: to } }),
  to,
});

/** A page that redirects itself elsewhere, as a browser reports it. */
export const shownRedirect = (to: string, body: string): SeenPage => ({ kind: 'redirect', reply: reply({ body }), to });

const LOREM = 'A sturdy bag for daily use, made of canvas with leather straps and a zip. ';

/** A product page of realistic length; `extra` is inserted into the head. */
export function productPage(extra = ''): string {
  return `<!doctype html><html><head><title>Canvas bag | Example shop</title>${extra}</head><body>
<header><nav><a href="/">Top</a><a href="/login">Log in</a></nav></header><main><p>${LOREM.repeat(30)}</p></main>
<footer>Example shop</footer></body></html>`;
}

/** Conditional requests: takes the validators from a reply, and turns them into request headers. */
import { ETAG, HTTP_DATE, type PageStamp, type Validators } from '../../shared/domain/validators.ts';
import type { Reply } from './page-result.ts';

/** A Last-Modified less than this before the reply is too recent to rely on (RFC 9110, 8.8.2.2). */
const SETTLED_MS = 60_000;

/** What a page says of its version; null without validators, and for a page that a browser fetched. */
export function stampOf({ status, headers, bytes }: Reply): PageStamp | null {
  if (status !== 200 || bytes === undefined) return null;
  const { etag = '', 'last-modified': modified = '', date = '' } = headers;
  const isSettled = HTTP_DATE.test(modified) && Date.parse(date) - Date.parse(modified) >= SETTLED_MS;
  const validators = { ...(ETAG.test(etag) ? { etag } : {}), ...(isSettled ? { modified } : {}) };
  return Object.keys(validators).length === 0 ? null : { ...validators, bytes };
}

/** The headers that make a request conditional. */
export function conditionsOf({ etag, modified }: Validators): Record<string, string> {
  return {
    ...(etag === undefined ? {} : { 'if-none-match': etag }),
    ...(modified === undefined ? {} : { 'if-modified-since': modified }),
  };
}

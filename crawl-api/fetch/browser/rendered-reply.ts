/** Builds the reply behind a rendered page. */
import type { Response } from 'playwright';
import { KEPT_BODY_CHARS, type PageResult, type Reply } from '../page-result.ts';
import { readShape } from '../shape-reader.ts';

export type Failure = Extract<PageResult, { kind: 'failed' }>;

/** `response` is null when the browser has reported none, `text` when the page was not read. */
export function replyOf(response: Response | null, url: string, text: string | null, waitMs: number): Reply {
  const { 'set-cookie': _, ...headers } = response?.headers() ?? {};
  return {
    url,
    status: response?.status() ?? 0,
    headers,
    body: (text ?? '').slice(0, KEPT_BODY_CHARS),
    complete: text !== null && text.length <= KEPT_BODY_CHARS,
    shape: () => (text === null ? null : readShape(text)),
    waitMs,
  };
}

/** A failure without a Retry-After. */
export function failed(reason: Failure['reason'], detail: string, reply: Reply | null = null): Failure {
  return { kind: 'failed', reason, detail, reply, retryAfterMs: null };
}

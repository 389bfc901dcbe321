/** Judges status and headers, before a byte of the body is read. */
import type { Validators } from '../../shared/domain/validators.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';
import { parseRetryAfter, resolveLocation } from '../../shared/domain/reply-fields.ts';
import type { Extraction } from '../extract/page-extractor.ts';
import type { PageAnswer, Reply } from './page-result.ts';

/** A result without its reply, which is complete only at the end. */
export type Finding =
  | { kind: 'page'; extraction: Extraction }
  | { kind: 'gone' }
  | { kind: 'unchanged'; validators: Validators }
  | { kind: 'redirect'; to: string }
  | { kind: 'failed'; reason: FailureReason; detail: string; retryAfterMs?: number | null; unread?: true }
  | { kind: 'not-now' };

/** Combines finding and reply. Every kind but `failed` and `not-now` has a reply. */
export function resultOf(finding: Finding, reply: Reply | null): PageAnswer {
  switch (finding.kind) {
    case 'not-now':
      return { kind: 'not-now' };
    case 'failed': {
      const { reason, detail, retryAfterMs = null, unread } = finding;
      return { kind: 'failed', reason, detail, reply, retryAfterMs, ...(unread && { unread }) };
    }
    case 'page':
    case 'gone':
    case 'unchanged':
    case 'redirect':
      if (!reply) throw new Error(`${finding.kind} without a reply`);
      return { ...finding, reply };
  }
}

/**
 * The result that the head alone decides; null for a page to be read.
 *
 * @param header returns the value of a header by its lower-case name, '' without one
 */
export function judgeHead(
  status: number,
  header: (name: string) => string,
  url: string,
  nowMs: number,
): Finding | null {
  if (status < 300) return null;
  if (status === 404 || status === 410) return { kind: 'gone' };
  if (status < 400) {
    const to = resolveLocation(header('location'), url);
    return to === null
      ? { kind: 'failed', reason: 'redirect', detail: `${status} without a location that can be read` }
      : { kind: 'redirect', to };
  }
  const retryAfterMs = status === 429 || status === 503 ? parseRetryAfter(header('retry-after'), nowMs) : null;
  return { kind: 'failed', reason: 'http-status', detail: `status ${status}`, retryAfterMs };
}

/** The headers as a record of lower-case names, without cookies: they may be secrets and are not needed. */
export function plainHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase();
    if (value === undefined || key === 'set-cookie' || key === '__proto__') continue;
    plain[key] = Array.isArray(value) ? value.join(', ') : value;
  }
  return plain;
}

/** What the ban rules are given and what they say. */
import type { PageShape } from './page-shape.ts';
import type { Evidence, Verdict } from '../../shared/domain/verdict.ts';
import { EVIDENCE_BODY_BYTES } from '../../shared/domain/verdict.ts';

export interface SeenReply {
  /** The URL asked for; with a browser the one it ended at. */
  url: string;
  status: number;
  /** Lower-case names. */
  headers: Record<string, string>;
  /** The beginning of the body as text. */
  body: string;
  /** What the whole page is made of; null when it was not read to its end, so that nothing can be said about the whole. */
  shape(): PageShape | null;
  /** From the request to the first byte. */
  waitMs: number;
}

/** One request's result as far as a ban can be seen in it. */
export type SeenPage =
  /** `missing` names what the mapping did not find, null when nothing; `hasValues`: at least one value was found. */
  | { kind: 'page'; reply: SeenReply; missing: string | null; hasValues: boolean }
  | { kind: 'gone'; reply: SeenReply }
  | { kind: 'redirect'; reply: SeenReply; to: string }
  | { kind: 'failed'; reply: SeenReply | null; retryAfterMs: number | null };

/**
 * right    what was asked for, with its values: this address is served
 * gone     the site says that there is no such product; to be believed only while the address is served
 * hop      goes on at another address of the same site
 * wait     the site asks for a pause (Retry-After)
 * failed   no page, for reasons that say nothing about a ban
 * odd      a page without the values that it should have
 * refusal  what a ban may look like, and an ordinary page too: a canary page tells. Whatever only the content of a page says is one
 * banned   a ban beyond doubt: by the site's own rules, the status 429, or a header that only a challenge has
 */
export type JudgementKind = 'right' | 'gone' | 'hop' | 'wait' | 'failed' | 'odd' | 'refusal' | 'banned';

export interface Judgement {
  verdict: Extract<Verdict, 'ok' | 'suspect' | 'banned'>;
  kind: JudgementKind;
  /** Null when no rule spoke. */
  rule: string | null;
  evidence: Evidence | null;
}

/** The rule of a page that is right but for the fields that pages usually fill. */
export const LESS_THAN_USUAL = 'values-missing';

/** With the verdict `ok` no rule spoke. */
export function unremarkable(kind: 'right' | 'gone' | 'hop' | 'wait' | 'failed'): Judgement {
  return { verdict: 'ok', kind, rule: null, evidence: null };
}

/** What a rule says about a reply. */
export function accused(
  kind: 'odd' | 'refusal' | 'banned',
  rule: string,
  url: string,
  reply: SeenReply | null,
): Judgement {
  return {
    verdict: kind === 'banned' ? 'banned' : 'suspect',
    kind,
    rule,
    evidence: createEvidence(rule, url, reply),
  };
}

const MAX_HEADERS = 40;
const MAX_HEADER_CHARS = 300;
const MAX_URL_CHARS = 2_000;
const COOKIE_HEADERS = new Set(['set-cookie', 'set-cookie2', 'cookie']);

/** What is kept to prove a verdict: bounded, and without cookies. */
export function createEvidence(rule: string, url: string, reply: SeenReply | null): Evidence {
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries(reply?.headers ?? {})) {
    if (COOKIE_HEADERS.has(name.toLowerCase()) || name === '__proto__') continue;
    if (headers.length === MAX_HEADERS) break;
    headers.push([name.slice(0, 100), value.slice(0, MAX_HEADER_CHARS).toWellFormed()]);
  }
  return {
    rule: rule.slice(0, 100),
    url: (reply?.url ?? url).slice(0, MAX_URL_CHARS).toWellFormed(),
    status: reply?.status ?? null,
    headers: Object.fromEntries(headers),
    body: cutToBytes(reply?.body ?? '', EVIDENCE_BODY_BYTES),
  };
}

function cutToBytes(text: string, limit: number): string {
  const bytes = Buffer.from(text.slice(0, limit).toWellFormed());
  if (bytes.length <= limit) return bytes.toString('utf8');
  let end = limit;
  // Not in the middle of a character.
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

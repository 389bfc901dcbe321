/** Input and output of the ban rules. */
import { identityOf, type PageRequest } from '../../shared/adapters/requests/page-requests.ts';
import { type Evidence, EVIDENCE_BODY_BYTES, type Verdict } from '../../shared/domain/verdict.ts';

/** The features of a page that tell a ban page from a real one. */
export interface PageShape {
  /** Visible characters, without white space; counting stops at ENOUGH_CHARS. */
  textChars: number;
  /** The content of <script> elements, up to SCRIPT_CHARS. */
  scripts: string;
  hasExternalScript: boolean;
  hasMetaRefresh: boolean;
  hasPasswordField: boolean;
  /** Elements other than html, head, body, script, noscript, style, title, link, meta and base. */
  otherElements: number;
  /** The last 16 to 32 K characters of a page with less than ENOUGH_CHARS: it may begin with style alone. */
  tail: string;
}

/** A page with this much text has room for a product, so no rule about empty pages applies to it. */
export const ENOUGH_CHARS = 1_000;

export interface SeenReply {
  /** The URL requested; with a browser its final URL. */
  url: string;
  status: number;
  /** Lower-case names; repeated headers are joined with `, `. */
  headers: Record<string, string>;
  /** The beginning of the decoded body; '' when it was not read. */
  body: string;
  /** What the whole page consists of; null when it was not read to its end. */
  shape(): PageShape | null;
  /** The time from the request to the first byte. */
  waitMs: number;
}

/** The part of one request's result in which a ban can show. */
export type SeenPage =
  /** `missing` names what the mapping did not find, null when nothing; `hasValues`: at least one value was found. */
  | { kind: 'page'; reply: SeenReply; missing: string | null; hasValues: boolean }
  | { kind: 'gone'; reply: SeenReply }
  | { kind: 'unchanged'; reply: SeenReply }
  | { kind: 'redirect'; reply: SeenReply; to: string }
  | { kind: 'failed'; reply: SeenReply | null; retryAfterMs: number | null };

/**
 * right      the page that was requested, with its values: the site serves this address
 * gone       the site reports no such product; credible only while the site serves the address
 * unchanged  304 to a conditional request; credible only while the site serves the address
 * hop        redirects to another URL of the same site
 * wait       the site asks for a pause (Retry-After)
 * failed     no page, for reasons that are no sign of a ban
 * odd        a page without the values that it should have
 * refusal    a possible ban or an ordinary page; a canary page decides. Every rule about content alone ends here
 * banned     an unambiguous ban: by the site's own rules, status 429, or a header that only a challenge has
 */
export type JudgementKind = 'right' | 'gone' | 'unchanged' | 'hop' | 'wait' | 'failed' | 'odd' | 'refusal' | 'banned';

export interface Judgement {
  verdict: Extract<Verdict, 'ok' | 'suspect' | 'banned'>;
  kind: JudgementKind;
  rule: string | null;
  evidence: Evidence | null;
}

/** The rule for a page with all required values but without fields that pages usually fill. */
export const LESS_THAN_USUAL = 'values-missing';

/** A judgement by no rule; its verdict is `ok`. */
export function unremarkable(kind: 'right' | 'gone' | 'unchanged' | 'hop' | 'wait' | 'failed'): Judgement {
  return { verdict: 'ok', kind, rule: null, evidence: null };
}

/** The judgement of a rule that matched. */
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

/** The evidence for a verdict: bounded, and without cookies. */
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

/** The evidence with its request, which a URL alone does not name where it is a POST. */
export function withRequest(evidence: Evidence, request: PageRequest): Evidence {
  if (request.post === undefined || evidence.request !== undefined) return evidence;
  const body = cutToBytes(request.post.body, EVIDENCE_BODY_BYTES);
  return { ...evidence, request: { identity: identityOf(request), body } };
}

/** The judgement with the request in its evidence. */
export const named = (judgement: Judgement, request: PageRequest | undefined): Judgement =>
  request === undefined || judgement.evidence === null
    ? judgement
    : { ...judgement, evidence: withRequest(judgement.evidence, request) };

/** The text cut to at most this many bytes, without cutting a character in two. */
function cutToBytes(text: string, limit: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limit));
  return text.slice(0, read).toWellFormed();
}

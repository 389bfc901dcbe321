/** What a reply proves about the requesting address, and the evidence for it. */

/**
 * ok            the page is the requested one
 * suspect       something is odd: the page, the address or the site; a canary page decides
 * banned        the site refuses this address
 * site-changed  the site, or the mapping for it, has changed: canary pages are unreadable from every address
 */
export type Verdict = 'ok' | 'suspect' | 'banned' | 'site-changed';

/** Maximum UTF-8 bytes of the body that are kept. */
export const EVIDENCE_BODY_BYTES = 2_048;

export interface Evidence {
  /** Name of the rule that matched, such as `status-403` or `script-shell`; the list is in docs/bans.md. */
  rule: string;
  url: string;
  /** The status of the reply; null when there was none. */
  status: number | null;
  /** Lower-case names; cookies left out. */
  headers: Record<string, string>;
  /** The beginning of the body as text, at most EVIDENCE_BODY_BYTES. */
  body: string;
  /** Name of the cookie that may be the cause: the site set it, and its redirects led nowhere. */
  cookie?: string;
  /** The request, where it is no GET: its identity, and at most EVIDENCE_BODY_BYTES of its body. */
  request?: { identity: string; body: string };
}

/** The rule, and the cookie that may be the cause, for messages. */
export function describeRule({ rule, cookie }: Pick<Evidence, 'rule' | 'cookie'>): string {
  return cookie === undefined ? rule : `${rule}, the site sets the cookie ${cookie}`;
}

/** A site's own rules, in addition to the built-in ones. */
export interface BanRules {
  /** Statuses that mean a ban. */
  statuses: number[];
  /** Substrings of a redirect's target that mean a ban. */
  redirects: string[];
  /** RE2 patterns that mean a ban, matched case-insensitively in the beginning of the page. */
  patterns: string[];
  /** How long a banned address sends no request. */
  coolDownMs: number;
}

/**
 * A product whose values are known, fetched again when a reply is doubtful. `fields` are compared with the extracted
 * values.
 */
export interface Canary {
  id: string;
  fields: Record<string, string | number | boolean>;
}

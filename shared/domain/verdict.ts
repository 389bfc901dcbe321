/** What a reply says about the address that asked for it, and what is kept to prove it. */

/**
 * ok            the page is what was asked for
 * suspect       something is odd: the page, the address or the site; a canary tells
 * banned        the site refuses this address
 * site-changed  the site, or the mapping for it, is not what it was: canary pages are unreadable from every address
 */
export const VERDICTS = ['ok', 'suspect', 'banned', 'site-changed'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Kept of the body, in UTF-8 bytes. */
export const EVIDENCE_BODY_BYTES = 2_048;

export interface Evidence {
  /** Name of the rule that spoke, such as `status-403` or `script-shell`; the list is in docs/bans.md. */
  rule: string;
  url: string;
  /** Null when there was no reply. */
  status: number | null;
  /** Lower-case names; cookies left out. */
  headers: Record<string, string>;
  /** The beginning of the body as text, at most EVIDENCE_BODY_BYTES. */
  body: string;
}

/** A site's own rules, beside the built-in ones. */
export interface BanRules {
  /** Statuses that mean a ban. */
  statuses: number[];
  /** Parts of a redirect's target that mean a ban. */
  redirects: string[];
  /** RE2 patterns, found without regard to case in the beginning of the page, that mean a ban. */
  patterns: string[];
  /** How long a banned address is left alone. */
  coolDownMs: number;
}

/** A product whose values are known: asked again when in doubt. `fields` are compared with what the mapping gives. */
export interface Canary {
  id: string;
  fields: Record<string, string | number | boolean>;
}

/**
 * robots.txt as it is handed out to the fleet: the rules for our own User-Agent and nothing else (RFC 9309).
 */
import type { RobotsPolicy } from './robots-matcher.ts';
import { parseRobots, productToken } from './robots-parser.ts';

export { MAX_ROBOTS_BYTES, parseRobots, productToken } from './robots-parser.ts';
export { ROBOTS_PATH, isAllowed } from './robots-matcher.ts';

/** What asking for robots.txt came to. */
export type RobotsOutcome =
  /** The last reply; `text` matters for 2xx only. */
  | { kind: 'reply'; status: number; text: string }
  /** Redirects that lead nowhere: too many, in a circle, or without a target. */
  | { kind: 'lost'; detail: string }
  /** No reply: a time-out, no connection, an address that must not be connected to, or a body that broke off. */
  | { kind: 'unreachable'; detail: string };

/**
 * The policy that an outcome leads to, all but its version (RFC 9309, 2.3.1): a reply of 2xx is read; 4xx, and redirects
 * that lead nowhere, mean that there are no rules; anything else means that the site is to be left alone for now.
 *
 * @param userAgent our whole User-Agent header
 * @param url where robots.txt was asked for; named in `source`
 */
export function policyFrom(outcome: RobotsOutcome, userAgent: string, url: string): Omit<RobotsPolicy, 'version'> {
  const none = { rules: [], crawlDelayMs: null };
  if (outcome.kind === 'unreachable')
    return { access: 'none', ...none, source: `${url} cannot be had: ${outcome.detail}` };
  if (outcome.kind === 'lost') return { access: 'all', ...none, source: `${url} leads nowhere: ${outcome.detail}` };
  const { status, text } = outcome;
  if (status >= 400 && status < 500) return { access: 'all', ...none, source: `${url} does not exist (${status})` };
  if (status < 200 || status >= 300) return { access: 'none', ...none, source: `${url} answers ${status}` };
  const { rules, crawlDelayMs } = parseRobots(text, userAgent);
  const delay = crawlDelayMs === null ? '' : `, Crawl-delay ${crawlDelayMs / 1_000} s`;
  return {
    access: rules.length > 0 ? 'rules' : 'all',
    rules,
    crawlDelayMs,
    source: `${url}: ${rules.length} ${rules.length === 1 ? 'rule' : 'rules'} for ${productToken(userAgent)}${delay}`,
  };
}

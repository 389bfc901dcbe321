/**
 * robots.txt as distributed to the fleet: only the rules for our own User-Agent (RFC 9309).
 */
import type { RobotsPolicy } from './robots-matcher.ts';
import { parseRobots, productToken } from './robots-parser.ts';

export { MAX_ROBOTS_BYTES, parseRobots, productToken } from './robots-parser.ts';
export { ROBOTS_PATH, isAllowed } from './robots-matcher.ts';

/** What asking for robots.txt came to. */
export type RobotsOutcome =
  /** The last reply; `text` matters for 2xx only. */
  | { kind: 'reply'; status: number; text: string }
  /** Failed redirects: too many, circular, or without a target. */
  | { kind: 'lost'; detail: string }
  /** No reply: a timeout, no connection, a forbidden address, or an incomplete body. */
  | { kind: 'unreachable'; detail: string };

/**
 * The policy for an outcome, without its version (RFC 9309, 2.3.1): a 2xx reply is parsed; 4xx and failed redirects
 * mean that there are no rules; anything else means that the site must not be crawled for now.
 *
 * @param userAgent our whole User-Agent header
 * @param url the URL of robots.txt; named in `source`
 */
export function policyFrom(outcome: RobotsOutcome, userAgent: string, url: string): Omit<RobotsPolicy, 'version'> {
  const none = { rules: [], crawlDelayMs: null };
  if (outcome.kind === 'unreachable')
    return { access: 'none', ...none, source: `${url} is unavailable: ${outcome.detail}` };
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

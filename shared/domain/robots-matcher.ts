/** Whether robots.txt allows a path (RFC 9309, section 2.2.2). */

/** The path of robots.txt itself, which is always allowed. */
export const ROBOTS_PATH = '/robots.txt';

/** A compiled pattern: the text before its first `*`, and those after each. */
interface Matcher {
  allow: boolean;
  first: string;
  rest: string[];
  toEnd: boolean;
  length: number;
}

/**
 * Maximum characters that all patterns together may scan for one path: some milliseconds. A thousand patterns need a
 * tenth.
 */
const MAX_STEPS = 2_000_000;

/** Every product is checked against the policy, so its patterns are compiled once. */
const compiled = new WeakMap<RobotsPolicy, Matcher[]>();

/**
 * Whether the policy allows a path. The longest matching pattern decides; of an `allow` and a `disallow` of the same
 * length, the `allow`. The time is at most proportional to the path for each `*` of each rule; where all rules together
 * take longer than any real robots.txt, the answer is no.
 *
 * @param path with its query, as sent over the wire, in any percent-encoding
 */
export function isAllowed(policy: RobotsPolicy, path: string): boolean {
  if (path === ROBOTS_PATH || policy.access === 'all') return true;
  if (policy.access === 'none') return false;
  let matchers = compiled.get(policy);
  // Longest first, and allow before disallow, so that the first match decides.
  if (!matchers) {
    matchers = policy.rules.map(compileRule).sort((a, b) => b.length - a.length || Number(b.allow) - Number(a.allow));
    compiled.set(policy, matchers);
  }
  const text = normalise(path === '' ? '/' : path).replace(/[*$]/g, (char) => (char === '*' ? '%2A' : '%24'));
  const budget = { steps: MAX_STEPS };
  const decisive = matchers.find((matcher) => matches(matcher, text, budget));
  return budget.steps >= 0 && (decisive?.allow ?? true);
}

function compileRule({ allow, pattern }: RobotsRule): Matcher {
  const toEnd = pattern.endsWith('$');
  // A `$` elsewhere stands for itself.
  const body = normalise(toEnd ? pattern.slice(0, -1) : pattern).replaceAll('$', '%24');
  const [first = body, ...rest] = body.split('*');
  return { allow, first, rest, toEnd, length: body.length + Number(toEnd) };
}

/** Each text is matched at its first position after the previous one: if any match exists, this finds one. */
function matches({ first, rest, toEnd }: Matcher, path: string, budget: { steps: number }): boolean {
  if (budget.steps < 0 || !path.startsWith(first)) return false;
  let at = first.length;
  for (const [i, text] of rest.entries()) {
    if (toEnd && i === rest.length - 1) return path.length - text.length >= at && path.endsWith(text);
    const found = path.indexOf(text, at);
    budget.steps -= (found === -1 ? path.length : found) - at + 1;
    if (found === -1 || budget.steps < 0) return false;
    at = found + text.length;
  }
  return !toEnd || path.length === at;
}

const UNRESERVED = /[A-Za-z0-9._~-]/;

/** Normalizes a path (RFC 9309, 2.2.2): unreserved characters plain, all others that are not reserved encoded. */
function normalise(text: string): string {
  return text.toWellFormed().replace(/%[0-9A-Fa-f]{2}|%|[^\w.~:/?#[\]@!$&'()*+,;=%-]+/g, (found) => {
    if (!/^%[0-9A-Fa-f]{2}$/.test(found)) return encodeURIComponent(found);
    const char = String.fromCharCode(Number.parseInt(found.slice(1), 16));
    return UNRESERVED.test(char) ? char : found.toUpperCase();
  });
}

export interface RobotsRule {
  allow: boolean;
  /** The pattern as written: `*` matches any text, a final `$` the end of the path. */
  pattern: string;
}

export interface RobotsPolicy {
  /** Changes when anything below does. */
  version: string;
  /**
   * all    everything is allowed: there is no robots.txt (4xx), or nothing in it applies to us
   * none   nothing is allowed: robots.txt is unavailable (5xx, 429, timeout, no connection)
   * rules  the rules decide
   */
  access: 'all' | 'none' | 'rules';
  rules: RobotsRule[];
  crawlDelayMs: number | null;
  /** One line for users: where the policy comes from. */
  source: string;
  /**
   * The policy of each domain of a shop with several, in the order of `site.product_url`. The rules of the whole are
   * empty then; its access is `none`, and its Crawl-delay not null, if that holds at every domain.
   */
  domains?: readonly RobotsPolicy[];
  /**
   * The policy of each further host, in the order of `site.follow.hosts`; only a site with one domain has some. The
   * Crawl-delay of the whole is the longest of all, as all requests are in one pace.
   */
  further?: readonly RobotsPolicy[];
}

/** A policy that was just read. */
export interface RobotsReading extends RobotsPolicy {
  /** The site asks not to be asked again before. */
  retryAfterMs?: number;
  /** How far the clock of the site is ahead of ours, where that is more than `WRONG_CLOCK_MS`. */
  skewMs?: number;
}

/** The policy at one domain of the shop; null before it was first read. */
export const policyAt = <P extends RobotsPolicy | null>(policy: P, domain: number): RobotsPolicy | P =>
  policy?.domains?.[domain] ?? policy;

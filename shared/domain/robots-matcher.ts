/** Whether robots.txt lets us ask for a path (RFC 9309, section 2.2.2). */
/** The path itself may always be asked for. */
export const ROBOTS_PATH = '/robots.txt';

/** A pattern made ready: the texts between its `*`. */
interface Matcher {
  allow: boolean;
  texts: string[];
  toEnd: boolean;
  length: number;
}

/** Characters that all patterns together may look through for one path: some milliseconds. A thousand patterns take a tenth of it. */
const MAX_STEPS = 2_000_000;

/** A policy is asked about each product: its patterns are made ready once. */
const compiled = new WeakMap<RobotsPolicy, Matcher[]>();

/**
 * Whether the policy lets us ask for a path. The longest pattern that matches decides; of an `allow` and a `disallow` of
 * the same length the `allow`. Takes at most time in proportion to the path for each `*` of each rule, and where all of them
 * take longer than patterns of people ever do, the answer is no.
 *
 * @param path with its query, as it goes over the wire; percent-encoded in whatever way
 */
export function isAllowed(policy: RobotsPolicy, path: string): boolean {
  if (path === ROBOTS_PATH || policy.access === 'all') return true;
  if (policy.access === 'none') return false;
  let matchers = compiled.get(policy);
  // The longest first, and allow before disallow, so that the first match is the one that decides.
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
  return { allow, texts: body.split('*'), toEnd, length: body.length + Number(toEnd) };
}

/** Each text is taken at its first place after the one before: if any choice of places fits, that one does. */
function matches({ texts, toEnd }: Matcher, path: string, budget: { steps: number }): boolean {
  if (budget.steps < 0) return false;
  const first = texts[0]!;
  if (!path.startsWith(first)) return false;
  if (texts.length === 1) return !toEnd || path.length === first.length;
  const last = toEnd ? texts.length - 1 : texts.length;
  let at = first.length;
  for (let i = 1; i < last; i++) {
    const found = path.indexOf(texts[i]!, at);
    budget.steps -= (found === -1 ? path.length : found) - at + 1;
    if (found === -1 || budget.steps < 0) return false;
    at = found + texts[i]!.length;
  }
  if (!toEnd) return true;
  const tail = texts[last]!;
  return path.length - tail.length >= at && path.endsWith(tail);
}

const UNRESERVED = /[A-Za-z0-9._~-]/;

/** One spelling for each path (RFC 9309, 2.2.2): unreserved characters plain, everything else that is not reserved encoded. */
function normalise(text: string): string {
  return text.toWellFormed().replace(/%[0-9A-Fa-f]{2}|%|[^\w.~:/?#[\]@!$&'()*+,;=%-]+/g, (found) => {
    if (!/^%[0-9A-Fa-f]{2}$/.test(found)) return encodeURIComponent(found);
    const char = String.fromCharCode(Number.parseInt(found.slice(1), 16));
    return UNRESERVED.test(char) ? char : found.toUpperCase();
  });
}
export interface RobotsRule {
  allow: boolean;
  /** As written: `*` stands for any text, a final `$` for the end of the path. */
  pattern: string;
}
export interface RobotsPolicy {
  /** Changes when anything below does. */
  version: string;
  /**
   * all    everything is allowed: there is no robots.txt (4xx), or nothing in it is for us
   * none   nothing is allowed: robots.txt cannot be had (5xx, time-out, no connection)
   * rules  the rules decide
   */
  access: 'all' | 'none' | 'rules';
  rules: RobotsRule[];
  crawlDelayMs: number | null;
  /** One line for people: where this comes from. */
  source: string;
}

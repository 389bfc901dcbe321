/**
 * Reads a robots.txt in linear time into what is distributed to the fleet: the rules for our own User-Agent (RFC 9309).
 */
import { formatDuration } from './quantity.ts';
import { policyAt, type RobotsPolicy, type RobotsReading, type RobotsRule } from './robots-matcher.ts';

export { ROBOTS_PATH, isAllowed } from './robots-matcher.ts';

/** The result of requesting robots.txt. */
export type RobotsOutcome =
  /** The last reply; `text` matters for 2xx only. */
  | { kind: 'reply'; status: number; text: string; retryAfterMs: number | null }
  /** Failed redirects: too many, circular, or without a target. */
  | { kind: 'lost'; detail: string }
  /** No reply: a timeout, no connection, a forbidden address, or an incomplete body. */
  | { kind: 'unreachable'; detail: string };

/**
 * The policy for an outcome, without its version (RFC 9309, 2.3.1): a 2xx reply is parsed; 4xx and failed redirects
 * mean that there are no rules; anything else means that the site must not be crawled for now. So does 429: a site that
 * refuses even this request wants none.
 *
 * @param userAgent our whole User-Agent header
 * @param url the URL of robots.txt; named in `source`
 */
export function policyFrom(outcome: RobotsOutcome, userAgent: string, url: string): Omit<RobotsReading, 'version'> {
  const none = { rules: [], crawlDelayMs: null };
  if (outcome.kind === 'unreachable')
    return { access: 'none', ...none, source: `${url} is unavailable: ${outcome.detail}` };
  if (outcome.kind === 'lost')
    return { access: 'all', ...none, source: `the redirects of ${url} fail: ${outcome.detail}` };
  const { status, text, retryAfterMs } = outcome;
  if (status >= 400 && status < 500 && status !== 429)
    return { access: 'all', ...none, source: `${url} does not exist (${status})` };
  if (status < 200 || status >= 300) {
    const source = `${url} answers ${status}`;
    if (retryAfterMs === null) return { access: 'none', ...none, source };
    const pause = `and asks for a pause of ${formatDuration(retryAfterMs)}`;
    return { access: 'none', ...none, source: `${source} ${pause}`, retryAfterMs };
  }
  const { rules, crawlDelayMs } = parseRobots(text, userAgent);
  const delay = crawlDelayMs === null ? '' : `, Crawl-delay ${crawlDelayMs / 1_000} s`;
  return {
    access: rules.length > 0 ? 'rules' : 'all',
    rules,
    crawlDelayMs,
    source: `${url}: ${rules.length} ${rules.length === 1 ? 'rule' : 'rules'} for ${productToken(userAgent)}${delay}`,
  };
}

/** The policy of a shop: that of its one domain, or of all of them together. */
export function combinePolicies(readings: readonly RobotsReading[]): RobotsReading {
  const [first, ...others] = readings;
  if (first !== undefined && others.length === 0) return first;
  const policies = readings.map(({ version, access, rules, crawlDelayMs, source }): RobotsPolicy => {
    return { version, access, rules, crawlDelayMs, source };
  });
  const retryAfterMs = Math.max(...readings.map((reading) => reading.retryAfterMs ?? 0));
  // Where the clock of one site is right, ours is.
  const skewMs = readings.map((reading) => reading.skewMs ?? 0).reduce((a, b) => (Math.abs(a) < Math.abs(b) ? a : b));
  const everywhere = (access: RobotsPolicy['access']): boolean => policies.every((policy) => policy.access === access);
  return {
    version: policies.map(({ version }) => version).join(' '),
    access: everywhere('none') ? 'none' : everywhere('all') ? 'all' : 'rules',
    rules: [],
    crawlDelayMs: Math.min(...policies.map(({ crawlDelayMs }) => crawlDelayMs ?? 0)) || null,
    source: policies.map(({ source }) => source).join('; '),
    domains: policies,
    ...(retryAfterMs > 0 && { retryAfterMs }),
    ...(skewMs !== 0 && { skewMs }),
  };
}

/** The policy of a site with those of its further hosts; itself without any. */
export function withFurther(site: RobotsReading, readings: readonly RobotsReading[]): RobotsReading {
  if (readings.length === 0) return site;
  const further = readings.map(({ version, access, rules, crawlDelayMs, source }): RobotsPolicy => {
    return { version, access, rules, crawlDelayMs, source };
  });
  const all = [site, ...further];
  return {
    ...site,
    version: all.map(({ version }) => version).join(' '),
    crawlDelayMs: Math.max(...all.map(({ crawlDelayMs }) => crawlDelayMs ?? 0)) || null,
    source: all.map(({ source }) => source).join('; '),
    further,
  };
}

/**
 * The same policy with at least these Crawl-delays (milliseconds), one for each domain; itself where all are longer.
 */
export function withDelays(policy: RobotsPolicy, leastMs: readonly number[]): RobotsPolicy {
  const known = leastMs.map((_, domain) => policyAt(policy, domain));
  const slower = leastMs.map((ms, domain): RobotsPolicy => {
    const own = policyAt(policy, domain);
    return ms > (own.crawlDelayMs ?? 0) ? { ...own, crawlDelayMs: ms, version: `${own.version}+${ms}` } : own;
  });
  return slower.every((own, domain) => own === known[domain]) ? policy : combinePolicies(slower);
}

/** Maximum length of a robots.txt that counts; a line cut off by it does not. */
export const MAX_ROBOTS_BYTES = 512_000;

/**
 * The rules and the Crawl-delay of a robots.txt that apply to us: those of all groups that name our product token, else
 * those of all groups for `*`. Never throws; unknown lines are skipped.
 *
 * @param userAgent our whole User-Agent header, such as `examplebot/1.0 (+https://example.jp/bot)`
 */
export function parseRobots(text: string, userAgent: string): { rules: RobotsRule[]; crawlDelayMs: number | null } {
  const token = productToken(userAgent);
  const own = new Group();
  const wildcard = new Group();
  let open: Group[] = [];
  /** Consecutive User-agent lines share the following group. */
  let naming = false;
  for (const line of linesOf(text)) {
    const field = readField(line);
    if (!field) continue;
    if (field.name === 'user-agent') {
      if (!naming) open = [];
      naming = true;
      // `*` alone matches every agent; after a name Google's parser ignores it, and 67 of 4,231 real files write
      // `name*`.
      const agent = /^\*(\s|$)/.test(field.value) ? '*' : tokenOf(field.value);
      const group = agent === '*' ? wildcard : agent === token ? own : null;
      if (group && !open.includes(group)) open.push(group);
      if (group) group.named = true;
    } else if (field.name === 'allow' || field.name === 'disallow') {
      naming = false;
      // An empty pattern matches nothing: `Disallow:` means that everything is allowed.
      if (field.value === '') continue;
      for (const group of open) group.rules.push({ allow: field.name === 'allow', pattern: field.value });
    } else if (field.name === 'crawl-delay') {
      // Not part of the RFC, but it ends the list of names: `User-agent: *`, `Crawl-delay: 10` above another
      // `User-agent` must not apply that agent's rules to every agent.
      naming = false;
      for (const group of open) group.delay(field.value);
    }
  }
  const { rules, crawlDelayMs } = own.named ? own : wildcard;
  return { rules, crawlDelayMs };
}

/**
 * The sitemaps that a robots.txt names, for every agent and in any position (sitemaps.org), on any host: absolute http
 * and https URLs, each once, in order.
 *
 * @param url of robots.txt: some name a sitemap by its path
 */
export function sitemapsOf(text: string, url: string): string[] {
  const found = new Set<string>();
  for (const line of linesOf(text)) {
    const field = readField(line);
    if (field?.name !== 'sitemap' || field.value === '') continue;
    const named = URL.parse(field.value, url);
    if (named && /^https?:$/.test(named.protocol)) found.add(named.href);
  }
  return [...found];
}

/**
 * Our name in a robots.txt, in lower case: `examplebot` for `examplebot/1.0 (+https://example.jp/bot)`, and for
 * `Mozilla/5.0 (compatible; examplebot/1.0; +https://example.jp/bot)`.
 */
export function productToken(userAgent: string): string {
  const compatible = /^mozilla\/[^(]*\(compatible;(.*)/is.exec(userAgent)?.[1];
  return tokenOf(compatible ?? userAgent);
}

/** Up to the version, or anything else that follows the name. */
function tokenOf(text: string): string {
  return text
    .trim()
    .replace(/[\s/;(),*].*$/s, '')
    .toLowerCase();
}

class Group {
  named = false;
  readonly rules: RobotsRule[] = [];
  crawlDelayMs: number | null = null;

  /** The longest of several counts. Only plain numbers of seconds are accepted. */
  delay(value: string): void {
    if (!/^\d{1,9}(\.\d{1,9})?$/.test(value)) return;
    this.crawlDelayMs = Math.max(this.crawlDelayMs ?? 0, Math.round(Number(value) * 1_000));
  }
}

function linesOf(text: string): string[] {
  const start = text.startsWith('\uFEFF') ? 1 : 0;
  return cutToLimit(text.slice(start)).split(/[\r\n]+/);
}

/** A truncated rule could allow or forbid more than intended, so the last line is dropped too. */
function cutToLimit(text: string): string {
  if (text.length * 3 <= MAX_ROBOTS_BYTES) return text;
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= MAX_ROBOTS_BYTES) return text;
  const kept = bytes.subarray(0, MAX_ROBOTS_BYTES);
  return new TextDecoder().decode(kept.subarray(0, Math.max(kept.lastIndexOf(10), kept.lastIndexOf(13), 0)));
}

/** `name: value` without comment and surrounding white space; names in lower case, common misspellings corrected. */
function readField(line: string): { name: string; value: string } | null {
  const comment = line.indexOf('#');
  const plain = comment === -1 ? line : line.slice(0, comment);
  const colon = plain.indexOf(':');
  if (colon === -1) return readBareField(plain);
  const name = plain.slice(0, colon).trim().toLowerCase();
  return { name: ALIASES.get(name) ?? name, value: plain.slice(colon + 1).trim() };
}

/** `disallow /a` without the colon: exactly two words, as in Google's parser. */
function readBareField(line: string): { name: string; value: string } | null {
  const [name = '', value, ...more] = line.trim().split(/\s+/);
  if (value === undefined || more.length > 0) return null;
  return { name: ALIASES.get(name.toLowerCase()) ?? name.toLowerCase(), value };
}

const ALIASES = new Map([
  ['user agent', 'user-agent'],
  ['useragent', 'user-agent'],
  ['dissallow', 'disallow'],
  ['disalow', 'disallow'],
  ['crawldelay', 'crawl-delay'],
  ['crawl delay', 'crawl-delay'],
  ['site-map', 'sitemap'],
]);

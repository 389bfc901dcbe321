/** Reads the text of a robots.txt (RFC 9309, section 2.2.1), in linear time. */
import type { RobotsRule } from './robots-matcher.ts';

/** So much of a robots.txt counts; a line cut by it does not. */
export const MAX_ROBOTS_BYTES = 512_000;

/**
 * The rules and the Crawl-delay that a robots.txt has for us: those of all groups that name our product token, else those
 * of all groups for `*`. Never throws; lines that are not understood are left out.
 *
 * @param userAgent our whole User-Agent header, such as `examplebot/1.0 (+https://example.jp/bot)`
 */
export function parseRobots(text: string, userAgent: string): { rules: RobotsRule[]; crawlDelayMs: number | null } {
  const token = productToken(userAgent);
  const own = new Group();
  const everybody = new Group();
  let open: Group[] = [];
  /** User-agent lines in a row share the group that follows. */
  let naming = false;
  for (const line of linesOf(text)) {
    const field = readField(line);
    if (!field) continue;
    if (field.name === 'user-agent') {
      if (!naming) open = [];
      naming = true;
      // `*` alone is everybody; behind a name Google's parser leaves it out, and 67 of 4,231 real files write `name*`.
      const agent = /^\*(\s|$)/.test(field.value) ? '*' : tokenOf(field.value);
      const group = agent === '*' ? everybody : agent === token ? own : null;
      if (group && !open.includes(group)) open.push(group);
      if (group) group.named = true;
    } else if (field.name === 'allow' || field.name === 'disallow') {
      naming = false;
      // An empty pattern matches nothing: `Disallow:` is the way to say that all is allowed.
      if (field.value === '') continue;
      for (const group of open) group.rules.push({ allow: field.name === 'allow', pattern: field.value });
    } else if (field.name === 'crawl-delay') {
      // No part of the RFC, but it ends the row of names: `User-agent: *`, `Crawl-delay: 10` above another's
      // `User-agent` must not put everybody under that one's rules.
      naming = false;
      for (const group of open) group.delay(field.value);
    }
  }
  const { rules, crawlDelayMs } = own.named ? own : everybody;
  return { rules, crawlDelayMs };
}

/**
 * The name that a robots.txt calls us by, in lower case: `examplebot` of `examplebot/1.0 (+https://example.jp/bot)`, and of
 * `Mozilla/5.0 (compatible; examplebot/1.0; +https://example.jp/bot)`.
 */
export function productToken(userAgent: string): string {
  const compatible = /^mozilla\/[^(]*\(compatible;(.*)/is.exec(userAgent)?.[1];
  return tokenOf(compatible ?? userAgent);
}

/** Up to the version or whatever follows the name. */
function tokenOf(text: string): string {
  return text
    .trim()
    .split(/[\s/;(),*]/, 1)[0]!
    .toLowerCase();
}

class Group {
  named = false;
  readonly rules: RobotsRule[] = [];
  crawlDelayMs: number | null = null;

  /** Of several the longest counts. What is no plain number of seconds does not. */
  delay(value: string): void {
    if (!/^\d{1,9}(\.\d{1,9})?$/.test(value)) return;
    this.crawlDelayMs = Math.max(this.crawlDelayMs ?? 0, Math.round(Number(value) * 1_000));
  }
}

function linesOf(text: string): string[] {
  const start = text.startsWith('\uFEFF') ? 1 : 0;
  return cutToLimit(text.slice(start)).split(/[\r\n]+/);
}

/** A rule that is cut off could allow or forbid more than it says, so the last line goes too. */
function cutToLimit(text: string): string {
  if (text.length * 3 <= MAX_ROBOTS_BYTES) return text;
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= MAX_ROBOTS_BYTES) return text;
  const kept = bytes.subarray(0, MAX_ROBOTS_BYTES);
  return new TextDecoder().decode(kept.subarray(0, Math.max(kept.lastIndexOf(10), kept.lastIndexOf(13), 0)));
}

/** `name: value` without comment and white space around; names in lower case, common misspellings put right. */
function readField(line: string): { name: string; value: string } | null {
  const comment = line.indexOf('#');
  const plain = comment === -1 ? line : line.slice(0, comment);
  const colon = plain.indexOf(':');
  if (colon === -1) return readBareField(plain);
  const name = plain.slice(0, colon).trim().toLowerCase();
  return { name: ALIASES.get(name) ?? name, value: plain.slice(colon + 1).trim() };
}

/** `disallow /a`, without its colon: two words and no more, as Google's parser takes it. */
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
]);

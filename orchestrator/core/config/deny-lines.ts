/** The lines of `site.follow.deny`: what they deny. Pure. */
import { canonicalForm, MAX_PATH_CHARS } from '../../../shared/domain/canonical-url.ts';
import { shortestPrefixes } from '../../../shared/domain/deny-list.ts';
import { siteHostOf } from '../../../shared/domain/same-site.ts';

/**
 * The prefix of canonical paths that a line of a deny file denies: the line is a domain, a URL or the beginning of a
 * path, in any spelling. `other-site`: it names one. `idle`: no link can match it. Null for an empty line.
 */
function readDenyLine(line: string, base: URL): { prefix: string } | 'other-site' | 'idle' | null {
  const text = line.replace(/#.*$/, '').trim();
  if (text === '') return null;
  const isPath = text.startsWith('/');
  const url = URL.parse(isPath ? base.origin + text : /^https?:\/\//i.test(text) ? text : `https://${text}`);
  if (url === null) return 'idle';
  if (!isPath && !isSameOrParent(siteHostOf(base), siteHostOf(url)))
    return /^[\w-]+(\.[\w-]+)+\.?$|^\[/.test(url.hostname) ? 'other-site' : 'idle';
  const canonical = canonicalForm(url);
  // Of a query of nothing but tracking parameters nothing is left: the line would deny the whole path.
  if (canonical === null || canonical.length > MAX_PATH_CHARS || (url.search !== '' && !canonical.includes('?')))
    return 'idle';
  return { prefix: text.endsWith('?') && !canonical.includes('?') ? `${canonical}?` : canonical };
}

/** The lines that no link to these hosts can match. Lines with the domain of another site are not among them. */
export const idleDenyLines = (lines: readonly string[], origins: readonly string[]): string[] =>
  lines.filter((line) => origins.every((origin) => readDenyLine(line, new URL(origin)) === 'idle'));

/** What a `DenyList` takes, from the lines. @param origins of the site, and of its further hosts */
export const denyPrefixes = (lines: readonly string[], origins: readonly string[]): string[] =>
  origins.flatMap((origin) => {
    const read = lines.map((line) => readDenyLine(line, new URL(origin)));
    const prefixes = read.flatMap((one) => (one !== null && typeof one === 'object' ? [one.prefix] : []));
    return shortestPrefixes(prefixes).map((prefix) => (origin === origins[0] ? prefix : origin + prefix));
  });

const isSameOrParent = (host: string, denied: string): boolean => host === denied || host.endsWith(`.${denied}`);

/** The lines of `site.follow.deny`: what they deny. Pure. */
import { canonicalForm, MAX_PATH_CHARS } from '../../../shared/domain/canonical-url.ts';
import { shortestPrefixes } from '../../../shared/domain/deny-list.ts';
import { siteHostOf } from '../../../shared/domain/same-site.ts';

/** Stands for any host, where a line has a path alone. */
const ANYWHERE = 'https://any.invalid';

/**
 * The prefix of canonical paths that a line of a deny file denies: the line is a domain, a URL or the beginning of a
 * path, in any spelling. `other-site`: it names one. `idle`: no link can match it. Null for an empty line.
 * @param base null where pages may be on any host: each name is one of them, and stays before its prefix
 */
function readDenyLine(line: string, base: URL | null): { prefix: string } | 'other-site' | 'idle' | null {
  const text = line.replace(/#.*$/, '').trim();
  if (text === '') return null;
  const isPath = text.startsWith('/');
  const url = URL.parse(
    isPath ? (base?.origin ?? ANYWHERE) + text : /^https?:\/\//i.test(text) ? text : `https://${text}`,
  );
  if (url === null) return 'idle';
  const isName = /^[\w-]+(\.[\w-]+)+\.?$|^\[/.test(url.hostname);
  if (!isPath && (base === null ? !isName : !isSameOrParent(siteHostOf(base), siteHostOf(url))))
    return isName ? 'other-site' : 'idle';
  const canonical = canonicalForm(url);
  // Of a query of nothing but tracking parameters nothing is left: the line would deny the whole path.
  if (canonical === null || canonical.length > MAX_PATH_CHARS || (url.search !== '' && !canonical.includes('?')))
    return 'idle';
  const origin = base === null && !isPath ? `https://${siteHostOf(url)}` : '';
  return { prefix: origin + (text.endsWith('?') && !canonical.includes('?') ? `${canonical}?` : canonical) };
}

/** The URLs that lines are read against. @param origins none: pages may be on any host */
const basesOf = (origins: readonly string[]): readonly (URL | null)[] =>
  origins.length === 0 ? [null] : origins.map((origin) => new URL(origin));

/** The lines that no link to these hosts can match. Lines with the domain of another site are not among them. */
export const idleDenyLines = (lines: readonly string[], origins: readonly string[]): string[] =>
  lines.filter((line) => basesOf(origins).every((base) => readDenyLine(line, base) === 'idle'));

/** What a `DenyList` takes, from the lines. @param origins of the site, and of its further hosts; none: of any host */
export const denyPrefixes = (lines: readonly string[], origins: readonly string[]): string[] =>
  basesOf(origins).flatMap((base, i) => {
    const read = lines.map((line) => readDenyLine(line, base));
    const prefixes = read.flatMap((one) => (one !== null && typeof one === 'object' ? [one.prefix] : []));
    return shortestPrefixes(prefixes).map((prefix) => (i === 0 ? prefix : origins[i]! + prefix));
  });

const isSameOrParent = (host: string, denied: string): boolean => host === denied || host.endsWith(`.${denied}`);

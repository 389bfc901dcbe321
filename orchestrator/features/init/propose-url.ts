/** `init --url`: from the addresses of product pages to `site.product_url`, else to `site.hosts`. */
import { decodePercent } from '../../../shared/domain/percent.ts';
import { canonicalPath, isTracking } from '../../../shared/domain/canonical-url.ts';
import { findIdFault } from '../../../shared/domain/product.ts';
import { sharesHost } from '../../../shared/domain/same-site.ts';

/**
 * The first address of each page. Those that differ only in spelling, tracking parameters or fragment are one page's.
 */
export function distinctPages(urls: readonly string[]): string[] {
  const pages = new Map<string, string>();
  for (const url of urls) {
    const page = canonicalPath(withoutTracking(url), new URL(urls[0]!)) ?? url;
    if (!pages.has(page)) pages.set(page, url);
  }
  return [...pages.values()];
}

/**
 * The URL with `{id}` in place of what differs, and the ID of each page. With one page the ID is a parameter named so,
 * else the last part of the path that has a digit, else another parameter that has one, else the last part of the path.
 * Null when nothing can be an ID.
 */
export function proposeProductUrl(given: readonly string[]): { template: string; ids: string[] } | null {
  const urls = given.map(withoutTracking);
  const [first = '', ...others] = urls;
  if (others.length === 0) return fromOne(first);
  const host = new URL(first).origin.length + 1;
  let before = 0;
  while (urls.every((url) => url[before] === first[before]) && before < first.length) before++;
  let after = 0;
  const shortest = Math.min(...urls.map((url) => url.length));
  while (after < shortest - before && urls.every((url) => url.at(-1 - after) === first.at(-1 - after))) after++;
  // Digits that two IDs share at their ends belong to the IDs.
  while (before > host && /[\p{L}\p{N}%._~-]/u.test(first.charAt(before - 1))) before--;
  while (after > 0 && /[\p{L}\p{N}%_~-]/u.test(first.charAt(first.length - after))) after--;
  if (before < host) return null;
  const parts = urls.map((url) => url.slice(before, url.length - after));
  if (parts.some((part) => part === '' || /[/?&]/.test(part))) return null;
  const template = `${first.slice(0, before)}{id}${after === 0 ? '' : first.slice(-after)}`;
  return { template, ids: parts.map(decodePercent) };
}

/** Products with URLs of their own. */
export interface OwnUrls {
  /** For `site.hosts`. */
  hosts: string[];
  /** What names each page in its URL; where that is no name of its own, the path. */
  ids: string[];
  urls: string[];
}

/** What is proposed where no part of the URLs can be an ID. */
export function proposeHosts(given: readonly string[]): OwnUrls {
  const pages = given.map((url) => new URL(withoutTracking(url)));
  const hosts: string[] = [];
  for (const { href, origin } of pages) if (!hosts.some((host) => sharesHost(host, href))) hosts.push(origin);
  const names = pages.map(({ pathname }) => decodePercent(/([^/]+?)(?:\.\w+)?\/*$/.exec(pathname)?.[1] ?? ''));
  const isNamed = new Set(names).size === names.length && names.every((name) => findIdFault(name) === null);
  const ids = isNamed ? names : pages.map(({ host, pathname, search }) => host + pathname + search);
  return { hosts, ids, urls: pages.map(({ href }) => href) };
}

/** Ends with a parameter that has the ID of a product. */
const ID_NAME = /[?&](?:(?:p|prod|product|item|article)[_-]?)?(?:id|sku|nr|no|code)=$/i;

function fromOne(url: string): { template: string; ids: string[] } | null {
  const { origin } = new URL(url);
  const query = url.includes('?') ? url.indexOf('?') - origin.length : Infinity;
  const parts = [...url.slice(origin.length).matchAll(/[^/?&=#]+/g)];
  const withDigits = parts.filter(({ 0: text }) => /\d/.test(decodePercent(text)));
  const isNamed = ({ index }: RegExpExecArray): boolean => ID_NAME.test(url.slice(0, origin.length + index));
  const chosen =
    parts.findLast(isNamed) ??
    withDigits.findLast(({ index }) => index < query) ??
    withDigits.at(-1) ??
    parts.findLast(({ index }) => index < query);
  if (!chosen) return null;
  const at = origin.length + chosen.index;
  const [text] = chosen;
  // The ending of a file is no part of an ID.
  const id = text.replace(/\.(?:html?|php|aspx?|jsp)$/i, '');
  return { template: `${url.slice(0, at)}{id}${url.slice(at + id.length)}`, ids: [decodePercent(id)] };
}

/** The address without tracking parameters and fragment. Its braces are encoded: a template has its own. */
function withoutTracking(url: string): string {
  const plain = url.replace(/#.*$/s, '').replaceAll('{', '%7B').replaceAll('}', '%7D');
  const [page = '', query] = plain.split(/\?(.*)/s);
  if (query === undefined) return page;
  const kept = query.split('&').filter((one) => !isTracking(one.replace(/=.*$/s, '')));
  return kept.length === 0 ? page : `${page}?${kept.join('&')}`;
}

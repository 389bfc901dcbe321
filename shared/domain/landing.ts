/**
 * Where the request for a product ended, after redirects: at its own page, or at one that does not name it. The latter
 * may be the page of many products: a consent wall, a category, a log-in.
 */
import { canonicalForm } from './canonical-url.ts';
import { type ProductUrl, templatesOf } from './domains.ts';
import { hostGroupOf } from './host-key.ts';
import { fillTemplate, PATH_MARK, SEGMENTS_MARK } from './product.ts';
import { siteHostOf } from './same-site.ts';

/** A product and the URL that was requested for it. */
export interface Requested {
  id: string;
  url: string;
}

/**
 * True when the address has the product's ID in its path or in a parameter, or the path of its URL, unless that is at
 * somebody else's site: `/about` is at many. A parameter that leads back (`?return=/item/7`) names nothing.
 */
export function namesProduct(address: string, product: Requested): boolean {
  const url = URL.parse(address);
  const own = URL.parse(product.url);
  if (url === null || own === null) return false;
  const { path, parameters } = withoutEcho(url, own);
  const place = decode(path).toLowerCase();
  const id = product.id.toLowerCase();
  if (hasWord(place, id) || parameters.some(({ value }) => hasWord(value.toLowerCase(), id))) return true;
  if (hostGroupOf(url) !== hostGroupOf(own)) return false;
  const ownPath = decode(trimSlash(own.pathname)).toLowerCase();
  return own.search === '' && ownPath !== '' && `${place}/`.includes(`${ownPath}/`);
}

/**
 * One spelling of the page on which the request ended, without what repeats the request; null for the product's own
 * page. Two products with the same result have ended on one page.
 */
export function landingOf(finalUrl: string, product: Requested): string | null {
  const url = URL.parse(finalUrl);
  const own = URL.parse(product.url);
  if (url === null || own === null || namesProduct(finalUrl, product)) return null;
  const page = pageOf(url, own);
  return trimSlash(page) === trimSlash(pageOf(own, null)) ? null : page;
}

/** True for `shop.example/blocked?`: the page whatever its query, as landingOf() never spells one. */
export const isAnyQuery = (page: string): boolean => page.endsWith('?');

/** The page of a product's own URL, as `landingOf` spells pages; null when it is no URL. */
export function pageAt(ownUrl: string): string | null {
  const url = URL.parse(ownUrl);
  return url && trimSlash(pageOf(url, null));
}

/**
 * The ID of the product whose own URL is this page, as `landingOf` spells it; null when it is no product's. Not for
 * products with URLs of their own, whose pages only their list knows (`pageAt`).
 */
export function productAt(productUrl: ProductUrl, page: string): string | null {
  for (const template of templatesOf(productUrl)) {
    const isSegments = template.includes(SEGMENTS_MARK);
    // The URL of all products is that of none: the body names them.
    if (!isSegments && !template.includes('{id}') && !template.endsWith(PATH_MARK)) continue;
    const [before, after] = aroundId(template);
    for (const spelling of template.endsWith(PATH_MARK) ? [page] : [page, trimSlash(page)]) {
      if (!spelling.startsWith(before) || !spelling.endsWith(after)) continue;
      const id = spelling.slice(before.length, Math.max(before.length, spelling.length - after.length));
      if (template.endsWith(PATH_MARK)) return id;
      if (id !== '' && !(isSegments ? /[?&]/ : /[/?&]/).test(id)) return decode(id);
    }
  }
  return null;
}

/** True when a value of the query or a step of the path is an address to return to. */
export function repeatsRequest(address: string, requestedUrl: string): boolean {
  const url = URL.parse(address);
  const own = URL.parse(requestedUrl);
  if (url === null || own === null) return false;
  const { path, parameters } = withoutEcho(url, own);
  return path !== url.pathname || parameters.some(({ isEcho }) => isEcho);
}

interface Parameter {
  name: string;
  value: string;
  isEcho: boolean;
}

/** Echoes are emptied; their names stay. */
function withoutEcho(url: URL, own: URL): { path: string; parameters: Parameter[] } {
  const steps = url.pathname.split('/').map((step) => (step.includes('%') && isEcho(step, own) ? '' : step));
  const parameters = [...url.searchParams].map(([name, value]): Parameter => {
    const echoes = isEcho(value, own);
    return { name, value: echoes ? '' : value, isEcho: echoes };
  });
  return { path: steps.join('/'), parameters };
}

/** How often an address may be encoded: a return address travels through a few pages. */
const MAX_ENCODINGS = 3;

/**
 * True when the text is an address, whatever it names, or has the path of the requested URL in it: percent-encoded or
 * in Base64, too. A page that sends visitors back names where to in its own spelling.
 */
function isEcho(text: string, own: URL): boolean {
  const request = decode((own.pathname + own.search).slice(1)).toLowerCase();
  const repeats = (form: string): boolean => {
    if (/^(?:https?:\/\/|\/|\?)/i.test(form)) return true;
    // `item/7` as a whole; a bare ID is no echo.
    return request.includes('/') && form.toLowerCase().includes(request);
  };
  for (let form = text, round = 0; round < MAX_ENCODINGS; round++) {
    if (repeats(form)) return true;
    const next = decode(form);
    if (next === form) break;
    form = next;
  }
  return /^[\w+/-]{8,}={0,2}$/.test(text) && repeats(fromBase64(text));
}

function fromBase64(text: string): string {
  try {
    return atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  } catch {
    return '';
  }
}

/** Host, path and query in one spelling. Without `own` nothing is an echo. */
function pageOf(url: URL, own: URL | null): string {
  const plain = new URL(url);
  if (own !== null) {
    const { path, parameters } = withoutEcho(url, own);
    plain.pathname = path;
    plain.search = new URLSearchParams(parameters.map(({ name, value }): [string, string] => [name, value])).toString();
  }
  const port = url.port === '' ? '' : `:${url.port}`;
  return siteHostOf(url) + port + (canonicalForm(plain) ?? plain.pathname);
}

/** What stands before and after the ID in the pages of a template. */
function aroundId(template: string): [before: string, after: string] {
  const mark = 'crawlfleet0id';
  const isPath = template.endsWith(PATH_MARK);
  const page = pageOf(new URL(fillTemplate(template, isPath ? `/${mark}` : mark)), null);
  const at = page.indexOf(mark) - (isPath ? 1 : 0);
  return [page.slice(0, at), page.slice(at + mark.length + (isPath ? 1 : 0))];
}

const trimSlash = (path: string): string => path.replace(/\/+$/, '');

/** The text as it is where it is not encoded rightly. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const WORD = /[\p{L}\p{N}]/u;

/** True when `wanted` stands in the text with no letter or digit on either side. */
function hasWord(text: string, wanted: string): boolean {
  if (wanted === '') return false;
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) {
    if (!WORD.test(text[at - 1] ?? '') && !WORD.test(text[at + wanted.length] ?? '')) return true;
  }
  return false;
}

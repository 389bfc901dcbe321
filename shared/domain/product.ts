/** Product IDs from the user's database, and the URLs made from them. */
import { domainOf, type ProductUrl, templateAt, templatesOf, URL_MARK } from './domains.ts';
import type { Validators } from './validators.ts';

/** Longest ID in UTF-8 bytes: 500 characters of the longest kind. */
const MAX_ID_BYTES = 2_000;
/** MySQL's index limit of 3,072 bytes at 4 bytes a character: the result table's primary key cannot be longer. */
export const MAX_ID_CHARS = 768;

/** Products of a run: the main server keeps their list in memory, 1 GB for this many; V8 has no set of 17 million. */
export const MAX_PRODUCTS = 10_000_000;

/** A product of the plan, numbered 1, 2, 3 …: the number identifies it everywhere inside a run. */
export interface Product {
  n: number;
  /** On the wire, in a discovery its path, and with `site.hosts` its URL. */
  id: string;
  /** Those of the page that the stored row was read from; omitted: the request is unconditional. */
  validators?: Validators;
  /** Of many hosts: the robots.txt of another host that holds for its origin; omitted: that of the origin itself. */
  robots?: string;
}

/** Why an ID is unusable, or null when it is usable. Length is counted in UTF-8 bytes, as in the database. */
export function findIdFault(id: string): string | null {
  if (id === '') return 'is empty';
  // Every URL parser treats them as dot segments, percent-encoded or not.
  if (id === '.' || id === '..') return 'is a dot segment, which no URL can carry';
  if (id.includes('\0')) return 'contains a NUL character';
  // isWellFormed: a lone surrogate has no UTF-8 form, so the database would store a different ID.
  if (!id.isWellFormed()) return 'is not valid Unicode text';
  if (id.length > MAX_ID_CHARS && Array.from(id).length > MAX_ID_CHARS)
    return `is longer than ${MAX_ID_CHARS} characters`;
  if (id.length * 3 > MAX_ID_BYTES && utf8Length(id) > MAX_ID_BYTES) return `is longer than ${MAX_ID_BYTES} bytes`;
  return null;
}

function utf8Length(text: string): number {
  let bytes = 0;
  for (const char of text) bytes += char < '\u0080' ? 1 : char < '\u0800' ? 2 : char.length === 1 ? 3 : 4;
  return bytes;
}

/** Ends the URL template of a discovery, whose products are paths of the site. */
export const PATH_MARK = '/{path}';

/**
 * What a template has where `site.product_url` has `{path}`: the ID as segments of a path. `/{path}` in the settings of
 * a run is a discovery's.
 */
export const SEGMENTS_MARK = '{segments}';

/** The URL of a product: the template of its domain, filled in; with `site.hosts` its own, which is then its `id`. */
export const productUrl = (templates: ProductUrl, id: string): string =>
  fillTemplate(templateAt(templates, domainOf(templates, id)), id);

/**
 * Puts the ID, percent-encoded, in place of `{id}`; or its segments, each encoded, in place of theirs. A path, which
 * begins with a slash, goes as it is in place of `/{path}`; a URL is the result itself where products have their own.
 */
export function fillTemplate(template: string, id: string): string {
  if (template.includes('{id}')) return template.replaceAll('{id}', encode(id));
  if (template.endsWith(PATH_MARK)) return template.slice(0, -PATH_MARK.length) + (id.startsWith('/') ? id : `/${id}`);
  if (template.endsWith(URL_MARK)) return /^[a-z]+:/.test(id) ? id : `${template.slice(0, -URL_MARK.length)}/${id}`;
  return template.replaceAll(SEGMENTS_MARK, () => id.split('/').map(encode).join('/'));
}

const encode = (text: string): string => encodeURIComponent(text).replace(/[!'()*]/g, percent);

/** The origin of each domain, such as `https://shop.example`; the first one is the site. */
export const siteOrigins = (templates: ProductUrl): string[] =>
  templatesOf(templates).map((template) => new URL(fillTemplate(template, 'x')).origin);

const percent = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

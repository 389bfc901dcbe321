/** `init --url`: which fields product pages have, and where. Every place is tried with the extraction of a real run. */
import type { FieldValue, Mapping } from '../../../shared/domain/mapping.ts';
import { decodePercent } from '../../../shared/domain/percent.ts';
import { readMapping } from '../config/read-mapping.ts';
import type { PageReading } from '../trial/ask-crawl-api.ts';

type FieldSource = string | Record<string, string | boolean>;

const meta = (property: string): FieldSource => ({ css: `meta[property="${property}"]`, attr: 'content' });
const item = (name: string): FieldSource => ({ css: `[itemprop="${name}"]` });
const itemContent = (name: string): FieldSource => ({ css: `[itemprop="${name}"]`, attr: 'content' });
const linked = (path: string): FieldSource => ({ json_ld: path });

/** Places of each field: data for machines (https://schema.org/Product, https://ogp.me) before what is shown. */
const PLACES: Readonly<Record<string, readonly FieldSource[]>> = {
  title: [linked('name'), itemContent('name'), item('name'), meta('og:title'), { css: 'h1' }],
  price: [
    { json_ld: 'offers.price', number: true },
    { json_ld: 'offers.lowPrice', number: true },
    { css: '[itemprop="price"]', attr: 'content', number: true },
    { css: 'meta[property="product:price:amount"]', attr: 'content', number: true },
    { css: '[itemprop="price"]', number: true },
    { css: '.price', number: true },
    { css: '[class*="price"]', number: true },
  ],
  currency: [
    linked('offers.priceCurrency'),
    itemContent('priceCurrency'),
    meta('product:price:currency'),
    meta('og:price:currency'),
  ],
  availability: [
    linked('offers.availability'),
    { css: '[itemprop="availability"]', attr: 'href' },
    itemContent('availability'),
    meta('product:availability'),
    { css: '.availability' },
    { css: '.stock' },
  ],
  brand: [linked('brand.name'), linked('brand'), item('brand'), meta('product:brand'), { css: '.brand' }],
  sku: [linked('sku'), itemContent('sku'), item('sku'), { css: '.sku' }],
  gtin: [
    linked('gtin13'),
    linked('gtin'),
    linked('gtin14'),
    linked('gtin12'),
    linked('gtin8'),
    itemContent('gtin13'),
    item('gtin13'),
  ],
  rating: [
    { json_ld: 'aggregateRating.ratingValue', number: true },
    { css: '[itemprop="ratingValue"]', attr: 'content', number: true },
    { css: '[itemprop="ratingValue"]', number: true },
  ],
  reviews: [
    { json_ld: 'aggregateRating.reviewCount', integer: true },
    { json_ld: 'aggregateRating.ratingCount', integer: true },
    { css: '[itemprop="reviewCount"]', attr: 'content', integer: true },
    { css: '[itemprop="reviewCount"]', integer: true },
  ],
  category: [linked('category'), itemContent('category'), item('category'), meta('product:category')],
  image: [linked('image'), meta('og:image'), { css: '[itemprop="image"]', attr: 'src', url: true }],
  description: [linked('description'), meta('og:description'), { css: 'meta[name="description"]', attr: 'content' }],
};

const nameOf = (field: string, place: number): string => `${field}__${place}`;

/** A mapping with a field for every place. */
export function probeMapping(): Mapping {
  const fields = Object.entries(PLACES).flatMap(([field, places]) =>
    places.map((source, i): [string, FieldSource] => [nameOf(field, i), source]),
  );
  return readMapping({ fields: Object.fromEntries(fields) }).mapping;
}

export interface ProposedField {
  name: string;
  source: FieldSource;
  /** What it gives on each page, in the order of the pages; null where nothing. */
  values: FieldValue[];
}

/** The fields that at least one page has, each from the place that gives a value on most pages. */
export function proposeFields(pages: readonly PageReading[]): ProposedField[] {
  const rows = pages.map((page) => (page.outcome === 'read' ? (page.rows?.[0]?.row ?? {}) : {}));
  return Object.entries(PLACES).flatMap(([name, places]): ProposedField[] => {
    const tried = places.map((source, i) => {
      const values = rows.map((row) => row[nameOf(name, i)] ?? null);
      return { name, source, values, found: values.filter((value) => value !== null && value !== '').length };
    });
    const most = Math.max(...tried.map(({ found }) => found));
    const best = tried.find(({ found }) => found === most && most > 0);
    return best ? [{ name: best.name, source: best.source, values: best.values }] : [];
  });
}

/**
 * The URL with `{id}` in place of what differs, and the ID of each page. With one page the ID is the last part of the
 * path that has a digit, else the last one. Null when nothing can be an ID.
 */
export function proposeProductUrl(urls: readonly string[]): { template: string; ids: string[] } | null {
  const [first = '', ...others] = urls;
  if (others.length === 0) return fromOne(first);
  const host = new URL(first).origin.length + 1;
  let before = 0;
  while (urls.every((url) => url[before] === first[before]) && before < first.length) before++;
  let after = 0;
  const shortest = Math.min(...urls.map((url) => url.length));
  while (after < shortest - before && urls.every((url) => url.at(-1 - after) === first.at(-1 - after))) after++;
  // Digits that two IDs share at their ends belong to the IDs.
  while (before > host && /[\p{L}\p{N}%._~-]/u.test(first[before - 1]!)) before--;
  while (after > 0 && /[\p{L}\p{N}%_~-]/u.test(first.at(-after)!)) after--;
  if (before < host) return null;
  const parts = urls.map((url) => url.slice(before, url.length - after));
  if (parts.some((part) => part === '' || /[/?&]/.test(part))) return null;
  const template = `${first.slice(0, before)}{id}${after === 0 ? '' : first.slice(-after)}`;
  return { template, ids: parts.map(decodePercent) };
}

function fromOne(url: string): { template: string; ids: string[] } | null {
  const { origin } = new URL(url);
  const parts = [...url.slice(origin.length).matchAll(/[^/?&=#]+/g)].filter(({ 0: text }) => text !== '');
  const chosen = parts.findLast(({ 0: text }) => /\d/.test(text)) ?? parts.at(-1);
  if (!chosen) return null;
  const at = origin.length + chosen.index;
  const [text] = chosen;
  // The ending of a file is no part of an ID.
  const id = text.replace(/\.(?:html?|php|aspx?|jsp)$/i, '');
  return { template: `${url.slice(0, at)}{id}${url.slice(at + id.length)}`, ids: [decodePercent(id)] };
}

/** `init --url`: which fields product pages have, and where. Every place is tried with the extraction of a real run. */
import type { FieldValue, Mapping, Row } from '../../../shared/domain/mapping.ts';
import { isAmbiguous, readingsOf } from '../../../shared/domain/ambiguous-number.ts';
import { readMapping } from '../../core/config/read-mapping.ts';

/** A source of a field, as the short form of a mapping has it, without the field's options. */
export type FieldSource = Readonly<Record<string, string>>;

/** Where the value of a field may be. */
export interface Place {
  field: FieldName;
  source: FieldSource;
}

/** The fields in the order of their columns. */
const FIELDS = [
  'title',
  'price',
  'currency',
  'availability',
  'brand',
  'sku',
  'gtin',
  'rating',
  'reviews',
  'category',
  'image',
  'description',
] as const;
export type FieldName = (typeof FIELDS)[number];

type FieldOptions = Readonly<Record<string, boolean>>;

/** What is done with the value of a field, wherever it is. */
const OPTIONS: Readonly<Partial<Record<FieldName, FieldOptions>>> = {
  price: { price: true },
  availability: { boolean: true },
  rating: { number: true },
  reviews: { integer: true },
  image: { url: true },
};

/** Paths of https://schema.org/Product, in JSON-LD or microdata. */
const PATHS: Readonly<Partial<Record<FieldName, readonly string[]>>> = {
  title: ['name'],
  price: ['offers.price', 'offers.lowPrice'],
  availability: ['offers.availability'],
  brand: ['brand.name', 'brand'],
  sku: ['sku'],
  gtin: ['gtin13', 'gtin', 'gtin14', 'gtin12', 'gtin8'],
  rating: ['aggregateRating.ratingValue'],
  reviews: ['aggregateRating.reviewCount', 'aggregateRating.ratingCount'],
  category: ['category'],
  image: ['image', 'image.url'],
  description: ['description'],
};

const meta = (property: string): FieldSource => ({ css: `meta[property="${property}"]`, attr: 'content' });
const TITLE_META = meta('og:title');

/** What a page says for link previews (https://ogp.me). */
const METAS: Readonly<Partial<Record<FieldName, readonly FieldSource[]>>> = {
  price: [meta('product:price:amount'), meta('og:price:amount'), meta('og:price')],
  currency: [meta('product:price:currency'), meta('og:price:currency')],
  availability: [meta('product:availability'), meta('og:availability')],
  image: [meta('og:image')],
  description: [meta('og:description'), { css: 'meta[name="description"]', attr: 'content' }],
};

/** Fields that count only on a product: other nodes of a page, such as its shop, have some, too. */
const OF_PRODUCT: ReadonlySet<string> = new Set(['brand', 'sku', 'gtin', 'rating', 'reviews', 'category']);

/** Data for machines. */
export const DATA_PLACES: readonly Place[] = FIELDS.flatMap((field) => [
  ...['json_ld', 'microdata'].flatMap((key) =>
    (PATHS[field] ?? []).map((path) => ({ field, source: { [key]: path } })),
  ),
  ...(METAS[field] ?? []).map((source) => ({ field, source })),
]);

/** The title for link previews often has the name of the shop in it: after the heading. */
export const LAST_PLACES: readonly Place[] = [{ field: 'title', source: TITLE_META }];

/** A mapping with a field for every place, and the texts that say what the page calls itself. */
export function surveyMapping(places: readonly Place[]): Mapping {
  const fields = Object.fromEntries(
    places.map(({ field, source }, i) => {
      const isData = source.json_ld !== undefined || source.microdata !== undefined;
      const node = isData && OF_PRODUCT.has(field) ? { node: 'Product' } : {};
      return [probeName(i), { ...source, ...node, ...OPTIONS[field] }];
    }),
  );
  return readMapping({ fields: { ...fields, page_title: 'title', shared_title: TITLE_META } }).mapping;
}

const probeName = (i: number): string => `place_${i}`;

/** What the places gave on one page, in their order. */
export interface ProbedPage {
  /** `<title>` and og:title. */
  titles: string[];
  values: { value: FieldValue; currency: FieldValue }[];
}

export function probedPage(places: readonly Place[], row: Row): ProbedPage {
  return {
    titles: [row.page_title, row.shared_title].filter((text) => typeof text === 'string'),
    values: places.map((_, i) => ({
      value: row[probeName(i)] ?? null,
      currency: row[`${probeName(i)}_currency`] ?? null,
    })),
  };
}

export interface ProposedField {
  name: string;
  /** The places in the order in which they are tried. */
  sources: FieldSource[];
  options: FieldOptions;
  /** What it gives on each page, in the order of the pages; null where nothing. */
  values: FieldValue[];
  /** The currencies of a price, likewise. */
  currencies?: FieldValue[];
  required: boolean;
  /** Why the value may be another one than it seems; null without a doubt. */
  doubt: string | null;
}

/** The fields that at least one page has. Their places are tried in the order given: the most trusted first. */
export function proposeFields(places: readonly Place[], pages: readonly ProbedPage[]): ProposedField[] {
  const found = FIELDS.flatMap((name) => proposeField(name, places, pages) ?? []);
  const price = found.find(({ name }) => name === 'price');
  const hasOwn = found.some(({ name }) => name === 'currency');
  // The currency is beside the amount, or in a place and so in a column of its own.
  if (!price || !hasOwn || price.currencies?.some((code) => code !== null))
    return found.filter(({ name }) => name !== 'currency');
  return found.map((field) => (field === price ? { ...field, options: { number: true } } : field));
}

interface Tried {
  source: FieldSource;
  values: FieldValue[];
  currencies: FieldValue[];
  doubt: string | null;
}

function proposeField(name: FieldName, places: readonly Place[], pages: readonly ProbedPage[]): ProposedField | null {
  const all = places.flatMap(({ field, source }, i): Tried[] => {
    if (field !== name) return [];
    const found = pages.flatMap((page) => page.values[i] ?? []);
    const values = found.map(({ value }) => value);
    const currencies = found.map(({ currency }) => currency);
    return values.some(hasValue) ? [{ source, values, currencies, doubt: doubtOf(name, values, pages) }] : [];
  });
  const sure = all.filter(({ doubt }) => doubt === null);
  const [first, ...others] = sure.length > 0 ? sure : all.slice(0, 1);
  if (!first) return null;
  const { doubt } = first;
  const sources = [first.source];
  const values = [...first.values];
  const currencies = [...first.currencies];
  // Another place counts only for pages on which those before it have nothing.
  for (const other of others) {
    const adds = [...other.values.entries()].filter(
      ([i, value]) => !hasValue(values[i] ?? null) && hasValue(value) && !isUnclear(value),
    );
    if (adds.length === 0) continue;
    sources.push(other.source);
    for (const [i, value] of adds) [values[i], currencies[i]] = [value, other.currencies[i] ?? null];
  }
  if (!values.some((value) => hasValue(value) && !isUnclear(value))) return null;
  const required = (name === 'title' || name === 'sku') && doubt === null && values.every(hasValue);
  const field = { name, sources, options: OPTIONS[name] ?? {}, values, required, doubt };
  // Two products may have one price, so that no place is given up for it.
  if (name !== 'price') return field;
  return { ...field, currencies, doubt: doubt ?? sameOnAll(values) ?? disagreement(values, others) };
}

/** The field as the short form of a mapping has it. */
export function formOf({ sources: [first, ...others], options, required }: ProposedField): FieldForm {
  const form = { ...first, ...options, ...(required ? { required } : {}) };
  return others.length === 0 ? form : [form, ...others.map(shortest)];
}

type FieldForm = Readonly<Record<string, string | boolean>> | readonly (string | FieldSource | FieldForm)[];

const shortest = (source: FieldSource): string | FieldSource =>
  source.css !== undefined && Object.keys(source).length === 1 ? source.css : source;

const hasValue = (value: FieldValue): boolean => value !== null && value !== '';

/** Several prices, of which another place would only be a guess. */
const isUnclear = (value: FieldValue): boolean => isAmbiguous(value) && readingsOf(value).length === 0;

/** The doubt of a price that is 0. */
export const NO_PRICE = '0 is no price';

/** Fields that differ from product to product. */
const DISTINCT: ReadonlySet<string> = new Set(['title', 'sku', 'image']);

function doubtOf(name: FieldName, values: readonly FieldValue[], pages: readonly ProbedPage[]): string | null {
  if (name === 'price' && values.includes(0)) return NO_PRICE;
  const isOfNoPage = ({ titles }: ProbedPage, i: number): boolean => {
    const value = values[i];
    return typeof value === 'string' && sharesNoWord(value, titles);
  };
  if (name === 'title' && pages.some(isOfNoPage)) return 'no word of it is in the <title> of the page';
  return DISTINCT.has(name) ? sameOnAll(values) : null;
}

/** Two places for machines with two prices on one page. */
function disagreement(values: readonly FieldValue[], others: readonly Tried[]): string | null {
  const differs = (value: FieldValue, i: number): boolean => {
    const own = values[i] ?? null;
    return hasValue(value) && hasValue(own) && value !== own;
  };
  const other = others.find((one) => !isShown(one.source) && one.values.some(differs));
  return other === undefined
    ? null
    : `another place has ${JSON.stringify(other.values.find(differs))}: ${placeText(other.source)}`;
}

const isShown = (source: FieldSource): boolean => source.css !== undefined && source.attr === undefined;

/** Such as `json_ld offers.price`, `css .price @data-value`. */
export const placeText = ({ attr, ...source }: FieldSource): string =>
  [...Object.entries(source).flat(), ...(attr === undefined ? [] : [`@${attr}`])].join(' ');

const sameOnAll = (values: readonly FieldValue[]): string | null =>
  values.length > 1 && values.every((value) => hasValue(value) && value === values[0]) ? 'the same on all pages' : null;

function sharesNoWord(value: string, titles: readonly string[]): boolean {
  const known = new Set(titles.flatMap(wordsOf));
  return known.size > 0 && !wordsOf(value).some((word) => known.has(word));
}

/** Words in lower case; of scripts without spaces each character. */
const wordsOf = (text: string): string[] =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}]+/gu) ?? [];

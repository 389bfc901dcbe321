/** `init --url` for pages that are JSON: where the product is in it, by the names that APIs use. */
import { ASIDE_NAMES } from '../../../shared/domain/aside-names.ts';
import { isRecord } from '../../core/config/faults.ts';
import type { FieldName, Place } from './propose-fields.ts';

/** Keys of each field, in lower case and without separators. */
const KEYS: Readonly<Partial<Record<FieldName, readonly string[]>>> = {
  title: ['name', 'title', 'productname', 'producttitle', 'displayname'],
  price: ['price', 'currentprice', 'saleprice', 'finalprice', 'sellingprice', 'amount'],
  currency: ['currency', 'currencycode', 'pricecurrency', 'currencyiso'],
  availability: ['availability', 'available', 'instock', 'isavailable', 'isinstock'],
  brand: ['brand', 'brandname'],
  sku: ['sku', 'productsku'],
  gtin: ['gtin13', 'gtin', 'gtin14', 'gtin12', 'gtin8', 'ean', 'ean13'],
  rating: ['ratingvalue', 'rating', 'averagerating'],
  reviews: ['reviewcount', 'ratingcount', 'reviewscount'],
  category: ['category'],
  image: ['image', 'imageurl', 'images', 'imageurls', 'thumbnail'],
  description: ['description'],
};

/** Keys of an object whose own name says what it is: `price: { amount }`, `brand: { name }`, `image: { url }`. */
const INNER = ['value', 'amount', 'name', 'url', 'src', 'price', 'current', 'code'];

const FIELD_COUNT = Object.keys(KEYS).length;

/** How far down the product is looked for. */
const MAX_LEVELS = 5;

/** Fields that tell a product from its shop, brand or category. */
const OF_PRODUCT: ReadonlySet<FieldName> = new Set(['price', 'sku', 'gtin']);

/**
 * The places of the object that has a name and most of the other fields: of those with a price or number, if there are
 * any. Of two alike those of the first.
 */
export function jsonPlaces(text: string): Place[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return [];
  }
  let best: Place[] = [];
  let most = 1;
  for (const [path, node] of objectsIn(json)) {
    const places = placesOf(node, path);
    if (places.length < 2 || !places.some(({ field }) => field === 'title')) continue;
    const count = places.length + (places.some(({ field }) => OF_PRODUCT.has(field)) ? FIELD_COUNT : 0);
    if (count > most) [best, most] = [places, count];
  }
  return best;
}

/**
 * Level by level, so that of two alike the one nearer to the top comes first. Lists are no product, nor what is about
 * others.
 */
function* objectsIn(json: unknown): Generator<[path: string, node: Record<string, unknown>]> {
  let level: [string, Record<string, unknown>][] = isRecord(json) ? [['$', json]] : [];
  for (let depth = 1; depth <= MAX_LEVELS && level.length > 0; depth++) {
    yield* level;
    level = level.flatMap(([path, node]) =>
      Object.entries(node).flatMap(([key, value]): typeof level =>
        isRecord(value) && !isAside(key) ? [[path + step(key), value]] : [],
      ),
    );
  }
}

function placesOf(node: Record<string, unknown>, path: string): Place[] {
  const keys = Object.keys(node);
  return Object.entries(KEYS).flatMap(([field, names]): Place[] => {
    const key = names
      .flatMap((name) => keys.find((one) => plainKey(one) === name) ?? [])
      .find((one) => hasValue(node[one]));
    if (key === undefined) return [];
    const value = node[key];
    const inner = isRecord(value) ? INNER.find((name) => isScalar(value[name])) : Array.isArray(value) ? 0 : null;
    const place = path + step(key) + (inner === null || inner === undefined ? '' : step(inner));
    // `price: { amount, currency }`
    const beside = field === 'price' && isRecord(value) ? placesOf(value, path + step(key)) : [];
    return [
      { field: field as FieldName, source: { jsonpath: place } },
      ...beside.filter((one) => one.field === 'currency'),
    ];
  });
}

const isAside = (key: string): boolean => ASIDE_NAMES.test(key.replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, '-'));
const plainKey = (key: string): string => key.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase();
const isScalar = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value);
const hasValue = (value: unknown): boolean =>
  isScalar(value) ||
  (Array.isArray(value) && isScalar(value[0])) ||
  (isRecord(value) && INNER.some((name) => isScalar(value[name])));

/** One step of a JSONPath. */
const step = (key: string | number): string =>
  typeof key === 'string' && /^[A-Za-z_]\w*$/.test(key)
    ? `.${key}`
    : `[${typeof key === 'number' ? key : quoted(key)}]`;
const quoted = (key: string): string => `'${key.replaceAll(/[\\']/g, String.raw`\$&`)}'`;

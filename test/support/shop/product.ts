/**
 * What the demo shop sells: every product is derived from the seed and its ID, so that a test can compute the row that
 * a crawl must store without querying the shop.
 */
import { seededRandom } from '../../../shared/adapters/random.ts';
import { type ShopProduct, translate } from './languages.ts';

/** IDs that need care in URLs, SQL and files; the shop always sells them in addition to its numbered products. */
export const STRANGE_IDS: readonly string[] = [
  'with space',
  'slash/and/slash',
  'back\\slash',
  `quote's "double" \`tick\``,
  '日本語の商品',
  '絵文字🎌',
  'percent%2Fencoded',
  'plus+and&amp;=?#',
  '<script>alert(1)</script>',
  "'; drop table products; --",
  '{id}',
  'CASE',
  'case',
  'trailing ',
  'x'.repeat(500),
  '長'.repeat(500),
];

/** The numbered products: P00001, P00002 … */
export function productIds(count: number): string[] {
  return Array.from({ length: count }, (_, i) => productId(i + 1));
}

export function productId(number: number): string {
  return `P${String(number).padStart(5, '0')}`;
}

/** null when the ID is not one of the first `count` numbered products. */
export function numberOfProduct(id: string, count: number): number | null {
  const number = Number(id.slice(1));
  return number >= 1 && number <= count && id === productId(number) ? number : null;
}

/** The mapping for the shop's pages, in the short form of fleet.yaml. */
export const SHOP_MAPPING = {
  fields: {
    title: { css: 'h1', required: true },
    price: { css: '.product .price', attr: 'data-value', integer: true, required: true },
    brand: { json_ld: 'brand.name' },
    rating: { json_ld: 'aggregateRating.ratingValue', number: true },
    crumbs: { css: 'nav.breadcrumbs li', all: true },
  },
} as const;

/** The mapping for products served as JSON (`json-`). */
export const JSON_MAPPING = {
  fields: {
    title: { jsonpath: '$.product.title', required: true },
    price: { jsonpath: '$.product.price', integer: true, required: true },
    brand: { jsonpath: '$.product.brand' },
    rating: { jsonpath: '$.product.rating', number: true },
    crumbs: { jsonpath: '$.product.crumbs[*]', all: true },
  },
} as const;

/** The mapping for products served as XML (`xml-`). */
export const XML_MAPPING = {
  fields: {
    title: { xpath: '/product/title', required: true },
    price: { xpath: '/product/price', integer: true, required: true },
    brand: { xpath: '/product/brand' },
    rating: { xpath: '/product/rating', number: true },
    crumbs: { xpath: '//crumb', all: true },
  },
} as const;

/** The values that SHOP_MAPPING extracts for the product. */
export interface ShopRow {
  title: string;
  price: number;
  brand: string;
  rating: number;
  crumbs: string[];
}

/** The row that a crawl with SHOP_MAPPING must store for the product. */
export function expectedRow(seed: number, id: string): ShopRow {
  return rowOf(expectedProduct(seed, id));
}

/** The same for a given product. */
export function rowOf({ title, price, brand, rating, category }: ShopProduct): ShopRow {
  return { title, price, brand, rating, crumbs: ['Home', 'Catalogue', category] };
}

const BRANDS = ['Acme & Sons', 'ミドリ工房', 'Nørdlys', 'O’Hara “Classic”', 'Kato <Tools>', 'Zenith', 'Fjord', '大和'];
const KINDS = [
  'Kettle',
  'Lamp',
  'Chair',
  'ティーポット',
  'Desk',
  'Rucksack',
  'Bicycle bell',
  'ノート',
  'Knife',
  'Umbrella',
];
const LOOKS = ['blue', 'matt black', 'hand-made', '軽量', 'folding', 'enamelled', 'oak', 'second edition'];
const CATEGORIES = ['Kitchen', 'Living', 'Office & Study', 'Outdoor', '文房具'];
const SENTENCES = [
  'Made in small batches and checked by hand before it leaves the workshop.',
  'Spare parts are kept for ten years.',
  '丈夫で長持ち、毎日の暮らしに。',
  'Fits every room, from 20 cm to 2 m; colours may differ from the picture.',
  'Customers say: "better than the old one" & we agree.',
];

/** The product with this ID. The same seed and ID give the same product on every machine. */
export function expectedProduct(seed: number, id: string): ShopProduct {
  const random = seededRandom(hashText(`${seed}:${id}`));
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.next() * from.length)]!;
  const kind = pick(KINDS);
  const look = pick(LOOKS);
  return translate({
    id,
    title: `${kind}, ${look} № ${1 + Math.floor(random.next() * 900)}`,
    price: 100 + Math.floor(random.next() * 99_900),
    brand: pick(BRANDS),
    sku: `SKU-${hashText(id).toString(36).toUpperCase()}`,
    category: pick(CATEGORIES),
    inStock: random.next() < 0.9,
    rating: Math.round(10 + random.next() * 40) / 10,
    reviewCount: Math.floor(random.next() * 500),
    description: `${pick(SENTENCES)} ${pick(SENTENCES)} ${pick(SENTENCES)}`,
  });
}

/** FNV-1a over UTF-16 units, 32 bits. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * Where the linked shop shows each of its products: categories, search results, related products, sitemaps. Everything
 * is computed from the product's number, so that a shop of 100,000 products keeps none of them.
 */
import { seededRandom } from '../../../../shared/adapters/random.ts';
import { hashText, productId } from '../product.ts';

const PRODUCTS_PER_PAGE = 48;
const MOST_SEARCH_PAGES = 200;
const PRODUCTS_PER_CATEGORY = 2_000;
const LEAST_CATEGORIES = 4;
const RELATED = 4;
/** A prime above any number of products: steps of this size visit every product before one comes again. */
const STRIDE = 1_000_003;

export class Catalogue {
  readonly count: number;
  readonly categories: number;
  readonly #seed: number;

  /** @param count number of products, numbered from 1; below a million */
  constructor(count: number, seed = 1) {
    this.count = count;
    this.categories = Math.max(LEAST_CATEGORIES, Math.ceil(count / PRODUCTS_PER_CATEGORY));
    this.#seed = seed;
  }

  /** The IDs of all products: what a complete crawl finds. */
  *products(): Generator<string> {
    for (let number = 1; number <= this.count; number++) yield productId(number);
  }

  categoryOf(number: number): number {
    return (number - 1) % this.categories;
  }

  categoryPages(category: number): number {
    return Math.max(1, Math.ceil(this.#categorySize(category) / PRODUCTS_PER_PAGE));
  }

  /** The products on a page of a category; pages count from 1. */
  inCategory(category: number, page: number): number[] {
    return places(page, this.#categorySize(category)).map((place) => 1 + category + place * this.categories);
  }

  /** The same for every term: all products, in an order of its own, as far as the pages reach. */
  get searchPages(): number {
    return Math.min(MOST_SEARCH_PAGES, Math.ceil(this.count / PRODUCTS_PER_PAGE));
  }

  /** The products on a page of the search for the term. */
  found(term: string, page: number): number[] {
    const first = hashText(`search:${this.#seed}:${term}`);
    return places(page, this.count).map((place) => 1 + ((first + place * STRIDE) % this.count));
  }

  /** The IDs that all pages of the search for the term show. */
  *foundProducts(term: string): Generator<string> {
    for (let page = 1; page <= this.searchPages; page++) yield* this.found(term, page).map(productId);
  }

  /** Products that the product's page links to. */
  related(number: number): number[] {
    const random = seededRandom(hashText(`related:${this.#seed}:${number}`));
    return Array.from({ length: RELATED }, () => 1 + Math.floor(random.next() * this.count));
  }

  /** The product's lastmod in the sitemap: a day, or a time with an offset. */
  lastModified(number: number): string {
    const hash = hashText(`modified:${this.#seed}:${number}`);
    const day = new Date(Date.UTC(2026, 0, 1 + (hash % 300))).toISOString().slice(0, 10);
    return hash % 7 < 3 ? day : `${day}T08:30:00+09:00`;
  }

  #categorySize(category: number): number {
    return Math.ceil((this.count - category) / this.categories);
  }
}

/** The places on a page of a list: 0 is the first on page 1. */
function places(page: number, size: number): number[] {
  const first = (page - 1) * PRODUCTS_PER_PAGE;
  return Array.from({ length: Math.max(0, Math.min(PRODUCTS_PER_PAGE, size - first)) }, (_, i) => first + i);
}

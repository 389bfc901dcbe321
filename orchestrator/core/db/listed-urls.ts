/** What a list of products says of their URLs, gathered while it is read. */
import { hasOwnUrls, type ProductUrl } from '../../../shared/domain/domains.ts';
import { findUrlFault, needsUrlCheck, readOwnUrl } from '../../../shared/domain/own-url.ts';

/** A product that has no URL to request. */
export interface UnusableUrl {
  /** Its row of products.query, or its line of a file: 1, 2, 3 … */
  row: number;
  id: string;
  fault: string;
}

/** Those that are named; the others are counted. */
const NAMED = 5;

export class ListedUrls {
  /** By ID, as they are requested; null where IDs make the URLs. */
  readonly urls: Map<string, string> | null;
  /** False: the IDs make URLs that are all right, so no row is looked at. */
  readonly looksAtRows: boolean;
  /** The query yields a column `url` that nothing reads. */
  ignoresColumn = false;
  readonly #productUrl: ProductUrl;
  readonly #unusable = new Set<string>();
  readonly #named: UnusableUrl[] = [];
  #rows = 0;

  constructor(productUrl: ProductUrl) {
    this.#productUrl = productUrl;
    this.looksAtRows = needsUrlCheck(productUrl);
    this.urls = hasOwnUrls(productUrl) ? new Map() : null;
  }

  /** The columns that the list must have beside `id`. */
  get columns(): string[] {
    return this.urls === null ? [] : ['url'];
  }

  noteColumns(names: readonly string[]): void {
    this.ignoresColumn = this.urls === null && names.some((name) => name.toLowerCase() === 'url');
  }

  /** Of rows with the same ID the first one counts. */
  add(row: number, id: string, url: string | null): void {
    this.#rows++;
    if (this.urls === null || !hasOwnUrls(this.#productUrl)) {
      this.#note(row, id, findUrlFault(this.#productUrl, id));
      return;
    }
    if (this.urls.has(id)) return;
    const own = readOwnUrl(this.#productUrl, url);
    this.urls.set(id, own.url);
    this.#note(row, id, own.fault);
  }

  /** The number of products without a URL to request, of how many that were looked at, and the first of them. */
  get unusable(): { products: number; of: number; named: readonly UnusableUrl[] } {
    return { products: this.#unusable.size, of: this.urls?.size ?? this.#rows, named: this.#named };
  }

  #note(row: number, id: string, fault: string | null): void {
    if (fault === null || this.#unusable.has(id)) return;
    this.#unusable.add(id);
    if (this.#named.length < NAMED) this.#named.push({ row, id, fault });
  }
}

/** What a list of products says of their URLs, gathered while it is read. */
import { hasOwnUrls, type ProductUrl } from '../../../shared/domain/domains.ts';
import { findUrlFault, leaveAlone, type LeftAlone, needsUrlCheck, readOwnUrl } from '../../../shared/domain/own-url.ts';
import { PackedUrls } from './packed-urls.ts';

/** A product that has no URL to request. */
export interface UnusableUrl {
  /** Its row of products.query, or its line of a file: 1, 2, 3 … */
  row: number;
  id: string;
  fault: string;
}

/** Why a URL is left alone though it can be requested; null: it is requested. */
export type JudgeUrl = (url: string) => LeftAlone | null;

/** Those that are named; the others are counted. */
const NAMED = 5;

export class ListedUrls {
  /** By ID, as they are requested; null where IDs make the URLs. */
  readonly urls: PackedUrls | null;
  /** False: the IDs make URLs that are all right, so no row is looked at. */
  readonly looksAtRows: boolean;
  /** The query yields a column `url` that nothing reads. */
  ignoresColumn = false;
  /** How many products are left alone, and why. */
  readonly leftAlone: Record<LeftAlone, number> = { denied: 0, unmapped: 0 };
  readonly #productUrl: ProductUrl;
  readonly #judge: JudgeUrl;
  readonly #unusable = new Set<string>();
  readonly #named: UnusableUrl[] = [];
  #rows = 0;

  /** @param judge omitted: no URL is left alone */
  constructor(productUrl: ProductUrl, judge: JudgeUrl = () => null) {
    this.#judge = judge;
    this.#productUrl = productUrl;
    this.looksAtRows = needsUrlCheck(productUrl);
    this.urls = hasOwnUrls(productUrl) ? new PackedUrls() : null;
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
    const left = own.fault === null ? this.#judge(own.url) : null;
    this.urls.add(id, left === null ? own.url : leaveAlone(left, own.url));
    if (left !== null) this.leftAlone[left]++;
    this.#note(row, id, own.fault);
  }

  /** The number of products without a URL to request, of how many that were looked at, and the first of them. */
  get unusable(): { products: number; of: number; named: readonly UnusableUrl[] } {
    return { products: this.#unusable.size, of: this.urls?.length ?? this.#rows, named: this.#named };
  }

  #note(row: number, id: string, fault: string | null): void {
    if (fault === null || this.#unusable.has(id)) return;
    this.#unusable.add(id);
    if (this.#named.length < NAMED) this.#named.push({ row, id, fault });
  }
}

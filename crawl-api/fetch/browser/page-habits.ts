/**
 * Learns how the pages of one mapping build themselves: which fields they usually fill, and until when their values
 * change. A skeleton with a price of zero looks like a page, until a script replaces it.
 */
import type { KeyedRow } from '../../../shared/domain/mapping.ts';
import { MIN_PAGES, PageBaseline } from '../../politeness/page-baseline.ts';

/** One of this many pages after the first is again watched for all of the time, in case the site has changed. */
const RECHECK_EVERY = 50;
/** Number of pages whose longest time counts. */
const RECENT = 50;
/** Changes until then belong to the document itself: they arrive with its end, or are noticed a moment later. */
const AT_ONCE_MS = 30;
/** Later pages may take longer than those seen. */
const MARGIN = 2;

export class PageHabits {
  readonly #baseline = new PageBaseline();
  #pages = 0;
  /** The times from the first value to the last change, of the last pages. */
  #settledMs: number[] = [];

  /** @param changedAfterMs when a value changed last, from the end of the document and the first values on */
  note(rows: readonly KeyedRow[], changedAfterMs: number): void {
    this.#baseline.note(rows);
    this.#pages++;
    this.#settledMs = [...this.#settledMs, changedAfterMs < AT_ONCE_MS ? 0 : changedAfterMs].slice(-RECENT);
  }

  /** How long after its first value a page may still change; at most `longestMs`. */
  windowMs(longestMs: number): number {
    const isWatched = this.#pages < MIN_PAGES || this.#pages % RECHECK_EVERY === 0;
    return isWatched ? longestMs : Math.min(longestMs, MARGIN * Math.max(...this.#settledMs));
  }

  /** Fields of a page that lack a value and that pages usually fill; any of them, while too few pages are known. */
  missing(rows: readonly KeyedRow[], fields: readonly string[]): string[] {
    return this.#baseline.missing(rows, fields);
  }
}

/**
 * Bounds the memory for the bodies of pages that are read at the same time (site.pages_at_once). Beyond the budget only
 * the page that began first is read on; the connections of the others wait.
 */
import type { Clock } from '../../shared/ports/clock.ts';

/**
 * Decoded bytes of all pages under way. A page of a megabyte that is full of tags takes 100 MB of memory while it is
 * read, and an instance may have 200.
 */
export const BUDGET_BYTES = 400_000;

interface Taken {
  bytes: number;
  /** Reads on; null while the page need not wait. */
  resume: (() => void) | null;
  waitingSinceMs: number;
  waitedMs: number;
}

export class PageBudget {
  readonly #clock: Clock;
  /** By page, in the order in which they began. */
  readonly #taken = new Map<object, Taken>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts bytes of a page of which more follow. False when it has to wait: `resume` is called once it may go on. */
  take(page: object, bytes: number, resume: () => void): boolean {
    let taken = this.#taken.get(page);
    if (taken === undefined) {
      taken = { bytes: 0, resume: null, waitingSinceMs: 0, waitedMs: 0 };
      this.#taken.set(page, taken);
    }
    taken.bytes += bytes;
    this.#bytes += bytes;
    if (this.#mayGoOn(page)) return true;
    if (taken.resume === null) taken.waitingSinceMs = this.#clock.monotonic();
    taken.resume = resume;
    return false;
  }

  /** The page is done, or dropped. */
  leave(page: object): void {
    const taken = this.#taken.get(page);
    if (taken === undefined) return;
    this.#taken.delete(page);
    this.#bytes -= taken.bytes;
    for (const [other, { resume }] of this.#taken) if (resume !== null && this.#mayGoOn(other)) this.#goOn(other);
  }

  /** How long the page has waited, which is not the time of its server. Milliseconds. */
  waitedMs(page: object): number {
    const taken = this.#taken.get(page);
    if (taken === undefined) return 0;
    const { resume, waitedMs, waitingSinceMs } = taken;
    return resume === null ? waitedMs : waitedMs + this.#clock.monotonic() - waitingSinceMs;
  }

  #goOn(page: object): void {
    const taken = this.#taken.get(page);
    const resume = taken?.resume ?? null;
    if (taken === undefined || resume === null) return;
    taken.waitedMs = this.waitedMs(page);
    taken.resume = null;
    resume();
  }

  #mayGoOn(page: object): boolean {
    const [first] = this.#taken.keys();
    return this.#bytes <= BUDGET_BYTES || page === first;
  }
}

/** The median time of the last pages, for the main server's forecast. */

const KEPT = 101;

export class PageTimes {
  readonly #times: number[] = [];
  #next = 0;

  add(ms: number): void {
    this.#times[this.#next] = ms;
    this.#next = (this.#next + 1) % KEPT;
  }

  /** Milliseconds; null before the first page. */
  median(): number | null {
    if (this.#times.length === 0) return null;
    const sorted = [...this.#times].sort((a, b) => a - b);
    return Math.round(sorted[sorted.length >> 1]! * 10) / 10;
  }
}

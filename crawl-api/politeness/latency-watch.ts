/**
 * Detects that a site has suddenly become slow for this address: some sites throttle an address before they refuse it.
 */

const RECENT = 5;
const BEFORE = 50;
const FACTOR = 5;
const LEAST_MS = 2_000;

export class LatencyWatch {
  readonly #waits: number[] = [];

  /**
   * Takes the time to the first byte; true when the median of the last five is over two seconds and over five times
   * that of the ones before.
   */
  note(waitMs: number): boolean {
    this.#waits.push(waitMs);
    if (this.#waits.length > BEFORE + RECENT) this.#waits.shift();
    if (this.#waits.length < 2 * RECENT) return false;
    const recent = median(this.#waits.slice(-RECENT));
    return recent > LEAST_MS && recent > FACTOR * median(this.#waits.slice(0, -RECENT));
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

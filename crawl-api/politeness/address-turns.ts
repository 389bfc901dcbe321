/**
 * Turns at the addresses of a crawl of many hosts. Hosts that know nothing of each other may share a server, so each
 * address has at most one request of this instance under way, and some time between the end of one and the next.
 *
 * Times are monotonic milliseconds.
 */

import type { Clock } from '../../shared/ports/clock.ts';

/** From the end of a request, before which it has arrived, to the next one to that address, whatever their hosts. */
export const ADDRESS_GAP_MS = 1_000;

export class AddressTurns {
  /** Null while a request is under way. Those that have ended are in the order of their ends. */
  readonly #endedMs = new Map<string, number | null>();
  /** The calls that wait for the end of the request under way, in order. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /** The addresses that are remembered: those with a request under way, or whose gap was not over at the last end. */
  get size(): number {
    return this.#endedMs.size;
  }

  /** 0 when a request may begin now; Infinity while one is under way, whose end is the time to ask again. */
  waitMs(address: string, nowMs: number): number {
    const endedMs = this.#endedMs.get(address);
    if (endedMs === undefined) return 0;
    return endedMs === null ? Infinity : Math.max(0, endedMs + ADDRESS_GAP_MS - nowMs);
  }

  /** Only when `waitMs` is 0. */
  begin(address: string, nowMs: number): void {
    if (this.waitMs(address, nowMs) > 0) throw new Error(`${address} has no turn now`);
    this.#endedMs.set(address, null);
  }

  /** Waits for a turn and begins it. Turns are in the order of the calls; `waitMs` offers none meanwhile. */
  async take(address: string, clock: Clock, work: AbortSignal): Promise<void> {
    const ms = this.waitMs(address, clock.monotonic());
    this.#endedMs.set(address, null);
    if (ms === Infinity)
      await new Promise<void>((next) => {
        this.#waiting.set(address, [...(this.#waiting.get(address) ?? []), next]);
      });
    await clock.sleep(Math.min(ms, ADDRESS_GAP_MS), work);
  }

  /** The request is over, however it ended. */
  end(address: string, nowMs: number): void {
    if (this.#endedMs.get(address) !== null) return;
    const [next, ...others] = this.#waiting.get(address) ?? [];
    if (others.length > 0) this.#waiting.set(address, others);
    else this.#waiting.delete(address);
    // The turn is the next one's.
    if (next !== undefined) return next();
    this.#endedMs.delete(address);
    this.#endedMs.set(address, nowMs);
    this.#forgetBefore(nowMs);
  }

  /** Those under way are few, as they all have a place; behind them the oldest come first. */
  #forgetBefore(nowMs: number): void {
    for (const [address, endedMs] of this.#endedMs) {
      if (endedMs === null) continue;
      if (endedMs + ADDRESS_GAP_MS > nowMs) return;
      this.#endedMs.delete(address);
    }
  }
}

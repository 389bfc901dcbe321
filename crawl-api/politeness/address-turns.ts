/**
 * Turns at the addresses of a crawl of many hosts. Hosts that know nothing of each other may share a server, so each
 * address has at most one request of this instance under way, and some time between the end of one and the next.
 *
 * Times are monotonic milliseconds.
 */

/** From the end of a request, before which it has arrived, to the next one to that address, whatever their hosts. */
export const ADDRESS_GAP_MS = 1_000;

export class AddressTurns {
  /** Null while a request is under way. Those that have ended are in the order of their ends. */
  readonly #endedMs = new Map<string, number | null>();

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

  /** The request is over, however it ended. */
  end(address: string, nowMs: number): void {
    if (this.#endedMs.get(address) !== null) return;
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

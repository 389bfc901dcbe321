/**
 * Turns at the addresses of a crawl of many hosts. Hosts that know nothing of each other may share a server, so each
 * address has at most one request of this instance under way, and their starts are some time apart.
 *
 * Times are monotonic milliseconds.
 */

/** Start to start of two requests to one address, whatever their hosts. */
export const ADDRESS_GAP_MS = 1_000;

interface Turn {
  startedMs: number;
  isUnderWay: boolean;
}

export class AddressTurns {
  /** In the order of their last starts. */
  readonly #turns = new Map<string, Turn>();

  /** The addresses that are remembered: those with a request under way, or whose gap was not over at the last start. */
  get size(): number {
    return this.#turns.size;
  }

  /** 0 when a request may begin now; Infinity while one is under way, whose end is the time to ask again. */
  waitMs(address: string, nowMs: number): number {
    const turn = this.#turns.get(address);
    if (turn === undefined) return 0;
    return turn.isUnderWay ? Infinity : Math.max(0, turn.startedMs + ADDRESS_GAP_MS - nowMs);
  }

  /** Only when `waitMs` is 0. */
  begin(address: string, nowMs: number): void {
    if (this.waitMs(address, nowMs) > 0) throw new Error(`${address} has no turn now`);
    this.#turns.delete(address);
    this.#turns.set(address, { startedMs: nowMs, isUnderWay: true });
    this.#forgetBefore(nowMs);
  }

  /** The request is over, however it ended. */
  end(address: string): void {
    const turn = this.#turns.get(address);
    if (turn !== undefined) turn.isUnderWay = false;
  }

  /** Those under way are few, as they all have a place; behind them the oldest come first. */
  #forgetBefore(nowMs: number): void {
    for (const [address, { startedMs, isUnderWay }] of this.#turns) {
      if (startedMs + ADDRESS_GAP_MS > nowMs) return;
      if (!isUnderWay) this.#turns.delete(address);
    }
  }
}

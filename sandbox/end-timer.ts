/** Ends the sandbox at a given time, which can be changed while it runs. */
import type { Clock } from '../shared/ports/clock.ts';

/** Maximum delay of a Node timer. */
const MAX_WAIT_MS = 2_147_483_647;

export class EndTimer {
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #atMs: number | null = null;
  #waiting = new AbortController();

  constructor(clock: Clock, onEnd: () => void) {
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** Null for never. */
  get atMs(): number | null {
    return this.#atMs;
  }

  /** A time in the past ends it now. */
  set(atMs: number): void {
    this.#waiting.abort();
    this.#waiting = new AbortController();
    this.#atMs = atMs;
    void this.#wait(atMs, this.#waiting.signal);
  }

  async #wait(atMs: number, signal: AbortSignal): Promise<void> {
    for (let leftMs = atMs - this.#clock.now(); leftMs > 0 && !signal.aborted; leftMs = atMs - this.#clock.now()) {
      await this.#clock.sleep(Math.min(leftMs, MAX_WAIT_MS), signal);
    }
    if (!signal.aborted) this.#onEnd();
  }
}

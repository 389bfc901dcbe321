/** Ends the sandbox at a given time, which can be changed while it runs. */
import type { Clock } from '../shared/ports/clock.ts';

export class EndTimer {
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #atMs: number | null = null;
  #waiting = new AbortController();

  constructor(clock: Clock, onEnd: () => void) {
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** The time of the end; null for never. */
  get atMs(): number | null {
    return this.#atMs;
  }

  /** A time in the past ends it now. */
  set(atMs: number): void {
    this.#waiting.abort();
    this.#waiting = new AbortController();
    this.#atMs = atMs;
    const { signal } = this.#waiting;
    void sleepUntil(this.#clock, atMs, signal).then(() => signal.aborted || this.#onEnd());
  }
}

/** Resolves at a wall-clock time, which may jump meanwhile, or as soon as the signal aborts. */
export async function sleepUntil(clock: Clock, atMs: number, signal: AbortSignal): Promise<void> {
  while (clock.now() < atMs && !signal.aborted) await clock.sleep(atMs - clock.now(), signal);
}

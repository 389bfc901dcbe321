/** Paces the RunInstances calls of a run. */
import type { Clock } from '../../../shared/ports/clock.ts';

/** The longest gap between two calls. */
const SLOWEST_MS = 8_000;
/** Each answer takes this much off a gap that throttling has made longer. */
const RECOVERY = 0.75;

/**
 * A token bucket of `burst` calls, refilled at `perSecond`; callers are served in order. Throttling empties it and
 * halves its rate; other clients of the account share the limit, so the full rate returns slowly.
 */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #fullGapMs: number;
  #gapMs: number;
  #nextFreeMs = -Infinity;

  constructor(clock: Clock, burst: number, perSecond: number) {
    this.#clock = clock;
    this.#burst = burst;
    this.#fullGapMs = 1_000 / perSecond;
    this.#gapMs = this.#fullGapMs;
  }

  /** Resolves when a call may be made. */
  async take(): Promise<void> {
    const now = this.#clock.monotonic();
    // The bucket is full after burst x gap without a call. While AWS throttles there is no burst.
    const saved = this.#gapMs > this.#fullGapMs ? 0 : this.#burst - 1;
    this.#nextFreeMs = Math.max(this.#nextFreeMs, now - saved * this.#gapMs);
    const waitMs = this.#nextFreeMs - now;
    this.#nextFreeMs += this.#gapMs;
    if (waitMs > 0) await this.#clock.sleep(waitMs);
  }

  /** AWS has throttled a call: all callers slow down. */
  throttled(): void {
    this.#gapMs = Math.min(SLOWEST_MS, this.#gapMs * 2);
    this.#nextFreeMs = Math.max(this.#nextFreeMs, this.#clock.monotonic() + this.#gapMs);
  }

  /** AWS has answered a call: step by step back to the full rate. */
  answered(): void {
    this.#gapMs = Math.max(this.#fullGapMs, this.#gapMs * RECOVERY);
  }
}

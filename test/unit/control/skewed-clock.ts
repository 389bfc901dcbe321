/** The clock of one machine: its wall clock may be off and may be set, but time passes at the same rate. */
import type { Clock } from '../../../shared/ports/clock.ts';

export class SkewedClock implements Clock {
  /** How far its wall clock is ahead. */
  skewMs = 0;
  readonly #true: Clock;

  constructor(clock: Clock) {
    this.#true = clock;
  }

  now(): number {
    return this.#true.now() + this.skewMs;
  }

  monotonic(): number {
    return this.#true.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#true.sleep(ms, signal);
  }
}

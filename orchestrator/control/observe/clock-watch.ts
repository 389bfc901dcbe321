/**
 * Detects that the wall clock was set, or that this machine was asleep: the monotonic clock shows how much time has
 * really passed. Times in the database are wall times; across such a step, silence proves nothing about an instance.
 */
import type { Clock } from '../../../shared/ports/clock.ts';

export class ClockWatch {
  readonly #clock: Clock;
  #offsetMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = clock.now() - clock.monotonic();
  }

  /**
   * Milliseconds by which the wall clock has jumped since the last call, ahead or back; 0 below `toleranceMs`, which is
   * drift.
   */
  look(toleranceMs: number): number {
    const offsetMs = this.#clock.now() - this.#clock.monotonic();
    const jumpMs = offsetMs - this.#offsetMs;
    this.#offsetMs = offsetMs;
    return Math.abs(jumpMs) < toleranceMs ? 0 : jumpMs;
  }
}

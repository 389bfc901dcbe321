/**
 * Keeps the pace of one address: says when the next request may start and remembers when the last one did. Time inside
 * the process is monotonic; only what an earlier process did is known by the wall clock.
 */
import { nextStartMs } from '../../shared/domain/pacing.ts';
import type { Clock } from '../../shared/ports/clock.ts';

export class Pacer {
  readonly #clock: Clock;
  readonly #intervalMs: () => number;
  #startedMs: number | null = null;
  #firstByteMs: number | null = null;

  /**
   * @param intervalMs asked for at each wait: a pace that changes counts from the last start, whatever was waited for before
   * @param lastStartWallMs when an earlier process on this address started its last request; null for never
   */
  constructor(clock: Clock, intervalMs: () => number, lastStartWallMs: number | null) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    if (lastStartWallMs !== null) {
      // A wall clock that was set back must not make us wait for longer than one interval.
      const agoMs = Math.max(0, clock.now() - lastStartWallMs);
      this.#startedMs = clock.monotonic() - agoMs;
    }
  }

  /** Milliseconds until the next request may start; 0 when it may start now. */
  waitMs(): number {
    if (this.#startedMs === null) return 0;
    const next = nextStartMs(this.#startedMs, this.#firstByteMs, this.#intervalMs());
    return Math.max(0, next - this.#clock.monotonic());
  }

  /** The head of a request is being written to the socket; or, with a monotonic time, a try began then that sent nothing. */
  requestStarted(atMs = this.#clock.monotonic()): void {
    this.#startedMs = atMs;
    this.#firstByteMs = null;
  }

  /** The first byte of its reply has come. */
  replyStarted(): void {
    this.#firstByteMs = this.#clock.monotonic();
  }
}

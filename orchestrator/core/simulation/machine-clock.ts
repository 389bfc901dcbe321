/**
 * The clock of a process on one machine: its wall clock may be off and may be set, and the process may be stopped. Time
 * passes at the same rate.
 */
import type { Clock } from '../../../shared/ports/clock.ts';

/** A process that wakes carries on with what it did before it reads its sockets. */
const READS_AFTER_MS = 20;

export class MachineClock implements Clock {
  /** How far its wall clock is ahead. */
  skewMs = 0;
  readonly #true: Clock;
  #stoppedUntilMs = -Infinity;

  constructor(clock: Clock) {
    this.#true = clock;
  }

  now(): number {
    return this.#true.now() + this.skewMs;
  }

  monotonic(): number {
    return this.#true.monotonic();
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await this.#true.sleep(ms, signal);
    // Even what ends the sleep early is noticed only after waking.
    while (this.isStopped) await this.#true.sleep(this.#stoppedUntilMs - this.monotonic());
  }

  /** Stops the process for that long, as SIGSTOP does: nothing that it waits for comes meanwhile. */
  stop(forMs: number): void {
    this.#stoppedUntilMs = Math.max(this.#stoppedUntilMs, this.monotonic() + forMs);
  }

  get isStopped(): boolean {
    return this.monotonic() < this.#stoppedUntilMs;
  }

  /** Resolves when the process has woken and reads what has come since. */
  async untilReading(): Promise<void> {
    while (this.isStopped) await this.#true.sleep(this.#stoppedUntilMs - this.monotonic() + READS_AFTER_MS);
  }
}

/** A clock that advances only on request, or when every task sleeps: for tests and simulation. */
import type { Clock } from '../../shared/ports/clock.ts';

interface Sleeper {
  atMs: number;
  wake: () => void;
}

export class VirtualClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
    this.#startMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = {
        atMs: this.#nowMs + ms,
        wake: () => {
          this.#sleepers.delete(sleeper);
          signal?.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      signal?.addEventListener('abort', sleeper.wake, { once: true });
      this.#sleepers.add(sleeper);
    });
  }

  /** Advances time, waking sleepers in time order; each one's work runs before the next one wakes. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      await settle();
      let next: Sleeper | null = null;
      for (const sleeper of this.#sleepers) if (next === null || sleeper.atMs < next.atMs) next = sleeper;
      if (next === null || next.atMs > untilMs) break;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.wake();
    }
    this.#nowMs = untilMs;
    await settle();
  }
}

/** Runs everything that is ready, promises and immediates alike. */
async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}

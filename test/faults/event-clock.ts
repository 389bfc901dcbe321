/** A clock that jumps from one sleeper's time to the next: nothing happens in between. */
import type { Clock } from '../../shared/ports/clock.ts';

interface Sleeper {
  atMs: number;
  order: number;
  wake: () => void;
  over: boolean;
}

export class EventClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;
  /** A heap by time, then by order. */
  readonly #heap: Sleeper[] = [];
  #order = 0;

  constructor(startMs: number) {
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
    if (!(ms > 0) || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const onAbort = (): void => {
        if (!sleeper.over) sleeper.wake();
      };
      const sleeper: Sleeper = {
        atMs: this.#nowMs + ms,
        order: this.#order++,
        over: false,
        wake: () => {
          sleeper.over = true;
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      signal?.addEventListener('abort', onAbort);
      this.#push(sleeper);
    });
  }

  /** Runs everything that is ready, then jumps to the next sleeper and wakes it; false when there is none. */
  async step(): Promise<boolean> {
    // All work in this world waits on promises: one turn of the event loop runs every one that is ready.
    await new Promise<void>((resolve) => setImmediate(resolve));
    for (;;) {
      const next = this.#pop();
      if (!next) return false;
      if (next.over) continue;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.wake();
      return true;
    }
  }

  #push(sleeper: Sleeper): void {
    const heap = this.#heap;
    let i = heap.push(sleeper) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(heap[i]!, heap[parent]!)) break;
      [heap[i], heap[parent]] = [heap[parent]!, heap[i]!];
      i = parent;
    }
  }

  #pop(): Sleeper | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || !last) return first;
    heap[0] = last;
    for (let i = 0; ;) {
      const left = 2 * i + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const child = right < heap.length && isBefore(heap[right]!, heap[left]!) ? right : left;
      if (!isBefore(heap[child]!, heap[i]!)) break;
      [heap[i], heap[child]] = [heap[child]!, heap[i]!];
      i = child;
    }
    return first;
  }
}

const isBefore = (a: Sleeper, b: Sleeper): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** When the crawl of an instance ends: an order, the deadline, the end of its products, or of the process. */
import type { Clock } from '../../shared/ports/clock.ts';
import type { Queue } from './queue.ts';

export type CrawlEnd = 'finished' | 'drained' | 'deadline' | 'stopped';

export class CrawlEnding {
  readonly #queue: Queue;
  readonly #clock: Clock;
  /** The deadline has ended the work. Final, whatever the clock or the orders do later. */
  #isOver = false;

  constructor(queue: Queue, clock: Clock) {
    this.#queue = queue;
    this.#clock = clock;
  }

  /** How it has ended; null while it goes on. */
  endedBy(stop: AbortSignal): CrawlEnd | null {
    if (stop.aborted) return 'stopped';
    if (this.#queue.isDraining) return 'drained';
    if (this.#isOver || this.#clock.now() >= this.#queue.deadlineMs) return 'deadline';
    return this.#queue.isFinished ? 'finished' : null;
  }

  /** Runs `crawl` with a signal that aborts requests under way: at the deadline, and when `stop` does. */
  async within<T>(stop: AbortSignal, crawl: (work: AbortSignal) => Promise<T>): Promise<T> {
    const work = new AbortController();
    const onStop = (): void => work.abort();
    stop.addEventListener('abort', onStop, { once: true });
    const watch = this.#watchDeadline(work);
    try {
      return await crawl(work.signal);
    } finally {
      stop.removeEventListener('abort', onStop);
      work.abort();
      await watch;
    }
  }

  /** Orders may move the deadline, so it is checked every second. */
  async #watchDeadline(work: AbortController): Promise<void> {
    while (!work.signal.aborted) {
      const leftMs = this.#queue.deadlineMs - this.#clock.now();
      if (leftMs <= 0) {
        this.#isOver = true;
        work.abort();
      } else await this.#clock.sleep(Math.min(leftMs, 1_000), work.signal);
    }
  }
}

/**
 * Crawls the granted products one by one at the pace, until nothing more will come, the deadline, or an order to stop.
 *
 * Signals: `wait` ends waiting (order to drain, deadline, power off) and lets a request that is under way finish;
 * `work` cuts that request off too (deadline, power off).
 */
import type { Clock } from '../../shared/ports/clock.ts';
import { productUrl } from '../../shared/domain/product.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { SignalFlag } from '../control/signal-flag.ts';
import type { FetchHooks, PageResult } from '../fetch/page-result.ts';
import type { Pacer } from '../politeness/pacer.ts';
import type { PageTimes } from '../politeness/page-times.ts';
import type { Queue } from './queue.ts';
import type { Item } from './queue-state.ts';
import { toItemResult } from './item-result.ts';

export interface CrawlLoopParts {
  queue: Queue;
  pacer: Pacer;
  clock: Clock;
  pageTimes: PageTimes;
  productUrl: string;
  fetchPage: (url: string, hooks: FetchHooks, signal: AbortSignal) => Promise<PageResult>;
  /** Raised by others when the queue or the orders have changed. */
  changed: SignalFlag;
  /** Called after every outcome. */
  onResult: () => void;
  /** Called when the queue has become empty. */
  onEmpty: () => void;
  /** How long the queue stays empty, without a seal, before failed products are tried again. */
  idleMs: number;
}

export type CrawlEnd = 'finished' | 'drained' | 'deadline' | 'stopped';

/** How long to wait before writing again to a disk that refused. */
const DISK_RETRY_MS = 1_000;

export class CrawlLoop {
  readonly #parts: CrawlLoopParts;
  /** Wall-clock time of monotonic zero: starts are written with fractions, and a clock that is set does not move their gaps. */
  readonly #wallMs: number;

  constructor(parts: CrawlLoopParts) {
    this.#parts = parts;
    this.#wallMs = parts.clock.now() - parts.clock.monotonic();
  }

  /** Resolves when no further request will be sent; `stop` ends it at once. */
  async run(stop: AbortSignal): Promise<CrawlEnd> {
    const { queue, clock, changed, idleMs, onEmpty } = this.#parts;
    const work = new AbortController();
    const onStop = (): void => work.abort();
    stop.addEventListener('abort', onStop, { once: true });
    const watch = this.#watchDeadline(work);
    try {
      let idle = false;
      for (;;) {
        const end = this.#endedBy(stop);
        if (end) return end;
        const item = queue.state.peek(queue.isSealed || idle);
        if (item) {
          // Second tries follow each other at the pace; only something new ends them.
          if (item.first === null) idle = false;
          await this.#crawlWhenDue(item, work.signal);
          if (queue.state.pendingCount === 0) onEmpty();
        } else {
          idle = !(await changed.wait(clock, idleMs, work.signal));
        }
      }
    } finally {
      stop.removeEventListener('abort', onStop);
      work.abort();
      await watch;
    }
  }

  #endedBy(stop: AbortSignal): CrawlEnd | null {
    const { queue, clock } = this.#parts;
    if (stop.aborted) return 'stopped';
    if (queue.isDraining) return 'drained';
    if (clock.now() >= queue.deadlineMs) return 'deadline';
    return queue.isFinished ? 'finished' : null;
  }

  /** Orders may move the deadline, so it is looked at again and again. */
  async #watchDeadline(work: AbortController): Promise<void> {
    const { queue, clock } = this.#parts;
    while (!work.signal.aborted) {
      const leftMs = queue.deadlineMs - clock.now();
      if (leftMs <= 0) work.abort();
      else await clock.sleep(Math.min(leftMs, 1_000), work.signal);
    }
  }

  async #crawlWhenDue(item: Item, work: AbortSignal): Promise<void> {
    const { queue, pacer, clock, changed } = this.#parts;
    for (let ms = pacer.waitMs(); ms > 0; ms = pacer.waitMs()) {
      // An order may have ended the crawl or changed what is next: the caller looks again.
      if (await changed.wait(clock, Math.ceil(ms), work)) return;
      if (work.aborted) return;
    }
    if (work.aborted || queue.isDraining) return;
    await this.#crawl(item, work);
  }

  async #crawl(item: Item, work: AbortSignal): Promise<void> {
    const { queue, pacer, clock, pageTimes, fetchPage, onResult } = this.#parts;
    const url = productUrl(this.#parts.productUrl, item.id);
    const beganMs = clock.monotonic();
    let sent = false;
    const hooks: FetchHooks = {
      onStart: () => {
        queue.recordStart(item.n, this.#wallMs + clock.monotonic());
        pacer.requestStarted();
        sent = true;
      },
      onFirstByte: () => pacer.replyStarted(),
    };
    let page: PageResult;
    try {
      page = await fetchPage(url, hooks, work);
    } catch {
      // Only the journal throws here: nothing was sent, and the product stays where it is until the disk takes writes again.
      await clock.sleep(DISK_RETRY_MS, work);
      return;
    }
    // A try that sent nothing (no connection, no such name) keeps the pace too: a shop that is down is not to be hammered.
    if (!sent) pacer.requestStarted(beganMs);
    if (page.kind === 'stopped') return;
    if (sent) pageTimes.add(clock.monotonic() - beganMs);
    await this.#record(item, toItemResult(item, url, page, clock.now()), work);
    onResult();
  }

  /** A result is not thrown away because the disk is full for a while. */
  async #record(item: Item, result: ItemResult, work: AbortSignal): Promise<void> {
    for (;;) {
      try {
        this.#parts.queue.recordResult(item, result);
        return;
      } catch {
        if (work.aborted) return;
        await this.#parts.clock.sleep(DISK_RETRY_MS, work);
      }
    }
  }
}

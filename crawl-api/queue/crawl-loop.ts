/**
 * Crawls the granted products of one domain one by one at the pace, until no more will come, the deadline, or an order
 * to stop.
 *
 * Signals: `wait` ends waiting (order to drain, deadline, power off) but lets a request in flight finish;
 * `work` also aborts that request (deadline, power off).
 */
import { CrawlEnding, type CrawlEnd } from './crawl-ending.ts';
import { DomainCrawl, type DomainCrawlParts } from './domain-crawl.ts';
import type { AddressWatch } from '../politeness/address-watch.ts';
import type { IncidentTracker } from './incident-tracker.ts';
import { untilWritten } from './journal-writer.ts';

export interface CrawlLoopParts extends DomainCrawlParts {
  incidents: IncidentTracker;
  watch: AddressWatch;
  onEmpty: () => void;
  /** How long the queue stays empty, without a seal, before failed products are tried again. */
  idleMs: number;
}

export class CrawlLoop {
  readonly #parts: CrawlLoopParts;
  readonly #crawl: DomainCrawl;
  readonly #ending: CrawlEnding;

  constructor(parts: CrawlLoopParts) {
    this.#parts = parts;
    this.#crawl = new DomainCrawl(parts);
    this.#ending = new CrawlEnding(parts.queue, parts.clock);
  }

  /** Resolves when no further request will be sent; `stop` ends it immediately. */
  run(stop: AbortSignal): Promise<CrawlEnd> {
    return this.#ending.within(stop, (work) => this.#run(stop, work));
  }

  async #run(stop: AbortSignal, work: AbortSignal): Promise<CrawlEnd> {
    const { queue, domain, clock, changed, idleMs, onEmpty } = this.#parts;
    let idle = false;
    for (;;) {
      const end = this.#ending.endedBy(stop);
      if (end) return end;
      if (await this.#waitAtBarrier(work)) continue;
      const isEnd = queue.isSealed || idle;
      const item = queue.state.peek(isEnd, domain);
      if (item) {
        // Second tries follow one another at the pace; only new work ends them.
        if (!item.again) idle = false;
        await this.#crawl.crawl(item, work);
        if (queue.state.items.count('pending') === 0) onEmpty();
      } else if (isEnd && this.#crawl.held > 0) {
        await this.#crawl.proveHeld(work);
      } else {
        idle = !(await changed.wait(clock, idleMs, work));
      }
    }
  }

  /** True after waiting at a barrier that forbids any request. */
  async #waitAtBarrier(work: AbortSignal): Promise<boolean> {
    const { clock, changed, idleMs, incidents, policy } = this.#parts;
    const barrier = policy.barrier();
    if (!barrier) return false;
    const leftMs = barrier.untilMs === null ? idleMs : barrier.untilMs - clock.now();
    if (leftMs > 0) await changed.wait(clock, Math.min(leftMs, idleMs), work);
    else if (barrier.kind === 'incident') await untilWritten(() => incidents.endWhenOver(), clock, work);
    return true;
  }
}

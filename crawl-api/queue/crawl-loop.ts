/**
 * Crawls the granted products of one domain one by one at the pace, until no more will come, the deadline, or an order
 * to stop; and carries out the advice of the address watch.
 *
 * Signals: `wait` ends waiting (order to drain, deadline, power off) but lets a request in flight finish;
 * `work` also aborts that request (deadline, power off).
 */
import type { PageRequests } from '../../shared/adapters/requests/page-requests.ts';
import type { Evidence } from '../../shared/domain/verdict.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { AddressWatch } from '../politeness/address-watch.ts';
import { createEvidence, type Judgement, type JudgementKind, withRequest } from '../politeness/judgement.ts';
import { median } from '../politeness/pacer.ts';
import { PageBaseline } from '../politeness/page-baseline.ts';
import { findBarrier, Pages, type PagesParts } from './pages.ts';
import { isOddContent, toFailure, toOddPage } from './item-result.ts';
import type { CanaryPages } from './canary-pages.ts';
import type { Item } from './items.ts';
import { atDomain, CANARY_PAGE } from './records.ts';
import type { IncidentTracker } from './incident-tracker.ts';
import { type ProductParts, type VisitEnd, visitProduct } from './product.ts';
import { RecordTooLargeError } from './journal-file.ts';
import { untilWritten } from './journal-writer.ts';

export interface CrawlLoopParts extends PagesParts, Pick<ProductParts, 'reportsLinks' | 'rowPages'> {
  /** How each page is requested. */
  requests: PageRequests;
  watch: AddressWatch;
  canaryPages: CanaryPages;
  incidents: IncidentTracker;
  onResult: () => void;
  onEmpty: () => void;
  /** How long the queue stays empty, without a seal, before failed products are tried again. */
  idleMs: number;
}

type Outcome = Extract<VisitEnd, { kind: 'outcome' }>;

export type CrawlEnd = 'finished' | 'drained' | 'deadline' | 'stopped';

/** Pauses (Retry-After) after which a product fails. */
const MAX_PAUSES = 3;
/** Maximum `gone` products to accept when no page was ever right: a ban may be a 404 from the start. */
const MAX_BELIEVED = 3;
/** The rule in the evidence when a canary page was fetched to prove accumulated results. */
const UNPROVED: Partial<Record<JudgementKind, string>> = { gone: 'gone-in-row', unchanged: 'unchanged-in-row' };
/** Delay after a product that needed no request, so that other tasks get a turn. */
const BREATHER_MS = 1;

export class CrawlLoop {
  readonly #parts: CrawlLoopParts;
  readonly #product: ProductParts;
  readonly #latency = new LatencyWatch();
  readonly #baseline = new PageBaseline();
  /** The deadline has ended the work. Final, whatever the clock or the orders do later. */
  #isOver = false;

  constructor(parts: CrawlLoopParts) {
    const { clock, site, requests, reportsLinks, rowPages } = parts;
    this.#parts = parts;
    const pages = new Pages(parts);
    this.#product = { pages, requests, clock, site, reportsLinks, rowPages, baseline: this.#baseline };
  }

  /** Resolves when no further request will be sent; `stop` ends it immediately. */
  async run(stop: AbortSignal): Promise<CrawlEnd> {
    const { queue, domain, clock, changed, idleMs, onEmpty } = this.#parts;
    const work = new AbortController();
    const onStop = (): void => work.abort();
    stop.addEventListener('abort', onStop, { once: true });
    const watch = this.#watchDeadline(work);
    try {
      let idle = false;
      for (;;) {
        const end = this.#endedBy(stop);
        if (end) return end;
        if (await this.#waitAtBarrier(work.signal)) continue;
        const isEnd = queue.isSealed || idle;
        const item = queue.state.peek(isEnd, domain);
        if (item) {
          // Second tries follow one another at the pace; only new work ends them.
          if (!item.again) idle = false;
          queue.visiting.add(item.n);
          try {
            await this.#crawl(item, work.signal);
          } finally {
            queue.visiting.delete(item.n);
          }
          if (queue.state.pendingCount === 0) onEmpty();
        } else if (isEnd && this.#held > 0) {
          await this.#proveHeld(work.signal);
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

  /** Results of this domain that wait for a proof. */
  get #held(): number {
    return this.#parts.queue.state.heldAt(this.#parts.domain).length;
  }

  #endedBy(stop: AbortSignal): CrawlEnd | null {
    const { queue, clock } = this.#parts;
    if (stop.aborted) return 'stopped';
    if (queue.isDraining) return 'drained';
    if (this.#isOver || clock.now() >= queue.deadlineMs) return 'deadline';
    return queue.isFinished ? 'finished' : null;
  }

  /** Orders may move the deadline, so it is checked every second. */
  async #watchDeadline(work: AbortController): Promise<void> {
    const { queue, clock } = this.#parts;
    while (!work.signal.aborted) {
      const leftMs = queue.deadlineMs - clock.now();
      if (leftMs <= 0) {
        this.#isOver = true;
        work.abort();
      } else await clock.sleep(Math.min(leftMs, 1_000), work.signal);
    }
  }

  /** True after waiting at a barrier that forbids any request. */
  async #waitAtBarrier(work: AbortSignal): Promise<boolean> {
    const { clock, changed, idleMs, incidents } = this.#parts;
    const barrier = findBarrier(this.#parts, clock.now());
    if (!barrier) return false;
    const leftMs = barrier.untilMs === null ? idleMs : barrier.untilMs - clock.now();
    if (leftMs > 0) await changed.wait(clock, Math.min(leftMs, idleMs), work);
    else if (barrier.kind === 'incident') await this.#write(() => incidents.endWhenOver(), work);
    return true;
  }

  async #crawl(item: Item, work: AbortSignal): Promise<void> {
    const { queue, domain, clock, watch, canaryPages, places, requests } = this.#parts;
    const requestsBefore = queue.state.requests;
    const visit = (): Promise<VisitEnd> => visitProduct(this.#product, item, work);
    const end = await (queue.state.isDoubted(item) ? places.alone(domain, visit) : visit());
    if (end.kind === 'not-now') return this.#breakOff();
    if (end.kind === 'wait') return this.#pause(item, end, work);
    const { judgement, result } = end;
    // The product's own page was right, and came after all held results: only the pages after it are in doubt.
    if (judgement.kind === 'gone' && result.outcome === 'stored' && this.#held > 0) await this.#prove(work);
    const isSlow = judgement.kind === 'right' && end.waitMs !== null && this.#latency.note(end.waitMs);
    const { canAsk } = canaryPages;
    const watched = watch.seen(judgement, { canAsk, held: this.#held }, isSlow);
    const advice = canAsk && isLessStored(judgement, result) ? 'ask' : watched;
    const unproved = (): Evidence => createEvidence(UNPROVED[judgement.kind] ?? 'slow', result.url, null);
    const evidence = judgement.evidence ?? withRequest(unproved(), requests.ofProduct(result.url, item.id));
    // The result of a right page stands, whatever happens to the address.
    if (judgement.kind === 'right') await this.#accept(item, result, { proves: true }, work);
    if (advice === 'hold') await this.#hold(item, end, work);
    else if (advice === 'ban' || advice === 'suspect') await this.#beginIncident(advice, evidence, work);
    else if (advice === 'ask') await this.#acceptIfServed(item, end, evidence, work);
    else if (judgement.kind !== 'right') await this.#accept(item, result, {}, work);
    if (queue.state.requests === requestsBefore) await clock.sleep(BREATHER_MS, work);
  }

  async #accept(
    item: Item,
    result: ItemResult,
    how: { proves?: boolean; isFinal?: boolean },
    work: AbortSignal,
  ): Promise<void> {
    const { queue, onResult } = this.#parts;
    await this.#write(() => recordFitting(result, (fitting) => queue.recordResult(item, fitting, how)), work);
    onResult();
  }

  #hold(item: Item, { result, judgement }: Outcome, work: AbortSignal): Promise<void> {
    const { queue } = this.#parts;
    const held: ItemResult = isLessStored(judgement, result) ? { ...item.first!, attempts: result.attempts } : result;
    return this.#write(() => recordFitting(held, (fitting) => queue.note({ t: 'held', result: fitting })), work);
  }

  /** A canary page decides whether the page is odd or the address is banned. */
  async #acceptIfServed(item: Item, end: Outcome, evidence: Evidence, work: AbortSignal): Promise<void> {
    const answer = await this.#ask(work, evidence);
    const isOpen = end.judgement.kind !== 'right';
    if (answer === 'not-now') this.#breakOff();
    if (answer === 'none' && isOpen) await this.#hold(item, end, work);
    if (answer !== 'accept' || !isOpen) return;
    const isFinal = isOddContent(end.result, end.judgement);
    const result = isFinal ? toOddPage(end.result, end.judgement) : end.result;
    await this.#accept(item, result, { proves: true, isFinal }, work);
  }

  /** Fetches canary pages until one answers; an incident begins if it is not served. `none`: none is allowed. */
  async #ask(work: AbortSignal, cause: Evidence | null): Promise<'accept' | 'incident' | 'not-now' | 'none'> {
    const { watch, canaryPages } = this.#parts;
    for (;;) {
      const answer = await canaryPages.ask(this.#product, work);
      if (typeof answer === 'string') return answer;
      const { judgement, retryAfterMs } = answer;
      const advice = watch.answered(judgement);
      if (judgement.kind === 'wait' && retryAfterMs !== null) {
        const paused = await this.#pauseAddress(CANARY_PAGE, retryAfterMs, work);
        if (!paused) return 'incident';
        if (advice === 'ask') return 'not-now';
      }
      if (advice === 'ask') continue;
      if (advice === 'accept') {
        this.#baseline.reset();
        await this.#prove(work);
        return 'accept';
      }
      await this.#beginIncident(advice, cause ?? judgement.evidence ?? createEvidence('no-answer', '', null), work);
      return 'incident';
    }
  }

  /** A page of the domain was right just now. */
  #prove(work: AbortSignal): Promise<void> {
    const { queue, domain, clock } = this.#parts;
    return this.#write(() => queue.note({ t: 'proved', atMs: clock.now(), ...atDomain(domain) }), work);
  }

  /** Lets a canary page prove the last held results, at the end of the shard. */
  async #proveHeld(work: AbortSignal): Promise<void> {
    const { canaryPages, onResult } = this.#parts;
    const answer = canaryPages.canAsk ? await this.#ask(work, null) : 'none';
    if (answer === 'none') await this.#endUnproven(work);
    onResult();
  }

  /** No page is available that could prove the held results. */
  async #endUnproven(work: AbortSignal): Promise<void> {
    const { queue, domain, canaryPages, clock, requests } = this.#parts;
    if (canaryPages.isLastForbidden) {
      // Other pages were right, so this is no sign of a ban. But `gone` is not credible from an unchecked address.
      const giveUp = (item: Item, { url, outcome }: ItemResult): ItemResult => {
        const detail = `${outcome}, but robots.txt allows no page that could prove it`;
        return toFailure({ item, url, nowMs: clock.now() }, 'robots', detail);
      };
      return this.#write(() => queue.giveUpHeld(domain, giveUp), work);
    }
    const gone = queue.state.items.assigned > MAX_BELIEVED ? queue.state.firstHeldGone(domain) : null;
    if (gone === null) return this.#write(() => queue.note({ t: 'accepted', ...atDomain(domain) }), work);
    const evidence = { ...createEvidence('all-gone', gone.url, null), status: gone.status };
    return this.#beginIncident('suspect', withRequest(evidence, requests.ofProduct(gone.url, gone.id)), work);
  }

  #beginIncident(advice: 'ban' | 'suspect', evidence: Evidence, work: AbortSignal, minMs = 0): Promise<void> {
    const verdict = advice === 'ban' ? 'banned' : 'suspect';
    const { incidents, domain } = this.#parts;
    return this.#write(() => incidents.begin(verdict, evidence, { domain, minMs }), work);
  }

  async #pause(item: Item, { forMs, result }: Extract<VisitEnd, { kind: 'wait' }>, work: AbortSignal): Promise<void> {
    const isLast = item.pauses + 1 >= MAX_PAUSES;
    const paused = await this.#pauseAddress(item.n, forMs, work, result);
    if (paused && isLast) await this.#accept(item, result, {}, work);
  }

  /** False when the pause would outlast the deadline: that is a ban. */
  async #pauseAddress(n: number, forMs: number, work: AbortSignal, result?: ItemResult): Promise<boolean> {
    const { queue, domain, clock } = this.#parts;
    const untilMs = clock.now() + forMs;
    if (untilMs < queue.deadlineMs) {
      await this.#write(() => queue.note({ t: 'paused', n, untilMs, ...atDomain(domain) }), work);
      return true;
    }
    const seen = result?.outcome === 'failed' ? result.evidence : undefined;
    const evidence = seen ? { ...seen, rule: 'retry-after' } : createEvidence('retry-after', '', null);
    await this.#beginIncident('ban', evidence, work, forMs);
    return false;
  }

  #breakOff(): void {
    try {
      this.#parts.queue.recordBrokenOff(this.#parts.domain);
    } catch {
      // The disk is completely full: at worst the product counts as being crawled when the process died.
    }
  }

  async #write(write: () => void, work: AbortSignal): Promise<void> {
    await untilWritten(write, this.#parts.clock, work);
  }
}

/**
 * True for a product that has fewer values than usual for the second time. Only a canary page that is right at this
 * moment proves that there are no more, so it is never held as stored. Without such a page its first result, a failure,
 * stands.
 */
function isLessStored(judgement: Judgement, result: ItemResult): boolean {
  return judgement.kind === 'odd' && result.outcome === 'stored';
}

/**
 * Fails the product for its size when its result is too large for the journal, instead of retrying the write forever.
 */
function recordFitting(result: ItemResult, record: (fitting: ItemResult) => void): void {
  try {
    record(result);
  } catch (error) {
    if (!(error instanceof RecordTooLargeError)) throw error;
    const { n, id, url, at, attempts } = result;
    record({ n, id, url, at, attempts, outcome: 'failed', reason: 'too-large', detail: error.message });
  }
}

const RECENT = 5;
const BEFORE = 50;
const FACTOR = 5;
const MIN_SLOW_MS = 2_000;

/** Detects that a site has suddenly become slow: some sites throttle an address before they refuse it. */
export class LatencyWatch {
  readonly #waits: number[] = [];

  /** True when the median time to the first byte of the last five is over 2 s and five times the earlier one. */
  note(waitMs: number): boolean {
    this.#waits.push(waitMs);
    if (this.#waits.length > BEFORE + RECENT) this.#waits.shift();
    if (this.#waits.length < 2 * RECENT) return false;
    const recent = median(this.#waits.slice(-RECENT));
    return recent > MIN_SLOW_MS && recent > FACTOR * median(this.#waits.slice(0, -RECENT));
  }
}

/**
 * The pages of one domain, product by product: what each result means for the others, when a canary page is asked for,
 * and when an incident begins. It carries out the advice of the address watch.
 */
import type { PageMapping } from '../../shared/domain/mapping.ts';
import type { PageRequests } from '../../shared/adapters/requests/page-requests.ts';
import type { Evidence } from '../../shared/domain/verdict.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { AddressWatch } from '../politeness/address-watch.ts';
import { createEvidence, type Judgement, type JudgementKind, withRequest } from '../politeness/judgement.ts';
import { median } from '../politeness/pacer.ts';
import { PageBaseline } from '../politeness/page-baseline.ts';
import { Pages, type PagesParts } from './pages.ts';
import { isOddContent, toFailure, toOddPage } from './item-result.ts';
import type { CanaryPages } from './canary-pages.ts';
import type { Item } from './items.ts';
import { atDomain, CANARY_PAGE } from './records.ts';
import { type ProductParts, type VisitEnd, visitProduct } from './product.ts';
import { RecordTooLargeError } from './journal-file.ts';
import { untilWritten } from './journal-writer.ts';

/** What happens when a domain seems to refuse this address, or asks it to wait. Each call writes to the journal. */
export interface Refusals {
  /** Stops requests: to the whole site, or to one host of many. @param at minMs the least time without any */
  begin(verdict: 'suspect' | 'banned', evidence: Evidence, at: { domain: number; minMs: number }): void;
  /** The domain wants no request for that long (Retry-After). False when that is a refusal. */
  pause(pause: { n: number; domain: number; forMs: number }, evidence: Evidence): boolean;
  /** Whether other addresses of the fleet could show that the site has changed for all. */
  canCompare: boolean;
}

export interface DomainCrawlParts extends PagesParts, Pick<ProductParts, 'reportsLinks' | 'rowPages' | 'sectionOf'> {
  /** How each page is requested. */
  requests: PageRequests;
  watch: Pick<AddressWatch, 'seen' | 'answered'>;
  canaryPages: CanaryPages;
  incidents: Refusals;
  onResult: () => void;
}

type Outcome = Extract<VisitEnd, { kind: 'outcome' }>;

/** Pauses (Retry-After) after which a product fails. */
const MAX_PAUSES = 3;
/** Maximum `gone` products to accept when no page was ever right: a ban may be a 404 from the start. */
const MAX_BELIEVED = 3;
/** The rule in the evidence when a canary page was fetched to prove accumulated results. */
const UNPROVED: Partial<Record<JudgementKind, string>> = { gone: 'gone-in-row', unchanged: 'unchanged-in-row' };
/** Delay after a product that needed no request, so that other tasks get a turn. */
const BREATHER_MS = 1;

export class DomainCrawl {
  readonly #parts: DomainCrawlParts;
  readonly #product: ProductParts & { pages: Pages };
  readonly #latency = new LatencyWatch();
  /** By section of the mapping: the pages of one say nothing about those of another. */
  readonly #baselines = new Map<PageMapping | null, PageBaseline>();

  constructor(parts: DomainCrawlParts) {
    const { clock, site, requests, reportsLinks, rowPages, sectionOf, policy } = parts;
    this.#parts = parts;
    const pages = new Pages(parts);
    const { extent } = policy;
    const baselineOf = (url: string): PageBaseline => {
      const section = sectionOf(url);
      const known = this.#baselines.get(section) ?? new PageBaseline();
      this.#baselines.set(section, known);
      return known;
    };
    this.#product = { pages, requests, clock, site, reportsLinks, rowPages, sectionOf, extent, baselineOf };
  }

  /** Results of this domain that wait for a proof. */
  get held(): number {
    return this.#parts.queue.state.items.at('held', this.#parts.domain).size;
  }

  /** Reads the robots.txt at this URL, in a turn of this domain. */
  async readRobots(url: string, work: AbortSignal): Promise<void> {
    await this.#product.pages.readRobots(url, true, work);
  }

  /** Requests the product, and does what its page calls for. */
  async crawl(item: Item, work: AbortSignal): Promise<VisitEnd> {
    const { queue, clock } = this.#parts;
    const requestsBefore = queue.state.requests;
    queue.visiting.add(item.n);
    try {
      const end = await this.#visit(item, work);
      await this.#take(item, end, work);
      if (end.kind === 'outcome' && queue.state.requests === requestsBefore) await clock.sleep(BREATHER_MS, work);
      return end;
    } finally {
      queue.visiting.delete(item.n);
    }
  }

  #visit(item: Item, work: AbortSignal): Promise<VisitEnd> {
    const { queue, domain, places } = this.#parts;
    const visit = (): Promise<VisitEnd> => visitProduct(this.#product, item, work);
    return queue.state.underWay.isDoubted(item) ? places.alone(domain, visit) : visit();
  }

  async #take(item: Item, end: VisitEnd, work: AbortSignal): Promise<void> {
    const { watch, canaryPages, requests } = this.#parts;
    if (end.kind === 'not-now') return this.#breakOff();
    if (end.kind === 'wait') return this.#pause(item, end, work);
    const { judgement, result } = end;
    // The product's own page was right, and came after all held results: only the pages after it are in doubt.
    if (judgement.kind === 'gone' && result.outcome === 'stored' && this.held > 0) await this.#prove(work);
    const isSlow = judgement.kind === 'right' && end.waitMs !== null && this.#latency.note(end.waitMs);
    const { canAsk } = canaryPages;
    const watched = watch.seen(judgement, { canAsk, held: this.held }, isSlow);
    const advice = canAsk && isLessStored(judgement, result) ? 'ask' : watched;
    const unproved = (): Evidence => createEvidence(UNPROVED[judgement.kind] ?? 'slow', result.url, null);
    const evidence = judgement.evidence ?? withRequest(unproved(), requests.ofProduct(result.url, item.id));
    // The result of a right page stands, whatever happens to the address.
    if (judgement.kind === 'right') await this.#accept(item, result, { proves: true }, work);
    if (advice === 'hold') await this.#hold(item, end, work);
    else if (advice === 'ban' || advice === 'suspect') await this.#beginIncident(advice, evidence, work);
    else if (advice === 'ask') await this.#acceptIfServed(item, end, evidence, work);
    else if (judgement.kind !== 'right') await this.#accept(item, result, { isFinal: isMoved(result) }, work);
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
        for (const baseline of this.#baselines.values()) baseline.reset();
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
  async proveHeld(work: AbortSignal): Promise<void> {
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
    const { canCompare } = this.#parts.incidents;
    const isMany = queue.state.items.assigned > MAX_BELIEVED;
    const gone = canCompare && isMany ? queue.state.items.firstHeldGone(domain) : null;
    if (gone === null) return this.#write(() => queue.note({ t: 'accepted', ...atDomain(domain) }), work);
    const evidence = { ...createEvidence('all-gone', gone.url, null), status: gone.status };
    return this.#beginIncident('suspect', withRequest(evidence, requests.ofProduct(gone.url, gone.id)), work);
  }

  #beginIncident(advice: 'ban' | 'suspect', evidence: Evidence, work: AbortSignal): Promise<void> {
    const verdict = advice === 'ban' ? 'banned' : 'suspect';
    const { incidents, domain } = this.#parts;
    return this.#write(() => incidents.begin(verdict, evidence, { domain, minMs: 0 }), work);
  }

  async #pause(item: Item, { forMs, result }: Extract<VisitEnd, { kind: 'wait' }>, work: AbortSignal): Promise<void> {
    const isLast = item.pauses + 1 >= MAX_PAUSES;
    const paused = await this.#pauseAddress(item.n, forMs, work, result);
    if (paused && isLast) await this.#accept(item, result, {}, work);
  }

  /** False when the pause is a ban. */
  async #pauseAddress(n: number, forMs: number, work: AbortSignal, result?: ItemResult): Promise<boolean> {
    const { domain, incidents } = this.#parts;
    const seen = result?.outcome === 'failed' ? result.evidence : undefined;
    const evidence = seen ? { ...seen, rule: 'retry-after' } : createEvidence('retry-after', '', null);
    let paused = true;
    await this.#write(() => (paused = incidents.pause({ n, domain, forMs }, evidence)), work);
    return paused;
  }

  #breakOff(): void {
    try {
      this.#parts.queue.recordBrokenOff(this.#parts.domain);
    } catch {
      // The disk is completely full: at worst the product counts as being crawled when the process died.
    }
  }

  async #write(write: () => unknown, work: AbortSignal): Promise<void> {
    await untilWritten(write, this.#parts.clock, work);
  }
}

const isMoved = (result: ItemResult): boolean => result.outcome === 'failed' && result.moved !== undefined;

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

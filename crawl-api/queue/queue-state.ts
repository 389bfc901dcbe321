/**
 * The state that the journal's records add up to: chunks, products, results waiting for upload, parts, orders, the
 * state of the address. Pure: the same records in the same order always give the same state. Only `apply` changes it;
 * but the queue and the crawl change what concerns this process alone: news of hosts, origins, the page of the fleet.
 *
 *   pending ─▶ stored | gone | failed
 *   pending ─▶ postponed            a temporary failure, or the process died: a second try at the end
 *   pending | postponed ─▶ held     stands once the address is proved served; after a ban it is pending again
 */
import { isRetryable } from '../../shared/domain/outcome.ts';
import type { Product } from '../../shared/domain/product.ts';
import { policyAt, type RobotsPolicy } from '../../shared/domain/robots-matcher.ts';
import type { HostOrder, PartRef } from '../../shared/wire/callbacks.ts';
import { type ItemResult, SEQ_JUMP } from '../../shared/wire/part.ts';
import {
  type AddressIncident,
  CANARY_PAGE,
  type HostNote,
  type JournalRecord,
  type StandingOrders,
} from './records.ts';
import { DomainStates } from './domain-states.ts';
import { isOpen, type Item, Items, type ItemState } from './items.ts';
import { isMiss, MissCounts } from './miss-counts.ts';
import { Origins } from './origins.ts';
import { RequestLog } from './request-log.ts';
import { ResultLines } from './result-lines.ts';
import { UnderWay } from './under-way.ts';

interface Chunk {
  /** The products of the chunk; null once granted: the products are items then. */
  products: Product[] | null;
  /** The numbers of its products. */
  numbers: Uint32Array;
  /** Its products here that were not begun. */
  untouched: number;
}

/** Where products are read. The same throughout a run: records name a domain by its number. */
export interface Domains {
  of(id: string): number;
  hostOf(domain: number): string;
  /** Of many hosts: the host of a URL, by what one pace holds for. */
  keyOf?(url: URL): string;
  /** Of many hosts: the number of a host, a new one if need be. */
  ofHost?(host: string): number;
  /** Of many hosts: the number of a host; undefined for one that was never named here. */
  find?(host: string): number | undefined;
}

/** The one domain of a site. */
const ONLY: Domains = { of: () => 0, hostOf: () => 'site' };

export class QueueState {
  readonly numbers: Domains;
  readonly domains = new DomainStates();
  readonly origins = new Origins();
  readonly chunks = new Map<string, Chunk>();
  readonly items = new Items();
  readonly underWay = new UnderWay(this.items);
  readonly lines = new ResultLines();
  readonly requestLog = new RequestLog();
  /** Chunks without a grant. */
  readonly #offered = new Set<string>();
  /** Chunks returned untouched that the main server may not know of yet. */
  readonly transferred = new Set<string>();
  /** Chunks to be confirmed before anything is crawled: lost records may have returned them. */
  readonly #doubtful = new Set<string>();
  /** Products in chunks held, granted or not, whatever their outcome. */
  held = 0;
  orders: StandingOrders | null = null;
  robots: RobotsPolicy | null = null;
  drained = false;
  incident: AddressIncident | null = null;
  counts = { stored: 0, gone: 0, failed: 0 };
  /** Counts of the products without a row, those that wait for a second try or for a proof among them. */
  readonly misses = new MissCounts();
  requests = 0;
  rendered = 0;
  canaries = 0;
  /** Id of a product that another instance has stored, from the orders; sent again after a restart. */
  fleetPage: string | null = null;
  /** Of many hosts: the numbers of results that go on at another host, until the main server has them. */
  readonly #moved: number[] = [];
  readonly parts: PartRef[] = [];
  nextSeq = 0;
  ackedSeq = -1;
  /** Records were lost: there may be parts that are not in `parts`. */
  damaged = false;
  manifestText: string | null = null;
  closed = false;

  constructor(numbers: Domains = ONLY) {
    this.numbers = numbers;
  }

  /** Id of a product of this domain that is known to be right; null when none is. */
  rightPageAt(domain: number): string | null {
    const own = this.domains.at(domain).lastStored;
    if (own !== null) return own;
    return this.fleetPage !== null && this.numbers.of(this.fleetPage) === domain ? this.fleetPage : null;
  }

  /**
   * The interval at a domain: as ordered, but at least its Crawl-delay, and what an operator asks for there.
   * @param plannedMs before the first orders
   */
  intervalAt(domain: number, plannedMs: number): number {
    const { delayMs, paceMs } = this.domains.at(domain);
    const ruledMs = policyAt(this.robots, domain)?.crawlDelayMs ?? delayMs;
    return Math.max(this.orders?.intervalMs ?? plannedMs, ruledMs, paceMs);
  }

  apply(record: JournalRecord): void {
    const apply = this.#effects[record.t] as (record: JournalRecord) => void;
    apply(record);
  }

  readonly #effects: { [T in JournalRecord['t']]: (record: Extract<JournalRecord, { t: T }>) => void } = {
    offered: ({ chunk, products }) => {
      if (this.chunks.has(chunk)) return;
      const numbers = Uint32Array.from(products, ({ n }) => n);
      this.chunks.set(chunk, { products, numbers, untouched: 0 });
      this.#offered.add(chunk);
      this.held += products.length;
    },
    granted: ({ chunks }) => chunks.forEach((id) => this.#grant(id)),
    dropped: ({ chunks }) => chunks.forEach((id) => this.#drop(id)),
    ordered: (record) => {
      const { t: _, ...orders } = record;
      this.orders = orders;
    },
    robots: ({ policy }) => (this.robots = policy),
    'origin-robots': (record) => this.#readRobots(record),
    'host-notes': ({ notes }) => notes.forEach((note) => this.#noteHost(note)),
    refused: ({ domain = 0 }) => this.domains.noteRefusal(domain),
    rested: (record) => this.#rest(record),
    'given-up': ({ domain = 0, reason, detail }) => this.domains.giveUp(domain, { reason, detail }),
    drained: () => (this.drained = true),
    process: ({ atMs }) => this.requestLog.begin(atMs),
    clock: (record) => this.requestLog.read(record),
    started: (record) => this.#start(record),
    answered: ({ domain = 0, ...ended }) => this.requestLog.ended({ ...ended, domain }),
    'broken-off': ({ domain = 0 }) => this.underWay.endAt(domain),
    died: ({ n }) => this.#die(n),
    'died-beside': ({ ns }) => this.underWay.doubt(ns),
    postponed: ({ result }) => this.#postpone(result.n, result),
    paused: (record) => this.#pause(record),
    held: ({ result }) => this.#hold(result),
    proved: ({ atMs, domain = 0 }) => {
      this.underWay.endAt(domain);
      this.domains.noteRight(domain, atMs);
      this.#acceptHeld(domain);
    },
    accepted: ({ domain = 0 }) => this.#acceptHeld(domain),
    incident: ({ incident }) => {
      this.underWay.endAt(incident.domain ?? 0);
      this.incident = incident;
      if (incident.verdict !== 'banned') return;
      this.domains.noteBan(incident.domain ?? 0);
      this.#returnHeld(this.items.in('held'));
    },
    reopened: () => (this.incident = null),
    released: () => this.#release(),
    transferred: ({ chunks }) => chunks.forEach((id) => this.#transfer(id)),
    taken: ({ chunks }) => chunks.forEach((id) => this.transferred.delete(id)),
    result: ({ result }) => this.#finish(result),
    cut: ({ seq, from, to }) => {
      this.lines.cut({ seq, from, to });
      this.nextSeq = seq + 1;
    },
    part: ({ part }) => {
      this.parts.push(part);
      this.lines.store(part);
    },
    'log-cut': ({ seq }) => this.requestLog.cut(seq),
    log: ({ log }) => this.requestLog.store(log),
    acked: ({ seq }) => this.#acknowledge(seq),
    manifest: ({ text }) => (this.manifestText = text),
    closed: () => (this.closed = true),
    damaged: () => {
      this.damaged = true;
      this.nextSeq += SEQ_JUMP;
      this.requestLog.avoidUsedNumbers();
      // One of the lost records may have returned a chunk.
      for (const { chunk } of this.#open()) this.#doubtful.add(chunk);
    },
  };

  /**
   * The domain's product to crawl next, without removing it: the next granted one, or with `retry` also a postponed
   * one.
   */
  peek(retry: boolean, domain = 0): Item | null {
    if (this.#doubtful.size > 0) return null;
    const doubted = this.underWay.firstDoubted(domain);
    if (doubted !== null) return doubted;
    return this.items.at('pending', domain).first ?? (retry ? this.items.at('postponed', domain).first : null);
  }

  /** The notes about hosts that are here, or that come with the grants of these chunks. */
  ownNotes(notes: readonly HostOrder[], granted: readonly string[]): HostOrder[] {
    let coming: ReadonlySet<string> | null = null;
    return notes.filter(({ host }) => {
      if (this.numbers.find?.(host) !== undefined) return true;
      coming ??= this.#hostsIn(granted);
      return coming.has(host);
    });
  }

  #hostsIn(chunks: readonly string[]): Set<string> {
    const products = chunks.flatMap((id) => this.chunks.get(id)?.products ?? []);
    const urls = products.flatMap(({ id, robots }) => [URL.parse(id), URL.parse(robots ?? '')]);
    return new Set(urls.flatMap((url) => (url === null ? [] : (this.numbers.keyOf?.(url) ?? []))));
  }

  /** Products that go on at another host, of which the main server does not know yet. */
  get movedCount(): number {
    return this.#moved.length;
  }

  /** Chunks without a grant, or with a doubtful one; during an incident nothing is granted, so these wait. */
  offeredChunks(): string[] {
    const offered = [...this.#offered];
    return this.incident === null ? [...offered, ...this.#doubtful] : offered;
  }

  /** True when no product of the chunk was started: it can be returned without any product being requested twice. */
  isUntouched(id: string): boolean {
    const chunk = this.chunks.get(id);
    if (!chunk || chunk.products !== null) return true;
    // Products that are here under an older generation stay here.
    return chunk.untouched === chunk.numbers.length;
  }

  #open(): Iterable<Item> {
    return this.items.in('pending', 'postponed', 'held');
  }

  #grant(id: string): void {
    this.#doubtful.delete(id);
    const chunk = this.chunks.get(id);
    if (!chunk || chunk.products === null) return;
    this.#offered.delete(id);
    for (const product of chunk.products) {
      // The same product under an older generation of its chunk: this instance owns it already.
      if (this.items.has(product.n)) {
        this.held--;
        continue;
      }
      const domain = this.numbers.of(product.id);
      const asked = [domain, ...(product.robots === undefined ? [] : [this.numbers.of(product.robots)])];
      for (const each of asked) if (this.#isAsked(each) && !this.isNeeded(each)) this.requestLog.again(each);
      const [, at] = asked;
      if (at !== undefined)
        this.origins.noteForeign(domain, new URL(product.id).origin, { domain: at, url: product.robots! });
      this.items.add(product, id, domain);
      chunk.untouched++;
      if (asked.some((each) => this.#isAsked(each))) this.#touch(this.items.get(product.n)!);
    }
    chunk.products = null;
  }

  /** Of many hosts: whether one has open products here, or its robots.txt holds for one that has. */
  isNeeded(domain: number): boolean {
    return this.items.isOpenAt(domain) || this.origins.under(domain).some((each) => this.items.isOpenAt(each));
  }

  #drop(id: string): void {
    if (this.#doubtful.delete(id)) this.#forgetOpen(id);
    const chunk = this.chunks.get(id);
    if (!chunk || chunk.products === null) return;
    this.held -= chunk.numbers.length;
    this.#offered.delete(id);
    this.chunks.delete(id);
  }

  #start({ n, atMs, browser, beside, host, what, domain = 0 }: Extract<JournalRecord, { t: 'started' }>): void {
    this.requests++;
    this.requestLog.sent({
      atMs,
      domain,
      host: host ?? this.numbers.hostOf(domain),
      purpose: what ?? (n === CANARY_PAGE ? 'canary' : 'product'),
      browser: browser === true,
      intervalMs: this.intervalAt(domain, 0),
    });
    if (browser) this.rendered++;
    if (n === CANARY_PAGE && what !== 'robots') this.canaries++;
    if (beside) this.underWay.endAt(domain);
    else this.underWay.clear();
    if (n !== CANARY_PAGE) this.underWay.begin(n);
    const item = this.items.get(n);
    if (item) this.#touch(item);
    // Nothing of one of many hosts that was asked is untouched: not what was granted before that either.
    if (this.domains.at(domain).lastStartMs === null && this.numbers.ofHost !== undefined)
      for (const each of [domain, ...this.origins.under(domain)])
        for (const waiting of this.items.at('pending', each)) this.#touch(waiting);
    this.domains.noteStart(domain, atMs);
  }

  #die(n: number): void {
    this.underWay.clear();
    this.underWay.clearDoubt(n);
    const item = this.items.get(n);
    if (!item || !isOpen(item.state)) return;
    item.deaths++;
    this.#postpone(n, item.first);
  }

  #pause({ n, untilMs, domain = 0 }: Extract<JournalRecord, { t: 'paused' }>): void {
    this.underWay.endAt(domain);
    this.domains.notePause(domain, untilMs);
    const item = this.items.get(n);
    if (item) item.pauses++;
    this.underWay.clearDoubt(n);
  }

  #readRobots({ origin, policy, atMs, movedTo, domain = 0 }: Extract<JournalRecord, { t: 'origin-robots' }>): void {
    this.origins.note(domain, origin, { policy, atMs, movedTo: movedTo ?? null });
    this.domains.noteDelay(domain, policy.crawlDelayMs ?? 0, this.orders?.intervalMs ?? 0);
  }

  /** Only of a host that is here, or is granted next: another one must get no number. */
  #noteHost(note: HostNote): void {
    const domain = this.numbers.ofHost?.(note.host);
    if (domain !== undefined) this.domains.noteHost(domain, note);
  }

  #rest({ domain = 0, untilMs }: Extract<JournalRecord, { t: 'rested' }>): void {
    this.underWay.endAt(domain);
    this.domains.noteRest(domain, untilMs);
    this.#returnHeld(this.items.at('held', domain));
  }

  /** One of many hosts that was asked may not be given to another instance untouched. */
  #isAsked(domain: number): boolean {
    return this.numbers.ofHost !== undefined && this.domains.at(domain).lastStartMs !== null;
  }

  #postpone(n: number, first: ItemResult | null): void {
    const item = this.#endVisit(n);
    if (item?.state !== 'pending') return;
    item.first = first;
    item.again = true;
    this.#move(item, 'postponed');
  }

  #hold(result: ItemResult): void {
    const item = this.#endVisit(result.n);
    if (!item || (item.state !== 'pending' && item.state !== 'postponed')) return;
    item.held = result;
    this.#move(item, 'held');
    if (result.outcome === 'stored') this.domains.noteHeld(item.domain, item.id);
  }

  /** The product, if it is here; its request, if that was the last one, has ended. */
  #endVisit(n: number): Item | undefined {
    this.underWay.end(n);
    return this.items.get(n);
  }

  /** Applies each held result of the domain as if it had just come in, with nothing against it. */
  #acceptHeld(domain: number): void {
    this.domains.trust(domain);
    for (const { item, result } of this.#returnHeld(this.items.at('held', domain))) {
      const retry = !item.again && result.outcome === 'failed' && isRetryable(result.reason);
      if (retry) this.#postpone(item.n, result);
      else this.#finish(result);
    }
  }

  /** Makes held products pending again; returns their results. */
  #returnHeld(held: Iterable<Item>): { item: Item; result: ItemResult }[] {
    return [...held].map((item) => {
      const result = item.held!;
      item.held = null;
      this.#move(item, 'pending');
      return { item, result };
    });
  }

  #transfer(id: string): void {
    this.#drop(id);
    this.#forgetOpen(id);
    this.transferred.add(id);
  }

  /** Drops the chunk's open products: another instance owns them now. */
  #forgetOpen(id: string): void {
    for (const n of this.chunks.get(id)?.numbers ?? []) {
      const item = this.items.get(n);
      if (item?.chunk !== id || !isOpen(item.state)) continue;
      this.#uncount(item);
      this.underWay.clearDoubt(item.n);
      this.items.forget(item);
      this.held--;
    }
    this.chunks.delete(id);
  }

  #release(): void {
    for (const id of this.#offered) this.#drop(id);
    this.#doubtful.clear();
    // The same chunks may be offered here again and must not count as held.
    for (const id of new Set([...this.#open()].map(({ chunk }) => chunk))) this.#forgetOpen(id);
  }

  #finish(result: ItemResult): void {
    const item = this.#endVisit(result.n);
    if (!item || !isOpen(item.state)) return;
    item.reason = result.outcome === 'failed' ? result.reason : null;
    item.first = null;
    item.held = null;
    this.#move(item, result.outcome);
    this.counts[result.outcome]++;
    if (isMiss(result)) this.misses.add(result);
    if (result.outcome === 'stored') this.domains.noteStored(item.domain, result.id, Date.parse(result.at));
    if (result.outcome === 'failed' && result.moved !== undefined) this.#moved.push(this.lines.uncut().to);
    this.lines.add(result);
  }

  #move(item: Item, to: ItemState): void {
    this.#touch(item);
    this.#uncount(item);
    this.items.move(item, to);
    if (to === 'postponed' || to === 'held') item.countedAs = this.misses.await(item.held ?? item.first);
  }

  #uncount(item: Item): void {
    if (item.countedAs !== null) this.misses.endWait(item.countedAs);
    item.countedAs = null;
  }

  #touch(item: Item): void {
    if (item.touched) return;
    item.touched = true;
    const chunk = this.chunks.get(item.chunk);
    if (chunk) chunk.untouched--;
  }

  /** The main server has the results of these parts: what is known of their products need not stay in memory. */
  #acknowledge(seq: number): void {
    this.ackedSeq = Math.max(this.ackedSeq, seq);
    const results = this.lines.acknowledge(seq);
    this.items.release(results);
    while (this.#moved[0] !== undefined && this.#moved[0] < results) this.#moved.shift();
  }
}

/**
 * A modelled instance: takes offers, crawls what it is granted, uploads parts, closes its epoch. It follows orders as crawl-api does:
 * both fulfil one contract (test/contract/instance). Only time is computed instead of waited for. What a real one journals survives its
 * crash: keys, chunks, results, parts as they were cut, orders, the incident.
 */
import type { KeyObject } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { backoffMs } from '../../shared/domain/backoff.ts';
import { type DomainPace, type ProductUrl, domainOf, domainPaces, templatesOf } from '../../shared/domain/domains.ts';
import { manifestKey, partKey } from '../../shared/domain/keys.ts';
import { refusalOf } from '../../shared/domain/offer-refusal.ts';
import { isRetryable } from '../../shared/domain/outcome.ts';
import { paceMarginMs } from '../../shared/domain/pacing.ts';
import { type Product, productUrl } from '../../shared/domain/product.ts';
import { type RobotsPolicy, policyAt } from '../../shared/domain/robots-matcher.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import {
  COMPLETION_PATH,
  type Completion,
  HEARTBEAT_PATH,
  HELLO_PATH,
  type Heartbeat,
  type Incident,
  NO_PROGRESS,
  type Orders,
  type PartRef,
  type Progress,
} from '../../shared/wire/callbacks.ts';
import type { Offer } from '../../shared/wire/instance-api.ts';
import { signPart } from '../../shared/wire/part-signature.ts';
import { type ItemResult, PART_PRODUCTS, SEQ_JUMP, encodeManifest } from '../../shared/wire/part.ts';
import type { InstanceSettings } from '../../shared/wire/settings.ts';
import {
  type Envelope,
  type Signatures,
  createKeyPair,
  exportPublicKey,
  importPublicKey,
  macMessage,
  sha256Hex,
} from '../../shared/wire/signature.ts';
import type { Callback, CallbackReply } from '../control/callbacks/callbacks.ts';
import type { OfferResult } from '../control/model/core.ts';
import type { EventClock, Timer } from './event-clock.ts';

/** How the shop treats a request. `ban`: refused beyond doubt; `odd`: canary pages are unreadable too; `down`: a server error. */
export type Treatment = 'fine' | 'ban' | 'odd' | 'down';

/** Why an instance has stopped crawling; `untilMs` is null when only the main server can end it. */
export interface OwnIncident {
  verdict: Incident['verdict'];
  rule: string;
  atMs: number;
  untilMs: number | null;
}

/** An instance that sends requests. */
export interface Visitor {
  readonly slot: number;
  readonly epoch: number;
  readonly address: string;
  /** The rules that it knows; null before the first. */
  readonly robots: RobotsPolicy | null;
  readonly incident: OwnIncident | null;
  /** From the request to its page, where the site does not say. */
  readonly pageMs: number;
  /** How many times longer its products take than the site says. */
  readonly slowness: number;
}

export interface Site {
  treat(instance: Visitor, product: Product): Treatment;
  /** What becomes of a product whose page is right. */
  result(product: Product, instance: Visitor): ItemResult;
  /** Sees every request, also one whose page never comes. */
  onRequest(instance: Visitor, product: Product): void;
  /** From one product to the next at the least, and from the request to its result, for the products of a chunk. */
  pace(products: number): Pace;
}

export interface Pace {
  gapMs: number;
  pageMs: number;
}

export class Life {
  /** The machine is gone. */
  isDead = false;
  isFrozen = false;
  readonly #clock: EventClock;
  readonly #act: () => void;
  /** Number of the process: promises of an earlier one are dropped. */
  #process = 0;
  #upFromMs = -Infinity;
  /** What came while it was frozen. */
  #late: (() => void)[] = [];
  #timer: Timer | null = null;

  /** @param act does everything that is due; called when a timer ends */
  constructor(clock: EventClock, act: () => void) {
    this.#clock = clock;
    this.#act = act;
  }

  now(): number {
    return this.#clock.now();
  }

  /** A process runs, and is not frozen. */
  get isRunning(): boolean {
    return !this.isDead && !this.isFrozen && this.now() >= this.#upFromMs;
  }

  /** The process ends here; the next one begins at that time. */
  restart(atMs: number): void {
    this.#process++;
    this.#upFromMs = atMs;
    this.#cancel();
    this.wakeAt(atMs);
  }

  end(): void {
    this.isDead = true;
    this.#process++;
    this.#cancel();
  }

  thaw(): void {
    this.isFrozen = false;
    for (const act of this.#late.splice(0)) act();
  }

  /** Wakes it at that time, unless it wakes sooner: then it sees what is due. */
  wakeAt(atMs: number): void {
    if (this.isDead || atMs === Infinity) return;
    if (this.#timer && !this.#timer.cancelled && this.#timer.atMs <= atMs) return;
    this.#cancel();
    const timer = this.#clock.at(atMs, () => {
      if (this.#timer === timer) this.#timer = null;
      this.#act();
    });
    this.#timer = timer;
  }

  #cancel(): void {
    if (this.#timer) this.#timer.cancelled = true;
  }

  after(ms: number, act: () => void): void {
    const process = this.#process;
    this.#clock.at(this.now() + ms, () => this.#when(process, act));
  }

  /** `then` gets why it has failed, or null and the value. */
  settle<T>(promise: Promise<T>, then: (failure: unknown, value?: T) => void): void {
    const process = this.#process;
    promise.then(
      (value) => this.#when(process, () => then(null, value)),
      (error: unknown) => this.#when(process, () => then(error ?? new Error('failed'))),
    );
  }

  /** Not when this process has ended meanwhile; a frozen one goes on with it when it is thawed. */
  #when(process: number, act: () => void): void {
    if (process !== this.#process || this.isDead) return;
    if (this.isFrozen) this.#late.push(() => process === this.#process && act());
    else act();
  }
}

/** A granted product without an outcome, with the pace of its chunk. */
export interface Queued extends Pace {
  readonly product: Product;
  readonly chunk: string;
  readonly domain: number;
  /** A request was sent for it: its chunk is not returned. */
  asked: boolean;
  /** This is its second try. */
  again: boolean;
  /** The failure of its first try, which stands if there is no second one. */
  first: ItemResult | null;
  /** How often the process died while crawling it. */
  deaths: number;
}

interface Chunk {
  readonly size: number;
  /** Null once granted. */
  products: readonly Product[] | null;
}

/** The products of one domain without an outcome. */
interface Line {
  waiting: Queued[];
  /** What waits begins here. */
  head: number;
  /** Tried again when nothing waits. */
  postponed: Queued[];
}

/** A part as it was cut: every retry stores the same bytes. */
export interface Cut {
  readonly seq: number;
  readonly results: readonly ItemResult[];
}

const KEPT_HEAD = 1_024;

export class Shard {
  readonly #productUrl: ProductUrl;
  readonly #paceOf: (products: number) => Pace;
  readonly #chunks = new Map<string, Chunk>();
  /** Chunks without a grant. */
  readonly #offered = new Set<string>();
  /** Chunks to be confirmed before anything is crawled: lost records may have returned them. */
  readonly #doubtful = new Set<string>();
  readonly #returned = new Set<string>();
  /** Products granted to it, also those with an outcome. */
  readonly #known = new Set<number>();
  readonly #lines: readonly Line[];
  readonly #parts: PartRef[] = [];
  /** Parts that the main server has not acknowledged begin here. */
  #unacknowledged = 0;
  #nextSeq = 0;
  #results: { result: ItemResult; queued: Queued }[] = [];
  /** Products held, whatever their outcome. */
  held = 0;
  /** Granted products without an outcome. */
  open = 0;
  readonly counts = { stored: 0, gone: 0, failed: 0 };
  requests = 0;
  cut: Cut | null = null;
  /** Records were lost. */
  damaged = false;

  /** @param paceOf the pace of the products of a chunk */
  constructor(productUrl: ProductUrl, paceOf: (products: number) => Pace) {
    this.#productUrl = productUrl;
    this.#paceOf = paceOf;
    this.#lines = templatesOf(productUrl).map(() => ({ waiting: [], head: 0, postponed: [] }));
  }

  get assigned(): number {
    return this.#known.size;
  }

  /** Results that no part has. */
  get uncut(): number {
    return this.#results.length;
  }

  get parts(): readonly PartRef[] {
    return this.#parts;
  }

  get returned(): ReadonlySet<string> {
    return this.#returned;
  }

  has(chunk: string): boolean {
    return this.#chunks.has(chunk);
  }

  take({ chunk, products }: Offer): void {
    this.#chunks.set(chunk, { size: products.length, products });
    this.#offered.add(chunk);
    this.held += products.length;
  }

  /** Chunks that wait for a grant; during an incident nothing is granted, so doubtful ones wait. */
  offered(hasIncident: boolean): string[] {
    return hasIncident ? [...this.#offered] : [...this.#offered, ...this.#doubtful];
  }

  /** Carries out grants, drops and the seal, after which nothing is granted; returns the number of chunks granted. */
  follow({ grants, drops, sealed }: Pick<Orders, 'grants' | 'drops' | 'sealed'>, hasIncident: boolean): number {
    const offered = new Set(this.offered(hasIncident));
    const granted = grants.filter((id) => offered.delete(id));
    for (const id of sealed ? offered : drops.filter((id) => offered.has(id))) this.#drop(id);
    for (const id of granted) this.#grant(id);
    return granted.length;
  }

  #grant(id: string): void {
    this.#doubtful.delete(id);
    this.#offered.delete(id);
    const chunk = this.#chunks.get(id)!;
    const { products } = chunk;
    if (products === null) return;
    chunk.products = null;
    const pace = this.#paceOf(products.length);
    for (const product of products) {
      if (this.#known.has(product.n)) {
        // The same product under an older generation of its chunk.
        this.held--;
        continue;
      }
      this.#known.add(product.n);
      this.open++;
      const domain = domainOf(this.#productUrl, product.id);
      const fresh = { asked: false, again: false, first: null, deaths: 0 };
      this.#lines[domain]!.waiting.push({ product, chunk: id, domain, ...pace, ...fresh });
    }
  }

  #drop(id: string): void {
    if (this.#doubtful.delete(id)) this.#forgetOpen(new Set([id]));
    if (!this.#offered.delete(id)) return;
    this.held -= this.#chunks.get(id)!.size;
    this.#chunks.delete(id);
  }

  /** Another instance owns the open products of these chunks now. */
  #forgetOpen(ids: ReadonlySet<string>): void {
    const stays = ({ chunk, product }: Queued): boolean => {
      if (!ids.has(chunk)) return true;
      this.#known.delete(product.n);
      this.open--;
      this.held--;
      return false;
    };
    for (const line of this.#lines) {
      line.waiting = line.waiting.slice(line.head).filter(stays);
      line.head = 0;
      line.postponed = line.postponed.filter(stays);
    }
    for (const id of ids) this.#chunks.delete(id);
  }

  /** Returns those chunks of which nothing was begun, and none of the visited ones; true if there are any. */
  return(ids: readonly string[], visited: ReadonlySet<string>): boolean {
    const returned = ids.filter((id) => !visited.has(id) && !this.#returned.has(id) && this.#isUntouched(id));
    for (const id of returned) {
      this.#drop(id);
      this.#forgetOpen(new Set([id]));
      this.#returned.add(id);
    }
    return returned.length > 0;
  }

  #isUntouched(id: string): boolean {
    const chunk = this.#chunks.get(id);
    if (chunk === undefined || chunk.products !== null) return true;
    let untouched = 0;
    for (const { waiting, head } of this.#lines)
      for (let i = head; i < waiting.length; i++) if (waiting[i]!.chunk === id && !waiting[i]!.asked) untouched++;
    return untouched === chunk.size;
  }

  /** The main server has recorded that they were returned. */
  forgetReturned(ids: readonly string[]): void {
    for (const id of ids) this.#returned.delete(id);
  }

  /** Drops what is not crawled, as a banned instance does; false when there is nothing. */
  release(): boolean {
    if (this.open === 0 && this.#offered.size === 0) return false;
    for (const id of this.#offered) this.#drop(id);
    this.#doubtful.clear();
    this.#forgetOpen(new Set(this.#allOpen().map(({ chunk }) => chunk)));
    return true;
  }

  /** Products that wait for their first try, or with `again` for the second one, at a domain. */
  count(domain: number, again: boolean): number {
    const { waiting, head, postponed } = this.#lines[domain]!;
    if (this.#doubtful.size > 0) return 0;
    return again ? postponed.length : waiting.length - head;
  }

  /** The domain's next product: one that waits, or with `retry` a postponed one. */
  next(domain: number, retry: boolean): Queued | null {
    if (this.#doubtful.size > 0) return null;
    const { waiting, head, postponed } = this.#lines[domain]!;
    return waiting[head] ?? (retry ? (postponed[0] ?? null) : null);
  }

  /** What a page came to: an outcome, or a temporary failure that leads to a second try. */
  settle(queued: Queued, result: ItemResult): void {
    // A page without a field is proved by a canary page, and then a second try would prove nothing new.
    const isTemporary = result.outcome === 'failed' && result.reason !== 'parse' && isRetryable(result.reason);
    if (isTemporary && !queued.again) this.#postpone(queued, result);
    else this.#finish(queued, queued.again ? { ...result, attempts: 2 } : result);
  }

  #postpone(queued: Queued, first: ItemResult | null): void {
    this.#remove(queued);
    queued.again = true;
    queued.first = first;
    this.#lines[queued.domain]!.postponed.push(queued);
  }

  #finish(queued: Queued, result: ItemResult): void {
    this.#remove(queued);
    this.open--;
    this.counts[result.outcome]++;
    this.#results.push({ result, queued });
  }

  /** It is the first of its line. */
  #remove(queued: Queued): void {
    const line = this.#lines[queued.domain]!;
    if (queued.again) line.postponed.shift();
    else if (++line.head === line.waiting.length || line.head > KEPT_HEAD) {
      line.waiting = line.waiting.slice(line.head);
      line.head = 0;
    }
  }

  /** The process died while this product's page was under way. */
  die(queued: Queued, at: string): void {
    queued.deaths++;
    this.#postpone(queued, queued.first);
    if (queued.deaths < 2) return;
    const { n, id } = queued.product;
    const detail = `the crawler died ${queued.deaths} times while crawling this product`;
    // From the end of its line to the front: only that can be finished.
    const { postponed } = this.#lines[queued.domain]!;
    postponed.unshift(postponed.pop()!);
    const url = productUrl(templatesOf(this.#productUrl)[queued.domain]!, id);
    this.#finish(queued, { n, id, url, at, attempts: 2, outcome: 'failed', reason: 'poison', detail });
  }

  /**
   * So many results, and all records after the first of them, did not reach the disk. Returns the product under way at
   * that point; null when nothing was lost.
   */
  lose(count: number): Queued | null {
    const lost = this.#results.splice(Math.max(0, this.#results.length - count));
    for (const { result, queued } of lost.toReversed()) {
      const line = this.#lines[queued.domain]!;
      this.counts[result.outcome]--;
      this.open++;
      queued.asked = false;
      if (queued.again) line.postponed.unshift(queued);
      else line.waiting.splice(line.head, 0, queued);
    }
    const first = lost[0]?.queued ?? null;
    if (first === null) return null;
    first.asked = true;
    this.requests -= lost.length - 1;
    this.damaged = true;
    this.#nextSeq += SEQ_JUMP;
    for (const { chunk } of this.#allOpen()) this.#doubtful.add(chunk);
    return first;
  }

  /** No request follows: failures of first tries are final. */
  stopCrawling(): void {
    for (const line of this.#lines) {
      const left = line.postponed.filter(({ first }) => first === null);
      line.postponed = line.postponed.filter(({ first }) => first !== null);
      while (line.postponed.length > 0) this.#finish(line.postponed[0]!, line.postponed[0]!.first!);
      line.postponed = left;
    }
  }

  /** Cuts the next part from the oldest results, with what an attacker has made up. */
  cutPart(forged: readonly ItemResult[]): Cut {
    const results = [...forged, ...this.#results.splice(0, PART_PRODUCTS).map(({ result }) => result)];
    return (this.cut = { seq: this.#nextSeq++, results });
  }

  /** The part that was cut is in the bucket. */
  noteStored(part: PartRef): void {
    this.cut = null;
    this.#parts.push(part);
  }

  /** The main server has every part up to this one. */
  acknowledge(seq: number): void {
    while ((this.#parts[this.#unacknowledged]?.seq ?? Infinity) <= seq) this.#unacknowledged++;
  }

  unacknowledged(limit: number): PartRef[] {
    return this.#parts.slice(this.#unacknowledged, this.#unacknowledged + limit);
  }

  #allOpen(): Queued[] {
    return this.#lines.flatMap(({ waiting, head, postponed }) => [...waiting.slice(head), ...postponed]);
  }
}

/** What an instance does wrong: each must break an invariant. */
export interface Wrongs {
  forgetsPace?: boolean;
  keepsCrawlingBanned?: boolean;
}

export interface CrawlParts {
  instance: Visitor;
  settings: InstanceSettings;
  shard: Shard;
  site: Site;
  wrongs: Wrongs;
  /** An incident has begun or ended, or the crawl is over: the main server should know. */
  onChange: () => void;
  /** A result has come, and no other one waits for a part. */
  onFirstResult: (atMs: number) => void;
  /** The last product that waited is done. */
  onEmpty: (atMs: number) => void;
}

interface AtDomain {
  /** When it sent its last request there, refused or not; null before the first. */
  lastRequestMs: number | null;
  /** When the pace was last kept from: null in a process that has forgotten it. */
  pacedFromMs: number | null;
  pacedGapMs: number;
  /** When a page was last right. */
  okAtMs: number | null;
  /** When the last product that waited was done. */
  emptiedMs: number;
}

interface Page {
  queued: Queued;
  isDown: boolean;
  doneAtMs: number;
}

/** Counters that begin again with each process. */
type Tally = Pick<Progress, 'tried' | 'unavailable' | 'served' | 'pageMs'>;
const NO_TALLY: Tally = { tried: 0, unavailable: 0, served: 0, pageMs: null };

export class SimulatedCrawl {
  incident: OwnIncident | null = null;
  robots: RobotsPolicy | null = null;
  /** As ordered, whatever the Crawl-delay of a domain. */
  intervalMs: number;
  deadlineMs: number;
  isSealed = false;
  /** By order: the page under way is the last one. */
  isDraining = false;
  /** No request follows: what is left is to upload. */
  isOver = false;
  readonly #p: CrawlParts;
  readonly #at: readonly AtDomain[];
  readonly #domains: readonly DomainPace[];
  readonly #busiestShare: number;
  #minGapMs: number | null = null;
  #tally: Tally = { ...NO_TALLY };
  #page: Page | null = null;
  /** Since when nothing has changed for it: orders, grants, an incident. */
  #wokenMs = -Infinity;

  constructor(parts: CrawlParts) {
    const { site, deadline } = parts.settings;
    this.#p = parts;
    this.intervalMs = site.intervalMs;
    this.deadlineMs = Date.parse(deadline);
    this.#domains = domainPaces(site.productUrl, null);
    this.#busiestShare = Math.max(...this.#domains.map(({ share }) => share));
    const none = { lastRequestMs: null, pacedFromMs: null, pacedGapMs: 0, okAtMs: null, emptiedMs: -Infinity };
    this.#at = this.#domains.map(() => ({ ...none }));
  }

  get progress(): Pick<Progress, 'minGapMs' | keyof Tally> {
    return { minGapMs: this.#minGapMs, ...this.#tally };
  }

  get hasPage(): boolean {
    return this.#page !== null;
  }

  /** The process died, and another begins at that time. `lost`: results whose records did not reach the disk whole. */
  restart(atMs: number, lost: number): void {
    const { shard, wrongs } = this.#p;
    const page = this.#page;
    this.#page = null;
    this.#tally = { ...NO_TALLY };
    this.#wokenMs = atMs;
    const first = shard.lose(lost);
    if (first !== null && page !== null) {
      page.queued.asked = false;
      shard.requests--;
    }
    const dying = first ?? page?.queued;
    if (dying !== undefined) shard.die(dying, new Date(atMs).toISOString());
    for (const at of this.#at) {
      // The time since the last request is not known to it: it waits for a whole interval.
      at.pacedFromMs = wrongs.forgetsPace || at.lastRequestMs === null ? null : atMs;
      at.pacedGapMs = 0;
    }
  }

  /** The queue or the orders have changed. */
  wake(now: number): void {
    this.#wokenMs = now;
  }

  begin(verdict: OwnIncident['verdict'], rule: string, now: number): void {
    const untilMs = verdict === 'banned' ? now + this.#p.settings.site.ban.coolDownMs : null;
    this.#setIncident({ verdict, rule, atMs: now, untilMs }, now);
  }

  /** The main server's decision about a suspicion; ignored without one. */
  decide(verdict: 'ok' | 'banned', now: number): void {
    const { incident } = this;
    if (incident?.verdict !== 'suspect') return;
    if (verdict === 'banned') this.begin('banned', incident.rule, now);
    else this.#setIncident(null, now);
  }

  #setIncident(incident: OwnIncident | null, now: number): void {
    this.incident = incident;
    this.wake(now);
    this.#p.onChange();
  }

  /** Ends what is over, takes the page that has come, and sends the next request when it may. */
  advance(now: number): void {
    this.#settlePage(now);
    this.#endWhenOver(now);
    if (this.isOver) return;
    const { incident } = this;
    if (incident !== null && incident.untilMs !== null && now >= incident.untilMs) this.#setIncident(null, now);
    if (now < this.#nextRequestMs()) return;
    this.#request(now);
    this.#endWhenOver(now);
  }

  /** The deadline aborts the page under way; a drain does not. */
  #endWhenOver(now: number): void {
    if (this.isOver) return;
    const isFinished = this.isSealed && this.#p.shard.open === 0;
    if (now < this.deadlineMs && !((this.isDraining || isFinished) && this.#page === null)) return;
    this.isOver = true;
    this.#page = null;
    this.#p.shard.stopCrawling();
    this.#p.onChange();
  }

  /** When it has to act again; Infinity for never. */
  dueMs(now: number): number {
    if (this.isOver) return Infinity;
    let due = Math.min(this.deadlineMs, this.incident?.untilMs ?? Infinity);
    if (this.#page) {
      const { shard } = this.#p;
      // A result is counted with the next request or heartbeat; only the last one of all, or of a part, has consequences of its own.
      const hasConsequences = this.isDraining || shard.open === 1 || shard.uncut + 1 >= PART_PRODUCTS;
      if (hasConsequences) due = Math.min(due, this.#page.doneAtMs);
    }
    return Math.max(now, Math.min(due, Math.max(now + 1, this.#nextRequestMs())));
  }

  /** Chunks of the page under way, and of the products that are next in turn: they are not returned. */
  visited(): ReadonlySet<string> {
    const visited = new Set<string>();
    if (this.#page) visited.add(this.#page.queued.chunk);
    for (let domain = 0; domain < this.#at.length; domain++) {
      const next = this.#isOpen(domain) ? this.#p.shard.next(domain, this.isSealed) : null;
      if (next) visited.add(next.chunk);
    }
    return visited;
  }

  /** True when nothing forbids a request to the domain, at the pace. */
  #isOpen(domain: number): boolean {
    const { shard, settings, wrongs } = this.#p;
    if (this.isDraining || (this.incident !== null && !wrongs.keepsCrawlingBanned)) return false;
    if (shard.requests >= (settings.site.maxRequests ?? Infinity)) return false;
    if (settings.site.robots === 'ignore') return true;
    const policy = policyAt(this.robots, domain);
    return policy !== null && policy.access !== 'none';
  }

  /** When the page under way is there, and a domain may be asked for a product; Infinity without one. */
  #nextRequestMs(): number {
    const domain = this.#nextDomain();
    return domain === -1 ? Infinity : Math.max(this.#page?.doneAtMs ?? -Infinity, this.#askMs(domain));
  }

  /** The domain that may be asked soonest; -1 for none. */
  #nextDomain(): number {
    let best = -1;
    let bestMs = Infinity;
    for (let domain = 0; domain < this.#at.length; domain++) {
      const askMs = this.#askMs(domain);
      if (askMs >= bestMs) continue;
      best = domain;
      bestMs = askMs;
    }
    return best;
  }

  /** When this domain may be asked for its next product, after the one under way. */
  #askMs(domain: number): number {
    if (!this.#isOpen(domain)) return Infinity;
    const { shard } = this.#p;
    const { queued } = this.#page ?? {};
    const left = (again: boolean): number =>
      shard.count(domain, again) - (queued?.domain === domain && queued.again === again ? 1 : 0);
    if (left(false) > 0) return this.#freeMs(domain);
    if (left(true) > 0) return Math.max(this.#freeMs(domain), this.#retryMs(domain));
    return Infinity;
  }

  /** When postponed products are tried again: once no more will come, or none has come for a heartbeat. */
  #retryMs(domain: number): number {
    if (this.isSealed) return -Infinity;
    return Math.max(this.#at[domain]!.emptiedMs, this.#wokenMs) + this.#p.settings.heartbeatMs;
  }

  /** By the pace in force, whatever it was when the last request began; the Crawl-delay of the rules it knows counts. */
  #freeMs(domain: number): number {
    const { pacedFromMs, pacedGapMs } = this.#at[domain]!;
    if (pacedFromMs === null) return -Infinity;
    const intervalMs = Math.max(this.intervalMs, policyAt(this.robots, domain)?.crawlDelayMs ?? 0);
    return pacedFromMs + Math.max(intervalMs + paceMarginMs(intervalMs), pacedGapMs);
  }

  #request(now: number): void {
    const { shard, site, instance } = this.#p;
    const domain = this.#nextDomain();
    const queued = shard.next(domain, true)!;
    queued.asked = true;
    shard.requests++;
    const at = this.#at[domain]!;
    if (at.lastRequestMs !== null) this.#minGapMs = Math.min(this.#minGapMs ?? Infinity, now - at.lastRequestMs);
    at.lastRequestMs = now;
    at.pacedFromMs = now;
    at.pacedGapMs = (queued.gapMs * instance.slowness) / this.#busiestShare;
    site.onRequest(instance, queued.product);
    const treatment = site.treat(instance, queued.product);
    if (treatment === 'ban' || treatment === 'odd') {
      this.#tally.tried++;
      if (treatment === 'odd') return this.begin('suspect', 'required-missing', now);
      this.begin('banned', 'status-403', now);
      if (!this.#p.wrongs.keepsCrawlingBanned) return;
    }
    const pageMs = Math.max(instance.pageMs, queued.pageMs * instance.slowness);
    this.#page = { queued, isDown: treatment === 'down', doneAtMs: now + pageMs };
    if (pageMs === 0) this.#settlePage(now);
  }

  #settlePage(now: number): void {
    const page = this.#page;
    if (page === null || now < page.doneAtMs) return;
    this.#page = null;
    const { shard, site, instance, onFirstResult, onEmpty } = this.#p;
    const { queued, doneAtMs } = page;
    const isRetry = queued.again;
    const result = page.isDown ? serverError(queued, doneAtMs) : site.result(queued.product, instance);
    const at = this.#at[queued.domain]!;
    const tally = this.#tally;
    tally.tried++;
    tally.pageMs = instance.slowness > 1 ? queued.gapMs * instance.slowness : queued.pageMs;
    tally.pageMs = Math.max(tally.pageMs, instance.pageMs);
    if (result.outcome !== 'failed') tally.served++;
    else if (page.isDown || result.reason === 'network' || result.reason === 'timeout') tally.unavailable++;
    if (result.outcome === 'stored') at.okAtMs = doneAtMs;
    const { uncut } = shard;
    shard.settle(queued, result);
    if (uncut === 0 && shard.uncut > 0) onFirstResult(doneAtMs);
    if (shard.count(queued.domain, false) > 0) return;
    if (!isRetry) at.emptiedMs = doneAtMs;
    if (this.#domains.every((_, domain) => shard.count(domain, false) === 0)) onEmpty(doneAtMs);
  }

  /** Since the last right page, of the domain where that is longest ago; null while one has had none. */
  okAgoMs(now: number): number | null {
    const times = this.#at.filter((at) => at.lastRequestMs !== null || at.okAtMs !== null).map((at) => at.okAtMs);
    return times.length === 0 || times.includes(null) ? null : now - Math.min(...(times as number[]));
  }
}

function serverError({ product: { n, id } }: Queued, atMs: number): ItemResult {
  const at = new Date(atMs).toISOString();
  return { n, id, url: '', at, attempts: 1, outcome: 'failed', reason: 'http-status', detail: 'status 503' };
}

export interface MessageParts {
  settings: InstanceSettings;
  life: Life;
  signatures: Signatures;
  privateKey: KeyObject;
  /** Sends a callback; null when no main server runs, or it died before it answered. */
  call: (path: string, callback: Callback) => Promise<CallbackReply | null>;
  /** An error that ends the simulation: a reply that the run has not signed. */
  onFault: (error: unknown) => void;
}

/** Gets null without an answer. */
type Then = (reply: CallbackReply | null) => void;

export class Messages {
  /** A message is under way. */
  isCalling = false;
  readonly #p: MessageParts;
  readonly #runKey: KeyObject;
  #counter = 0;

  constructor(parts: MessageParts) {
    this.#p = parts;
    this.#runKey = importPublicKey(parts.settings.runPublicKey);
  }

  /** The process died: no reply comes. */
  restart(): void {
    this.isCalling = false;
  }

  /** The hello, with the token of the user data. */
  sendHello(path: string, message: unknown, then: Then): void {
    const body = JSON.stringify(message);
    this.#post(path, null, { body, sign: (e) => macMessage(this.#p.settings.token, e, body) }, then);
  }

  sendSigned(path: string, message: unknown, then: Then): void {
    const body = JSON.stringify(message);
    const { signatures, privateKey } = this.#p;
    this.#post(path, ++this.#counter, { body, sign: (e) => signatures.sign(privateKey, e, body) }, then);
  }

  #post(
    path: string,
    counter: number | null,
    { body, sign }: { body: string; sign: (envelope: Envelope) => string },
    then: Then,
  ): void {
    const { settings, signatures, life, call, onFault } = this.#p;
    const { run, slot, epoch } = settings;
    const envelope = { method: 'POST', path, run, slot, epoch, ...(counter === null ? {} : { counter }) };
    const signature = sign(envelope);
    const callback: Callback = { run, slot, epoch, counter, signature, body: async () => Buffer.from(body) };
    this.isCalling = true;
    life.settle(call(path, callback), (failure, reply) => {
      this.isCalling = false;
      if (failure !== null) return onFault(failure);
      if (reply?.status === 200) {
        const back = { ...envelope, method: 'REPLY' };
        if (!signatures.verify(this.#runKey, back, reply.body, reply.signature ?? ''))
          return onFault(new Error(`the reply to ${path} is not signed by the run`));
      }
      then(reply ?? null);
    });
  }
}

export interface UploadParts {
  id: string;
  settings: InstanceSettings;
  life: Life;
  shard: Shard;
  objects: ObjectStore;
  uploadMs: number;
  /** Signs parts and manifest. */
  privateKey: KeyObject;
  /** A part is in the bucket, or the bucket takes nothing. */
  onChange: () => void;
}

interface Manifest {
  bytes: Uint8Array;
  completion: Completion;
  isStored: boolean;
}

/** Between two tries of what did not succeed. */
export const RETRY_MS = 1_000;
/** The least memory that zlib accepts: a modelled part is small, and there are thousands. */
const PACKING = { level: 1, memLevel: 1, windowBits: 9 };

export class SimulatedUploads {
  /** Why the bucket takes nothing; null while it does. */
  problem: string | null = null;
  /** The longest; null before the first one of this process. */
  slowestMs: number | null = null;
  readonly #p: UploadParts;
  /** When the oldest result has waited long enough. */
  #dueMs = Infinity;
  #nextTryMs = -Infinity;
  #isUploading = false;
  /** Refused for lack of a right, in a row. */
  #refusals = 0;
  #manifest: Manifest | null = null;

  constructor(parts: UploadParts) {
    this.#p = parts;
  }

  get storeRefused(): Pick<Progress, 'storeRefused'> {
    return this.#refusals > 1 ? { storeRefused: true } : {};
  }

  get hasManifest(): boolean {
    return this.#manifest !== null;
  }

  /** Everything that there will be is in parts, and these are in the bucket. */
  get isEmpty(): boolean {
    return this.#p.shard.uncut === 0 && this.#p.shard.cut === null;
  }

  /** The process died: what it had begun has no end, and the wait of its results begins again. */
  restart(atMs: number): void {
    this.problem = null;
    this.slowestMs = null;
    this.#refusals = 0;
    this.#isUploading = false;
    this.#nextTryMs = atMs;
    if (this.#p.shard.uncut > 0) this.#dueMs = atMs + this.#p.settings.partMs;
  }

  /** The first result since the last part came at this time. */
  noteFirst(atMs: number): void {
    this.#dueMs = atMs + this.#p.settings.partMs;
  }

  /** Uploads what is there now; more may follow. */
  hurry(atMs: number): void {
    this.#dueMs = Math.min(this.#dueMs, atMs);
  }

  /** Uploads a part when it is time. `isClosing`: no more results follow. */
  advance(now: number, isClosing: boolean, forged: ItemResult[]): void {
    if (this.#isUploading || now < this.#nextTryMs) return;
    const { shard } = this.#p;
    const isDue = now >= this.#dueMs || isClosing || shard.uncut >= PART_PRODUCTS;
    if (shard.cut !== null || (shard.uncut > 0 && isDue)) this.#uploadPart(forged);
  }

  /** When it has to act again; Infinity for never. */
  dueMs(now: number, isClosing: boolean): number {
    if (this.#isUploading || (this.isEmpty && !isClosing)) return Infinity;
    const isDue = isClosing || this.#p.shard.cut !== null;
    return Math.max(now + 1, this.#nextTryMs, isDue ? now : this.#dueMs);
  }

  #uploadPart(forged: ItemResult[]): void {
    const { shard, settings, life, uploadMs, privateKey } = this.#p;
    const { seq, results } = shard.cut ?? shard.cutPart(forged.splice(0));
    const { run, slot, epoch } = settings;
    this.#isUploading = true;
    life.after(uploadMs, () => {
      const gzip = gzipSync(results.map((r) => JSON.stringify(r)).join('\n'), PACKING);
      const bytes = signPart(gzip, { run, slot, epoch, seq }, privateKey);
      const sha256 = sha256Hex(bytes);
      const key = partKey(run, { slot, epoch, seq, sha256, session: this.#roleSession });
      this.#put(key, bytes, 'application/gzip', () => {
        shard.noteStored({ seq, key, sha256, sizeBytes: bytes.length, products: results.length });
        this.#p.onChange();
      });
    });
  }

  /** Stores the manifest, the same one in every try; `then` gets the message for the main server. */
  close(closedAtMs: number, progress: Progress, then: (completion: Completion) => void): void {
    if (this.#isUploading || closedAtMs < this.#nextTryMs) return;
    this.#nextTryMs = closedAtMs + this.#p.uploadMs + RETRY_MS;
    const { life, uploadMs } = this.#p;
    const manifest = (this.#manifest ??= this.#writeManifest(closedAtMs, progress));
    if (manifest.isStored) return then(manifest.completion);
    this.#isUploading = true;
    life.after(uploadMs, () =>
      this.#put(manifest.completion.manifestKey, manifest.bytes, 'application/json', () => {
        manifest.isStored = true;
        then(manifest.completion);
      }),
    );
  }

  #writeManifest(closedAtMs: number, progress: Progress): Manifest {
    const { settings, shard, id, privateKey } = this.#p;
    const { run, slot, epoch } = settings;
    const closedAt = new Date(closedAtMs).toISOString();
    const manifest = { version: 1, run, slot, epoch, instanceId: id, closedBy: 'instance', closedAt } as const;
    const damaged = shard.damaged ? { damaged: true as const } : {};
    const bytes = encodeManifest({ ...manifest, ...damaged, parts: [...shard.parts], progress }, privateKey);
    const key = manifestKey(run, slot, epoch, this.#roleSession);
    return { bytes, completion: { manifestKey: key, manifestSha256: sha256Hex(bytes) }, isStored: false };
  }

  #put(key: string, bytes: Uint8Array, contentType: string, then: () => void): void {
    const { life, objects, uploadMs, onChange } = this.#p;
    life.settle(objects.putIfAbsent(key, bytes, contentType), (failure) => {
      this.#isUploading = false;
      if (failure === null) {
        this.problem = null;
        this.#refusals = 0;
        this.slowestMs = Math.max(this.slowestMs ?? 0, uploadMs);
        return then();
      }
      // The bucket does not answer: what is in the journal waits.
      const isRefused = failure instanceof Error && failure.name === 'AccessDenied';
      this.#refusals = isRefused ? this.#refusals + 1 : 0;
      const isNews = this.problem === null || this.#refusals === 2;
      this.problem = 'the bucket does not take results';
      this.#nextTryMs = life.now() + RETRY_MS;
      if (isNews) onChange();
    });
  }

  get #roleSession(): string | null {
    return this.#p.settings.s3.roleSession === true ? `AROASIMULATED00000001:${this.#p.id}` : null;
  }
}

export interface Reported {
  shard: Shard;
  crawl: SimulatedCrawl;
  uploads: SimulatedUploads;
  /** The main server has confirmed the completion. */
  isClosed: boolean;
}

/** As of `now`; what is not modelled is as at the beginning. */
export function progressOf({ shard, crawl, uploads }: Omit<Reported, 'isClosed'>, now: number): Progress {
  const { assigned, open, counts, requests } = shard;
  return {
    ...NO_PROGRESS,
    assigned,
    pending: open,
    ...counts,
    requests,
    ...crawl.progress,
    okAgoMs: crawl.okAgoMs(now),
    uploadMs: uploads.slowestMs,
  };
}

/** @param clockMs by its own clock */
export function heartbeatOf(reported: Reported, now: number, clockMs: number): Heartbeat {
  const { shard, crawl, uploads } = reported;
  return {
    phase: phaseOf(reported),
    clock: new Date(clockMs).toISOString(),
    offered: shard.offered(crawl.incident !== null),
    transferred: [...shard.returned],
    progress: { ...progressOf(reported, now), ...uploads.storeRefused },
    parts: shard.unacknowledged(500),
    problem: uploads.problem,
    incident: crawl.incident && incidentOf(crawl.incident, now),
    robots: crawl.robots?.version ?? null,
  };
}

function phaseOf({ shard, crawl, isClosed }: Reported): Heartbeat['phase'] {
  if (isClosed) return 'done';
  if (crawl.isOver) return 'uploading';
  if (crawl.incident !== null) return 'banned';
  return shard.assigned > 0 ? 'crawling' : 'ready';
}

function incidentOf({ verdict, rule, atMs, untilMs }: OwnIncident, now: number): Incident {
  const status = rule === 'status-403' ? 403 : 200;
  const page = { url: 'https://shop.example/item/x', headers: { server: 'test' }, body: '<h1>Forbidden</h1>' };
  const evidence = { rule, status, ...page };
  return { verdict, sinceMs: now - atMs, leftMs: untilMs === null ? null : Math.max(0, untilMs - now), evidence };
}

export interface InstanceOptions extends Pick<MessageParts, 'call' | 'onFault'> {
  id: string;
  settings: InstanceSettings;
  /** The address that it reports, and crawls from. */
  address: string;
  clock: EventClock;
  objects: ObjectStore;
  signatures: Signatures;
  site: Site;
  /** From a message to its answer, and what an upload takes. */
  roundTripMs: number;
  uploadMs: number;
  /** Its epoch belongs to another instance: it powers itself off. */
  onFenced: () => void;
  wrongs: Wrongs;
}

/** Answers to a hello that a repetition would not change. */
const FINAL = [403, 409];

export class SimulatedInstance implements Visitor {
  readonly id: string;
  readonly slot: number;
  readonly epoch: number;
  readonly address: string;
  fenced = false;
  pageMs = 0;
  slowness = 1;
  /** How far its own clock is off. */
  skewMs = 0;
  /** Made up by an attacker who controls it: its next part contains them. */
  forged: ItemResult[] = [];
  readonly #o: InstanceOptions;
  readonly #keys = createKeyPair();
  readonly #life: Life;
  readonly #shard: Shard;
  readonly #crawl: SimulatedCrawl;
  readonly #uploads: SimulatedUploads;
  readonly #messages: Messages;
  #isReady = false;
  #isClosed = false;
  /** By order; null: the share in the offers. */
  #maxProducts: number | null = null;
  #nextHelloMs = -Infinity;
  #nextBeatMs = Infinity;
  /** After a heartbeat without an answer nothing is reported before. */
  #quietUntilMs = -Infinity;
  #failures = 0;

  constructor(options: InstanceOptions) {
    const { id, settings, clock, objects, site, uploadMs, wrongs } = options;
    const { privateKey } = this.#keys;
    this.#o = options;
    this.id = id;
    this.slot = settings.slot;
    this.epoch = settings.epoch;
    this.address = options.address;
    const life = new Life(clock, () => this.#tick());
    const shard = new Shard(settings.site.productUrl, (products) => site.pace(products));
    const onChange = (): void => this.#speak();
    this.#life = life;
    this.#shard = shard;
    this.#crawl = new SimulatedCrawl({
      instance: this,
      settings,
      shard,
      site,
      wrongs,
      onChange,
      onFirstResult: (atMs) => this.#uploads.noteFirst(atMs),
      onEmpty: (atMs) => {
        // In a discovery, what it has found may be all that there is.
        if (settings.site.links === 'report') this.#uploads.hurry(atMs);
        this.#speak();
      },
    });
    this.#uploads = new SimulatedUploads({ id, settings, life, shard, objects, uploadMs, privateKey, onChange });
    this.#messages = new Messages({ ...options, life, privateKey });
  }

  get dead(): boolean {
    return this.#life.isDead;
  }

  get frozen(): boolean {
    return this.#life.isFrozen;
  }

  get incident(): OwnIncident | null {
    return this.#crawl.incident;
  }

  get robots(): RobotsPolicy | null {
    return this.#crawl.robots;
  }

  /** It answers offers. */
  get isListening(): boolean {
    return this.#isReady && this.#life.isRunning && !this.fenced;
  }

  /** What the balancer's health check finds. */
  get isHealthy(): boolean {
    return this.isListening && this.incident === null;
  }

  get isCrawling(): boolean {
    return !this.dead && !this.#crawl.isOver && this.#shard.open > 0;
  }

  /** Products with an outcome so far. */
  get fetched(): number {
    const { stored, gone, failed } = this.#shard.counts;
    return stored + gone + failed;
  }

  /** The machine is up and its program begins. */
  start(): void {
    this.#begin(this.#life.now());
  }

  /** The machine is gone. */
  end(): void {
    this.#life.end();
  }

  /** Does nothing until it is thawed, as a stopped process. */
  freeze(): void {
    this.#life.isFrozen = true;
  }

  thaw(): void {
    if (!this.frozen) return;
    this.#life.thaw();
    this.#tick();
  }

  /**
   * `kill -9` and a restart after `downMs` on the same box. `lost`: results whose records did not reach the disk whole;
   * their products are crawled again.
   */
  crash(downMs: number, lost = 0): void {
    if (this.dead || this.fenced) return;
    const atMs = this.#life.now() + downMs;
    this.#crawl.restart(atMs, lost);
    this.#crawl.isOver = this.#uploads.hasManifest;
    this.#uploads.restart(atMs);
    this.#messages.restart();
    this.#maxProducts = null;
    this.#failures = 0;
    this.#quietUntilMs = -Infinity;
    this.#begin(atMs);
  }

  #begin(atMs: number): void {
    this.#nextHelloMs = atMs;
    this.#nextBeatMs = atMs;
    this.#life.restart(atMs);
  }

  /** Takes the chunk on offer, or refuses it as crawl-api does. */
  offer(offer: Offer): OfferResult {
    const { chunk, share, products } = offer;
    const shard = this.#shard;
    if (shard.returned.has(chunk)) return { kind: 'refused', refusal: { refused: 'share', room: 0 } };
    if (!shard.has(chunk)) {
      const { isOver, isDraining, isSealed, incident, deadlineMs, robots, intervalMs } = this.#crawl;
      const refusal = refusalOf(products.length, share, {
        isDraining: isOver || isDraining,
        isSealed,
        hasIncident: incident !== null,
        held: shard.held,
        open: shard.held - this.fetched,
        maxProducts: this.#maxProducts,
        leftMs: deadlineMs - this.#life.now(),
        productUrl: this.#o.settings.site.productUrl,
        robots,
        intervalMs,
      });
      if (refusal !== null) return { kind: 'refused', refusal };
      shard.take(offer);
      this.#speak();
    }
    const { run } = this.#o.settings;
    const { slot, epoch, id } = this;
    return { kind: 'taken', receipt: { chunk, run, slot, epoch, instanceId: id, held: shard.held } };
  }

  /** Sends a heartbeat as soon as a message takes. */
  #speak(): void {
    const atMs = Math.max(this.#life.now() + this.#o.roundTripMs, this.#quietUntilMs);
    if (atMs >= this.#nextBeatMs) return;
    this.#nextBeatMs = atMs;
    this.#life.wakeAt(atMs);
  }

  /** Does everything that is due. */
  #tick(): void {
    const life = this.#life;
    if (!life.isRunning || this.fenced) return;
    const now = life.now();
    if (!this.#isReady) {
      if (now >= this.#nextHelloMs && !this.#messages.isCalling) this.#hello(now);
      return life.wakeAt(this.#nextHelloMs > now ? this.#nextHelloMs : Infinity);
    }
    const crawl = this.#crawl;
    const uploads = this.#uploads;
    crawl.advance(now);
    uploads.advance(now, crawl.isOver, this.forged);
    if (crawl.isOver && uploads.isEmpty && !this.#isClosed) this.#close(now);
    if (now >= this.#nextBeatMs && !this.#messages.isCalling) this.#heartbeat(now);
    const beatMs = this.#messages.isCalling ? Infinity : this.#nextBeatMs;
    life.wakeAt(Math.min(beatMs, crawl.dueMs(now), uploads.dueMs(now, crawl.isOver && !this.#isClosed)));
  }

  #hello(now: number): void {
    const { settings } = this.#o;
    this.#nextHelloMs = now + RETRY_MS;
    const hello = {
      instanceId: this.id,
      address: this.address,
      publicKey: exportPublicKey(this.#keys.publicKey),
      bundleSha256: settings.bundle.sha256,
      clock: new Date(now + this.skewMs).toISOString(),
    };
    this.#messages.sendHello(HELLO_PATH, hello, (reply) => {
      if (reply !== null && FINAL.includes(reply.status)) return this.#fence();
      this.#isReady ||= reply?.status === 200;
      this.#nextBeatMs = this.#life.now();
      this.#tick();
    });
  }

  #fence(): void {
    this.fenced = true;
    this.#o.onFenced();
  }

  get #parts(): Omit<Reported, 'isClosed'> {
    return { shard: this.#shard, crawl: this.#crawl, uploads: this.#uploads };
  }

  #close(now: number): void {
    this.#uploads.close(now, progressOf(this.#parts, now), (completion) =>
      this.#messages.sendSigned(COMPLETION_PATH, completion, (reply) => {
        this.#isClosed ||= reply?.status === 200;
        if (this.#isClosed) this.#speak();
      }),
    );
  }

  #heartbeat(now: number): void {
    const { heartbeatMs } = this.#o.settings;
    this.#nextBeatMs = now + heartbeatMs;
    const heartbeat = heartbeatOf({ ...this.#parts, isClosed: this.#isClosed }, now, now + this.skewMs);
    this.#messages.sendSigned(HEARTBEAT_PATH, heartbeat, (reply) => {
      if (reply?.status === 200) {
        this.#failures = 0;
        this.#follow(JSON.parse(reply.body) as Orders);
      } else {
        const limits = { firstMs: Math.min(250, heartbeatMs), maxMs: heartbeatMs };
        this.#nextBeatMs = this.#quietUntilMs = this.#life.now() + backoffMs(this.#failures++, limits);
      }
      if (!this.fenced) this.#tick();
    });
  }

  #follow(orders: Orders): void {
    if (orders.fenced) return this.#fence();
    const shard = this.#shard;
    const crawl = this.#crawl;
    const now = this.#life.now();
    const { intervalMs, sealed, drain, robots } = orders;
    const deadlineMs = Date.parse(orders.deadline);
    this.#maxProducts = orders.maxProducts;
    const granted = shard.follow(orders, this.incident !== null);
    const changed =
      granted > 0 ||
      (robots !== null && robots.version !== crawl.robots?.version) ||
      crawl.intervalMs !== intervalMs ||
      crawl.isSealed !== sealed ||
      crawl.isDraining !== drain ||
      crawl.deadlineMs !== deadlineMs;
    Object.assign(crawl, {
      intervalMs,
      deadlineMs,
      isSealed: sealed,
      isDraining: drain,
      robots: robots ?? crawl.robots,
    });
    if (changed) crawl.wake(now);
    shard.acknowledge(orders.partsAck);
    shard.forgetReturned(orders.transferredAck);
    const isDraining = crawl.isOver || drain;
    if (!isDraining && orders.transfer.length > 0 && shard.return(orders.transfer, crawl.visited())) this.#speak();
    if (orders.verdict !== null) crawl.decide(orders.verdict, now);
    if (orders.returnProducts && this.incident?.verdict === 'banned' && !this.#o.wrongs.keepsCrawlingBanned)
      this.#returnProducts(now);
  }

  /** Repeated by each reply until nothing is pending here. */
  #returnProducts(now: number): void {
    if (!this.#uploads.isEmpty) this.#uploads.hurry(now);
    else if (this.#shard.release()) this.#speak();
  }
}

/**
 * The crawl of a modelled instance over many hosts: each at its own pace, its robots.txt first, as many pages at a time
 * as there are places, and none once its lease is over. Long hosts are opened first, and a further host only when a
 * place would be idle.
 */
import {
  CONNECT_LIMIT_MS,
  DEAD_AFTER,
  hostGapMs,
  restOfSilentMs,
  ROBOTS_EVERY_MS,
} from '../../../../shared/domain/host-policy.ts';
import { type Due, TimeHeap } from '../../../../shared/domain/time-heap.ts';
import { type ItemResult, PART_PRODUCTS } from '../../../../shared/wire/part.ts';
import type { HostNews, HostOrder } from '../../../../shared/wire/callbacks.ts';
import type { Crawl, CrawlParts } from './crawl.ts';
import type { Queued } from './shard.ts';
import type { ManyHosts } from './site.ts';

interface Host {
  /** The place of its line in the shard. */
  readonly domain: number;
  readonly key: string;
  /** It has been asked, and may not be returned. */
  isOpen: boolean;
  /** It waits in the heap, or to be opened. */
  isListed: boolean;
  /** When it may be asked again. */
  freeAtMs: number;
  /** When the last request to it began; null before the first. */
  lastRequestMs: number | null;
  robotsAtMs: number;
  /** Requests in a row without an answer. */
  silent: number;
  isDead: boolean;
  /** Its Crawl-delay, as far as it is known. */
  delayMs: number;
  /** It wants no request before; 0: it has never said so. */
  restUntilMs: number;
}

interface Request {
  readonly host: Host;
  /** The record that is asked for; null for robots.txt. */
  readonly queued: Queued | null;
  readonly startedMs: number;
  readonly doneAtMs: number;
  readonly isSilent: boolean;
  /** How long the host wants no request, instead of a page. */
  readonly restMs: number;
}

/** Over how many requests the mean time of a place is taken. */
const MEAN_OF = 100;

export class HostCrawl implements Crawl {
  readonly incident = null;
  robots: Crawl['robots'] = null;
  readonly sinceBan = null;
  intervalMs: number;
  deadlineMs: number;
  pausedUntilMs = 0;
  leaseUntilMs = Infinity;
  isSealed = false;
  isDraining = false;
  isOver = false;
  minGapMs: number | null = null;
  tally: Crawl['tally'] = { tried: 0, unavailable: 0, served: 0, pageMs: null };
  readonly #p: CrawlParts;
  readonly #site: ManyHosts;
  readonly #places: number;
  readonly #runMs: number;
  readonly #hosts: Host[] = [];
  /** Hosts that have products and were never asked, those with most of them first: they take longest. */
  readonly #unopened = new TimeHeap<Due & { host: Host }>();
  /** Open hosts that have products, by the time when they may be asked. */
  readonly #asleep = new TimeHeap<Due & { host: Host }>();
  /** Those that may be asked, and wait for a place: as the unopened ones. */
  readonly #awake = new TimeHeap<Due & { host: Host }>();
  /** Hosts of which the main server must know more before they are asked again. */
  readonly #news = new Set<Host>();
  /** What the main server has said of hosts that came later, or come next. */
  readonly #noted = new Map<string, Pick<Host, 'delayMs' | 'restUntilMs'>>();
  #added = 0;
  #underWay: Request[] = [];
  #okAtMs: number | null = null;

  constructor(parts: CrawlParts, site: ManyHosts) {
    const { site: settings, startedAt, deadline } = parts.settings;
    this.#p = parts;
    this.#site = site;
    this.intervalMs = settings.intervalMs;
    this.deadlineMs = Date.parse(deadline);
    this.#runMs = this.deadlineMs - Date.parse(startedAt);
    this.#places = settings.pagesAtOnce ?? 1;
  }

  /** Hosts are judged one by one: no incident stops the address, and none is decided by the main server. */
  begin(): void {}
  decide(): void {}
  wake(): void {}

  restart(atMs: number, lost: number): void {
    const { shard, wrongs } = this.#p;
    const dying = this.#underWay.flatMap(({ queued }) => queued ?? []);
    this.#underWay = [];
    this.tally = { tried: 0, unavailable: 0, served: 0, pageMs: null };
    const first = shard.lose(lost);
    for (const queued of first === null ? [] : dying) {
      queued.asked = false;
      shard.requests--;
    }
    shard.die(first === null ? dying : [first], new Date(atMs).toISOString());
    this.#asleep.clear();
    this.#awake.clear();
    for (const host of this.#hosts) {
      if (!host.isOpen) continue;
      // The time since the last request is not known to it: it waits for a whole interval.
      host.freeAtMs = wrongs.forgetsPace ? atMs : Math.max(host.freeAtMs, atMs + this.#gapOf(host));
      host.isListed = false;
      this.#list(host);
    }
  }

  advance(now: number): void {
    this.#settleUntil(now);
    this.#endWhenOver(now);
    if (this.isOver) return;
    this.#takeFresh(now);
    for (let host = this.#nextHost(now); host !== null; host = this.#nextHost(now)) this.#request(host, now);
    this.#endWhenOver(now);
  }

  dueMs(now: number): number {
    if (this.isOver) return Infinity;
    let due = this.deadlineMs;
    const { shard } = this.#p;
    if (this.#underWay.length > 0) {
      const isFull = this.#underWay.length >= this.#places || shard.doubted.length > 0;
      const hasConsequences = this.isDraining || shard.open <= this.#places || shard.uncut + 1 >= PART_PRODUCTS;
      if (isFull || hasConsequences) due = Math.min(due, this.#firstDoneMs());
    }
    return Math.max(now, Math.min(due, this.#nextRequestMs(now + 1)));
  }

  visited(): ReadonlySet<string> {
    const visited = new Set<string>();
    for (const { isOpen, domain } of this.#hosts)
      if (isOpen) for (const chunk of this.#p.shard.chunksAt(domain)) visited.add(chunk);
    return visited;
  }

  okAgoMs(now: number): number | null {
    return this.#okAtMs === null ? null : now - this.#okAtMs;
  }

  hostNews(now: number): HostNews[] {
    if (this.#p.wrongs.tellsNothing === true) return [];
    return [...this.#news].map(({ key, delayMs, restUntilMs }) => ({
      host: key,
      delayMs,
      ...(restUntilMs > now ? { waitMs: restUntilMs - now } : {}),
    }));
  }

  heard(news: readonly HostNews[], sentMs: number): void {
    const told = new Map(news.map((each) => [each.host, each]));
    for (const host of this.#news) {
      const { delayMs = -1, waitMs = 0 } = told.get(host.key) ?? {};
      const isAll = host.delayMs <= delayMs && host.restUntilMs <= sentMs + waitMs + 1;
      if (!isAll && this.#p.wrongs.tellsNothing !== true) continue;
      this.#news.delete(host);
      this.#list(host);
    }
  }

  note(orders: readonly HostOrder[], now: number): void {
    for (const { host: key, delayMs = 0, waitMs = 0 } of orders) {
      const restUntilMs = waitMs === 0 ? 0 : now + waitMs;
      this.#noted.set(key, { delayMs, restUntilMs });
      for (const host of this.#hosts) if (host?.key === key) this.#keepNote(host);
    }
  }

  #keepNote(host: Host): void {
    const { delayMs = 0, restUntilMs = 0 } = this.#noted.get(host.key) ?? {};
    host.delayMs = Math.max(host.delayMs, delayMs);
    host.restUntilMs = Math.max(host.restUntilMs, restUntilMs);
    host.freeAtMs = Math.max(host.freeAtMs, host.restUntilMs);
  }

  #gapOf({ delayMs }: Host): number {
    return hostGapMs(this.intervalMs, delayMs);
  }

  #endWhenOver(now: number): void {
    if (this.isOver) return;
    const isFinished = this.isSealed && this.#p.shard.open === 0;
    if (now < this.deadlineMs && !((this.isDraining || isFinished) && this.#underWay.length === 0)) return;
    this.isOver = true;
    this.#underWay = [];
    this.#p.shard.stopCrawling();
    this.#p.onChange();
  }

  /** Hosts that have got products since. */
  #takeFresh(now: number): void {
    const { shard } = this.#p;
    if (shard.fresh.size === 0) return;
    for (const domain of shard.fresh) {
      const host = this.#hostAt(domain);
      if (host.isDead) this.#failAll(host, now);
      else this.#list(host);
    }
    shard.fresh.clear();
  }

  #hostAt(domain: number): Host {
    const known = this.#hosts[domain];
    if (known !== undefined) return known;
    const host: Host = {
      domain,
      key: this.#p.shard.hostKeyOf(domain),
      isOpen: false,
      isListed: false,
      freeAtMs: -Infinity,
      lastRequestMs: null,
      robotsAtMs: -Infinity,
      silent: 0,
      isDead: false,
      delayMs: 0,
      restUntilMs: 0,
    };
    this.#hosts[domain] = host;
    this.#keepNote(host);
    return host;
  }

  #list(host: Host): void {
    if (
      host.isListed ||
      this.#news.has(host) ||
      this.#p.shard.count(host.domain, true) + this.#p.shard.count(host.domain, false) === 0
    )
      return;
    host.isListed = true;
    if (host.isOpen) this.#sleep(host, host.freeAtMs);
    else this.#push(this.#unopened, host, -this.#p.shard.count(host.domain, false));
  }

  #sleep(host: Host, atMs: number): void {
    this.#push(this.#asleep, host, atMs);
  }

  #push(heap: TimeHeap<Due & { host: Host }>, host: Host, atMs: number): void {
    heap.push({ atMs, order: this.#added++, host });
  }

  /** The open host with most products of those that are due. */
  #takeDue(now: number): Host | null {
    for (let first = this.#asleep.first; first !== undefined && first.atMs <= now; first = this.#asleep.first) {
      this.#asleep.pop();
      this.#push(this.#awake, first.host, -this.#p.shard.count(first.host.domain, false));
    }
    return this.#awake.pop()?.host ?? null;
  }

  get #isHeld(): boolean {
    const { shard, settings } = this.#p;
    return this.isDraining || shard.isDoubtful || shard.requests >= (settings.site.maxRequests ?? Infinity);
  }

  /** The host that is asked now; null for none. */
  #nextHost(now: number): Host | null {
    if (this.#isHeld || !this.#isLeased(now) || now < this.pausedUntilMs) return null;
    const { shard } = this.#p;
    const [doubted] = shard.doubted;
    if (doubted !== undefined) {
      const host = this.#hostAt(doubted.domain);
      return this.#underWay.length === 0 && host.freeAtMs <= now && !this.#news.has(host) ? host : null;
    }
    while (this.#underWay.length < this.#places) {
      const next = this.#takeDue(now) ?? this.#unopened.pop()?.host ?? null;
      if (next === null) return null;
      next.isListed = false;
      if (this.#news.has(next)) continue;
      if (shard.count(next.domain, false) + shard.count(next.domain, true) === 0) continue;
      // Its page takes longer than its gap, it rests since it was listed, or the pace is slower since.
      const own = this.#underWay.find(({ host }) => host === next);
      const pacedMs = (next.lastRequestMs ?? -Infinity) + this.#gapOf(next);
      const freeAtMs = Math.max(next.freeAtMs, pacedMs, own?.doneAtMs ?? -Infinity);
      if (freeAtMs <= now) return next;
      next.isListed = true;
      this.#sleep(next, freeAtMs);
    }
    return null;
  }

  /** When a request may be sent, from that time on; Infinity for never as things are. */
  #nextRequestMs(fromMs: number): number {
    if (this.#isHeld) return Infinity;
    const [doubted] = this.#p.shard.doubted;
    let nextMs: number;
    if (doubted !== undefined) {
      const host = this.#hostAt(doubted.domain);
      const freeAtMs = this.#news.has(host) ? Infinity : host.freeAtMs;
      nextMs = this.#underWay.length > 0 ? this.#lastDoneMs() : freeAtMs;
    } else {
      nextMs = (this.#awake.first ?? this.#unopened.first) ? -Infinity : (this.#asleep.first?.atMs ?? Infinity);
      if (this.#underWay.length >= this.#places) nextMs = Math.max(nextMs, this.#firstDoneMs());
    }
    nextMs = Math.max(nextMs, this.pausedUntilMs, fromMs);
    if (nextMs === Infinity) return Infinity;
    return this.#isLeased(nextMs) ? nextMs : Infinity;
  }

  /** Its hosts can have no other owner at that time. */
  #isLeased(atMs: number): boolean {
    return atMs < this.leaseUntilMs || this.#p.wrongs.ignoresLease === true;
  }

  #firstDoneMs(): number {
    return this.#underWay.reduce((firstMs, { doneAtMs }) => Math.min(firstMs, doneAtMs), Infinity);
  }

  #lastDoneMs(): number {
    return this.#underWay.reduce((lastMs, { doneAtMs }) => Math.max(lastMs, doneAtMs), -Infinity);
  }

  #request(host: Host, now: number): void {
    const { shard, instance } = this.#p;
    const isRobots = now - host.robotsAtMs >= ROBOTS_EVERY_MS;
    const queued = isRobots ? null : shard.next(host.domain, true);
    if (queued === null && !isRobots) return;
    if (queued !== null) queued.asked = true;
    shard.requests++;
    if (host.lastRequestMs !== null) this.minGapMs = Math.min(this.minGapMs ?? Infinity, now - host.lastRequestMs);
    host.isOpen = true;
    host.lastRequestMs = now;
    host.freeAtMs = now + this.#gapOf(host);
    this.#site.onRequest(instance, host.key);
    const isSilent = this.#site.isSilent(host.key);
    const { pageMs: drawnMs = 0 } = queued ?? shard.next(host.domain, true) ?? {};
    const tookMs = isSilent ? CONNECT_LIMIT_MS : Math.max(instance.pageMs, drawnMs * instance.slowness);
    const restMs = queued === null || isSilent ? 0 : (this.#site.wishes?.restMs(host.key) ?? 0);
    this.#underWay.push({ host, queued, startedMs: now, doneAtMs: now + tookMs, isSilent, restMs });
    this.#list(host);
  }

  #settleUntil(now: number): void {
    for (let firstMs = this.#firstDoneMs(); firstMs <= now; firstMs = this.#firstDoneMs()) {
      const at = this.#underWay.findIndex(({ doneAtMs }) => doneAtMs === firstMs);
      const [request] = this.#underWay.splice(at, 1);
      if (request !== undefined) this.#settle(request);
    }
  }

  #settle(request: Request): void {
    const { host, queued, startedMs, doneAtMs, isSilent, restMs } = request;
    const { shard, site, instance } = this.#p;
    // A host without an answer says nothing about the others.
    if (isSilent) return this.#noteSilence(request);
    this.#measure(doneAtMs - startedMs);
    this.tally.tried++;
    host.silent = 0;
    if (queued === null) {
      host.robotsAtMs = startedMs;
      this.#learn(host, { delayMs: this.#site.wishes?.delayMs(host.key) ?? 0, restUntilMs: 0 });
      return;
    }
    if (restMs > 0) {
      queued.asked = false;
      return this.#learn(host, { delayMs: 0, restUntilMs: doneAtMs + restMs });
    }
    this.tally.served++;
    if (++queued.answered < (this.#site.requestsOf?.(queued.product) ?? 1)) return;
    queued.answered = 0;
    const { uncut } = shard;
    const result = site.result(queued.product, instance);
    if (result.outcome === 'stored') this.#okAtMs = doneAtMs;
    shard.settle(queued, result);
    this.#noteSettled(uncut, doneAtMs);
  }

  /** The main server must know it before the host is asked again, so that its next owner does. */
  #learn(host: Host, { delayMs, restUntilMs }: Pick<Host, 'delayMs' | 'restUntilMs'>): void {
    if (delayMs <= host.delayMs && restUntilMs <= host.restUntilMs) return;
    host.delayMs = Math.max(host.delayMs, delayMs);
    host.restUntilMs = Math.max(host.restUntilMs, restUntilMs);
    host.freeAtMs = Math.max(host.freeAtMs, host.restUntilMs, (host.lastRequestMs ?? 0) + this.#gapOf(host));
    this.#site.wishes?.onLearned(this.#p.instance, host.key, { delayMs: host.delayMs, untilMs: host.restUntilMs });
    this.#news.add(host);
    this.#p.onChange();
  }

  #noteSilence({ host, queued, doneAtMs }: Request): void {
    if (queued !== null) queued.asked = false;
    host.silent++;
    host.freeAtMs = Math.max(host.freeAtMs, doneAtMs + restOfSilentMs(host.silent, this.#runMs));
    if (host.silent < DEAD_AFTER) return;
    host.isDead = true;
    this.#failAll(host, doneAtMs);
  }

  /** A host that never answers has no page: its records fail without a request each. */
  #failAll({ domain }: Host, atMs: number): void {
    const { shard } = this.#p;
    const { uncut } = shard;
    for (let queued = shard.next(domain, true); queued !== null; queued = shard.next(domain, true))
      shard.fail(queued, silence(queued, atMs));
    this.#noteSettled(uncut, atMs);
  }

  #noteSettled(uncutBefore: number, atMs: number): void {
    const { shard, onFirstResult, onEmpty } = this.#p;
    if (uncutBefore === 0 && shard.uncut > 0) onFirstResult(atMs);
    if (shard.open === 0) onEmpty(atMs);
  }

  #measure(tookMs: number): void {
    const { tally } = this;
    const weight = Math.min(MEAN_OF, tally.tried + 1);
    tally.pageMs = (tally.pageMs ?? tookMs) + (tookMs - (tally.pageMs ?? tookMs)) / weight;
  }
}

function silence({ product: { n, id } }: Queued, atMs: number): ItemResult {
  const at = new Date(atMs).toISOString();
  return { n, id, url: id, at, attempts: 1, outcome: 'failed', reason: 'network', detail: 'the host does not answer' };
}

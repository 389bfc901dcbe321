/**
 * The crawl of a modelled instance: at the pace of each domain, one page of it at a time and `pagesAtOnce` of all,
 * until the site bans its address.
 */
import { type DomainPace, domainPaces } from '../../../../shared/domain/domains.ts';
import { easedIntervalMs, isEased, paceMarginMs, restAfterBanMs } from '../../../../shared/domain/pacing.ts';
import { policyAt, type RobotsPolicy } from '../../../../shared/domain/robots-matcher.ts';
import type { HostNews, HostOrder, Progress } from '../../../../shared/wire/callbacks.ts';
import { type ItemResult, PART_PRODUCTS } from '../../../../shared/wire/part.ts';
import type { InstanceSettings } from '../../../../shared/wire/settings.ts';
import type { Queued, Shard } from './shard.ts';
import type { OwnIncident, Site, Visitor } from './site.ts';

/** What an instance does wrong: each must break an invariant. */
export interface Wrongs {
  forgetsPace?: boolean;
  keepsCrawlingBanned?: boolean;
  ignoresLease?: boolean;
  /** It keeps to itself what hosts ask for. */
  tellsNothing?: boolean;
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

/**
 * The crawl of a modelled instance, of one site or of many hosts. It does everything that is due when `advance` is
 * called, and says when to call it again.
 */
export interface Crawl {
  readonly incident: OwnIncident | null;
  /** The rules that it knows; null before the first, and where each host has its own. */
  robots: RobotsPolicy | null;
  /** The interval as ordered, whatever the Crawl-delay of a domain. */
  intervalMs: number;
  deadlineMs: number;
  /** By order; 0 without a pause. */
  pausedUntilMs: number;
  /** Of many hosts: no request begins from then on, unless the main server has been heard meanwhile. */
  leaseUntilMs: number;
  isSealed: boolean;
  /** The pages under way are the last ones, by order. */
  isDraining: boolean;
  /** No request follows: what is left is to upload. */
  isOver: boolean;
  /** The shortest time between two requests to one domain or host; null before the second. */
  readonly minGapMs: number | null;
  readonly tally: Tally;
  /** Products stored since a ban, at the domain with the fewest, while its interval is longer for it; else null. */
  readonly sinceBan: number | null;
  /** The process died, and another begins at that time. `lost`: results whose records did not reach the disk whole. */
  restart(atMs: number, lost: number): void;
  /** The queue or the orders have changed. */
  wake(now: number): void;
  begin(verdict: OwnIncident['verdict'], rule: string, now: number, domain: number): void;
  /** The main server's decision about a suspicion; ignored without one. */
  decide(verdict: 'ok' | 'banned', now: number): void;
  /** Ends what is over, takes pages that have come, and sends requests that are due. */
  advance(now: number): void;
  /** When it has to act again; Infinity for never. */
  dueMs(now: number): number;
  /** Chunks that were begun, or are next: they are not returned. */
  visited(): ReadonlySet<string>;
  /** The time since the last right page; null without one. */
  okAgoMs(now: number): number | null;
  /** Of many hosts: what the main server must know of some before they are asked again. */
  hostNews(now: number): HostNews[];
  /** The main server knows what a heartbeat has said of hosts that was sent then. */
  heard(news: readonly HostNews[], sentMs: number): void;
  /** Of many hosts: what holds for some that the next grants bring. */
  note(orders: readonly HostOrder[], now: number): void;
}

interface AtDomain {
  /** When it sent its last request there, refused or not; null before the first. */
  lastRequestMs: number | null;
  /** When the pace was last kept from: null in a process that has forgotten it. */
  pacedFromMs: number | null;
  pacedGapMs: number;
  /** When a page was last right. */
  okAtMs: number | null;
  /** Bans of its address there. */
  bans: number;
  /** Products stored since the last of them. */
  rightPages: number;
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

export class SimulatedCrawl implements Crawl {
  incident: OwnIncident | null = null;
  robots: RobotsPolicy | null = null;
  /** The interval as ordered, whatever the Crawl-delay of a domain. */
  intervalMs: number;
  deadlineMs: number;
  /** By order; 0 without a pause. */
  pausedUntilMs = 0;
  leaseUntilMs = Infinity;
  isSealed = false;
  /** The page under way is the last one, by order. */
  isDraining = false;
  /** No request follows: what is left is to upload. */
  isOver = false;
  /** The shortest time between two requests to one domain; null before the second. */
  minGapMs: number | null = null;
  tally: Tally = { ...NO_TALLY };
  readonly #p: CrawlParts;
  readonly #at: readonly AtDomain[];
  readonly #domains: readonly DomainPace[];
  readonly #busiestShare: number;
  /** The pages under way, each of another domain, in the order in which they began. */
  #pages: Page[] = [];
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
    this.#at = this.#domains.map(() => ({ ...none, bans: 0, rightPages: 0 }));
  }

  /** Products stored since a ban, at the domain with the fewest, while its interval is longer for it; else null. */
  get sinceBan(): number | null {
    let fewest: number | null = null;
    for (let domain = 0; domain < this.#at.length; domain++) {
      const stored = this.#sinceBan(domain);
      if (stored !== null) fewest = Math.min(fewest ?? Infinity, stored);
    }
    return fewest;
  }

  /** The process died, and another begins at that time. `lost`: results whose records did not reach the disk whole. */
  restart(atMs: number, lost: number): void {
    const { shard, wrongs } = this.#p;
    const pages = this.#pages;
    this.#pages = [];
    this.tally = { ...NO_TALLY };
    this.#wokenMs = atMs;
    const first = shard.lose(lost);
    if (first !== null)
      for (const { queued } of pages) {
        queued.asked = false;
        shard.requests--;
      }
    const dying = first === null ? pages.map(({ queued }) => queued) : [first];
    shard.die(dying, new Date(atMs).toISOString());
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

  begin(verdict: OwnIncident['verdict'], rule: string, now: number, domain: number): void {
    let untilMs: number | null = null;
    if (verdict === 'banned') {
      const at = this.#at[domain]!;
      at.rightPages = 0;
      at.bans++;
      const { ban, maxRequests } = this.#p.settings.site;
      untilMs = now + (maxRequests === undefined ? restAfterBanMs(ban.coolDownMs, at.bans) : ban.coolDownMs);
    }
    this.#setIncident({ verdict, rule, domain, atMs: now, untilMs }, now);
  }

  /** The main server's decision about a suspicion; ignored without one. */
  decide(verdict: 'ok' | 'banned', now: number): void {
    const { incident } = this;
    if (incident?.verdict !== 'suspect') return;
    if (verdict === 'banned') this.begin('banned', incident.rule, now, incident.domain);
    else this.#setIncident(null, now);
  }

  #setIncident(incident: OwnIncident | null, now: number): void {
    this.incident = incident;
    this.wake(now);
    this.#p.onChange();
  }

  /** Ends what is over, takes the page that has come, and sends the next request when it may. */
  advance(now: number): void {
    this.#settlePages(now);
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
    if (now < this.deadlineMs && !((this.isDraining || isFinished) && this.#pages.length === 0)) return;
    this.isOver = true;
    this.#pages = [];
    this.#p.shard.stopCrawling();
    this.#p.onChange();
  }

  /** When it has to act again; Infinity for never. */
  dueMs(now: number): number {
    if (this.isOver) return Infinity;
    let due = Math.min(this.deadlineMs, this.incident?.untilMs ?? Infinity);
    if (this.#pages.length > 0) {
      const { shard } = this.#p;
      // A result is counted with the next request or heartbeat; only the last one of all, or of a part, has
      // consequences of its own.
      const hasConsequences = this.isDraining || shard.open === 1 || shard.uncut + 1 >= PART_PRODUCTS;
      if (hasConsequences) due = Math.min(due, this.#firstDoneMs());
    }
    return Math.max(now, Math.min(due, Math.max(now + 1, this.#nextRequestMs())));
  }

  hostNews(): HostNews[] {
    return [];
  }

  heard(): void {}
  note(): void {}

  /** Chunks of the pages under way, and of the products that are next in turn: they are not returned. */
  visited(): ReadonlySet<string> {
    const visited = new Set<string>();
    for (const { queued } of this.#pages) visited.add(queued.chunk);
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

  /** When a page has a place, and its domain may be asked for a product; Infinity without one. */
  #nextRequestMs(): number {
    let nextMs = Infinity;
    for (let domain = 0; domain < this.#at.length; domain++)
      nextMs = Math.min(nextMs, Math.max(this.#placeMs(domain), this.#askMs(domain)));
    return nextMs;
  }

  /** When the domain's next page has a place: one is free, and no page of the domain is under way. */
  #placeMs(domain: number): number {
    const { shard, settings } = this.#p;
    const doubted = shard.doubted.find((queued) => this.#isOpen(queued.domain));
    if (doubted !== undefined && doubted.domain !== domain) return Infinity;
    const pages = this.#pages;
    if (pages.length === 0) return -Infinity;
    const next = shard.next(domain, true);
    const isAlone = (next !== null && shard.isDoubted(next)) || pages.some(({ queued }) => shard.isDoubted(queued));
    if (isAlone) return Math.max(...pages.map(({ doneAtMs }) => doneAtMs));
    const own = pages.find(({ queued }) => queued.domain === domain)?.doneAtMs ?? -Infinity;
    return pages.length < (settings.site.pagesAtOnce ?? 1) ? own : Math.max(own, this.#firstDoneMs());
  }

  /** When the first of the pages under way has come. */
  #firstDoneMs(): number {
    return this.#pages.reduce((firstMs, { doneAtMs }) => Math.min(firstMs, doneAtMs), Infinity);
  }

  /** The domain with a place that may be asked soonest; -1 for none. */
  #nextDomain(): number {
    let best = -1;
    let bestMs = Infinity;
    for (let domain = 0; domain < this.#at.length; domain++) {
      const askMs = Math.max(this.#placeMs(domain), this.#askMs(domain));
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
    const underWay = this.#pages.find(({ queued }) => queued.domain === domain)?.queued;
    if (shard.count(domain, false) > (underWay?.again === false ? 1 : 0)) return this.#freeMs(domain);
    if (shard.count(domain, true) > (underWay?.again === true ? 1 : 0))
      return Math.max(this.#freeMs(domain), this.#retryMs(domain));
    return Infinity;
  }

  /** When postponed products are tried again: once no more will come, or none has come for a heartbeat. */
  #retryMs(domain: number): number {
    if (this.isSealed) return -Infinity;
    return Math.max(this.#at[domain]!.emptiedMs, this.#wokenMs) + this.#p.settings.heartbeatMs;
  }

  /**
   * When the domain may be asked by the pace in force, whatever it was when the last request began; the Crawl-delay of
   * the rules it knows counts.
   */
  #freeMs(domain: number): number {
    const { pacedFromMs, pacedGapMs } = this.#at[domain]!;
    if (pacedFromMs === null) return this.pausedUntilMs;
    const intervalMs = this.#intervalAt(domain);
    return Math.max(this.pausedUntilMs, pacedFromMs + Math.max(intervalMs + paceMarginMs(intervalMs), pacedGapMs));
  }

  #intervalAt(domain: number): number {
    const intervalMs = Math.max(this.intervalMs, policyAt(this.robots, domain)?.crawlDelayMs ?? 0);
    const sinceBan = this.#sinceBan(domain);
    return sinceBan === null ? intervalMs : easedIntervalMs(intervalMs, sinceBan);
  }

  /** Products stored since the last ban at a domain, while its interval is longer for it; else null. */
  #sinceBan(domain: number): number | null {
    const { bans, rightPages } = this.#at[domain]!;
    const isBanned = bans > 0 || this.#p.settings.site.bannedLately?.includes(domain) === true;
    return isBanned && isEased(rightPages) ? rightPages : null;
  }

  #request(now: number): void {
    const { shard, site, instance } = this.#p;
    const domain = this.#nextDomain();
    const queued = shard.next(domain, true)!;
    queued.asked = true;
    shard.requests++;
    const at = this.#at[domain]!;
    if (at.lastRequestMs !== null) this.minGapMs = Math.min(this.minGapMs ?? Infinity, now - at.lastRequestMs);
    at.lastRequestMs = now;
    at.pacedFromMs = now;
    at.pacedGapMs = (queued.gapMs * instance.slowness) / this.#busiestShare;
    site.onRequest(instance, queued.product);
    const treatment = site.treat(instance, queued.product);
    if (treatment === 'ban' || treatment === 'odd') {
      this.tally.tried++;
      if (treatment === 'odd') return this.begin('suspect', 'required-missing', now, domain);
      this.begin('banned', 'status-403', now, domain);
      if (!this.#p.wrongs.keepsCrawlingBanned) return;
    }
    const pageMs = Math.max(instance.pageMs, queued.pageMs * instance.slowness);
    this.#pages.push({ queued, isDown: treatment === 'down', doneAtMs: now + pageMs });
    if (pageMs === 0) this.#settlePages(now);
  }

  #settlePages(now: number): void {
    while (this.#firstDoneMs() <= now) {
      const firstMs = this.#firstDoneMs();
      const page = this.#pages.find(({ doneAtMs }) => doneAtMs === firstMs)!;
      this.#pages.splice(this.#pages.indexOf(page), 1);
      this.#settle(page);
    }
  }

  #settle(page: Page): void {
    const { shard, site, instance, onFirstResult, onEmpty } = this.#p;
    const { queued, doneAtMs } = page;
    const isRetry = queued.again;
    const result = page.isDown ? serverError(queued, doneAtMs) : site.result(queued.product, instance);
    const at = this.#at[queued.domain]!;
    const tally = this.tally;
    tally.tried++;
    tally.pageMs = instance.slowness > 1 ? queued.gapMs * instance.slowness : queued.pageMs;
    tally.pageMs = Math.max(tally.pageMs, instance.pageMs);
    if (result.outcome !== 'failed') tally.served++;
    else if (page.isDown || result.reason === 'network' || result.reason === 'timeout') tally.unavailable++;
    if (result.outcome === 'stored') {
      at.okAtMs = doneAtMs;
      at.rightPages++;
    }
    const { uncut } = shard;
    shard.settle(queued, result);
    if (uncut === 0 && shard.uncut > 0) onFirstResult(doneAtMs);
    if (shard.count(queued.domain, false) > 0) return;
    if (!isRetry) at.emptiedMs = doneAtMs;
    if (this.#domains.every((_, domain) => shard.count(domain, false) === 0)) onEmpty(doneAtMs);
  }

  /** The time since the last right page, of the domain where that is longest ago; null while one has had none. */
  okAgoMs(now: number): number | null {
    const times = this.#at.filter((at) => at.lastRequestMs !== null || at.okAtMs !== null).map((at) => at.okAtMs);
    return times.length === 0 || times.includes(null) ? null : now - Math.min(...(times as number[]));
  }
}

function serverError({ product: { n, id } }: Queued, atMs: number): ItemResult {
  const at = new Date(atMs).toISOString();
  return { n, id, url: '', at, attempts: 1, outcome: 'failed', reason: 'http-status', detail: 'status 503' };
}

/**
 * The crawl of an instance over many hosts: each at its own pace and under its own rules, as many pages at a time as
 * there are places. Long hosts are opened first, and a further one only when a place would be idle. No host has a loop
 * of its own: those that may not be asked yet sleep in one heap.
 */
import { restOfSilentMs } from '../../shared/domain/host-policy.ts';
import { hostGroupOf } from '../../shared/domain/host-key.ts';
import { bareHostOf } from '../../shared/domain/same-site.ts';
import { type Due, TimeHeap } from '../../shared/domain/time-heap.ts';
import { openJar } from '../../shared/adapters/http/cookie-jar.ts';
import { describeError } from '../../shared/domain/errors.ts';
import { SignalFlag } from '../process/signal-flag.ts';
import { ADDRESS_GAP_MS, AddressTurns } from '../politeness/address-turns.ts';
import { Pacer } from '../politeness/pacer.ts';
import { Places } from '../politeness/places.ts';
import { createEvidence } from '../politeness/judgement.ts';
import { CanaryPages } from '../queue/canary-pages.ts';
import type { Crawl, CrawlParts } from '../queue/crawl.ts';
import { type CrawlEnd, CrawlEnding } from '../queue/crawl-ending.ts';
import { DomainCrawl } from '../queue/domain-crawl.ts';
import { toFailure } from '../queue/item-result.ts';
import type { Item } from '../queue/items.ts';
import { untilWritten } from '../queue/journal-writer.ts';
import { AddressDoubt } from './address-doubt.ts';
import { HostPolicy, type HostPolicyParts } from './host-policy.ts';
import { HostRefusals } from './host-refusals.ts';
import { HostWatch } from './host-watch.ts';
import { NetworkWatch } from './network-watch.ts';

export interface HostsCrawlParts extends Omit<CrawlParts, 'onIncident'>, Pick<HostPolicyParts, 'askRobots' | 'runMs'> {
  /** The addresses of a name; rejects where it has none. */
  resolve: (name: string) => Promise<readonly { address: string }[]>;
  /** The main server must know something of a host before that is asked again. */
  onNews: () => void;
}

/** A host that was asked, or is about to be. */
interface OpenHost {
  readonly domain: number;
  readonly crawl: DomainCrawl;
  readonly policy: HostPolicy;
  readonly pacer: Pacer;
  /** By name: where it leads. */
  readonly addresses: Map<string, string>;
  /** The address at which the turn of its visit has begun, whose first request is not sent yet; null: none. */
  turn: string | null;
}

interface Listed extends Due {
  readonly domain: number;
}

/** What is asked of a host next. */
interface Visit {
  readonly host: OpenHost;
  /** Where its name leads; '' where nothing is requested. */
  readonly address: string;
  /** Its robots.txt, for origins of another host for which it holds; omitted: its next product. */
  readonly robotsUrl?: string;
}

/** Names that are looked up at a time. */
const LOOK_UPS = 16;
/** How soon a host is looked at again that waits for something without a time of its own. */
const LOOK_AGAIN_MS = 1_000;

export class HostsCrawl implements Crawl {
  readonly incidents = { describe: () => null, decide: () => undefined };
  readonly #p: HostsCrawlParts;
  readonly #places: Places;
  readonly #size: number;
  readonly #ending: CrawlEnding;
  readonly #refusals: HostRefusals;
  readonly #network: NetworkWatch;
  readonly #doubt = new AddressDoubt();
  readonly #turns = new AddressTurns();
  readonly #changed = new SignalFlag();
  readonly #open = new Map<number, OpenHost>();
  /** Hosts in one of the heaps, under way, or being looked up. */
  readonly #listed = new Set<number>();
  /** Hosts that were never asked, those with most products first: they take longest. */
  readonly #unopened = new TimeHeap<Listed>();
  /** Hosts by the time when they may be asked. */
  readonly #asleep = new TimeHeap<Listed>();
  /** Those that may be asked and wait for a place, as the unopened ones. */
  readonly #awake = new TimeHeap<Listed>();
  readonly #visits = new Set<Promise<void>>();
  /** Hosts under way or being looked up. */
  readonly #busy = new Set<number>();
  #silentVisits = 0;
  #lookUps = 0;
  #added = 0;
  #failure: { error: unknown } | null = null;

  constructor(parts: HostsCrawlParts) {
    const { queue, clock, site, onNews } = parts;
    this.#p = parts;
    this.#size = site.pagesAtOnce ?? 1;
    this.#places = new Places(this.#size);
    this.#ending = new CrawlEnding(queue, clock);
    this.#network = new NetworkWatch(() => queue.isSealed && this.#unopened.first === undefined);
    this.#refusals = new HostRefusals({
      queue,
      clock,
      coolDownMs: site.ban.coolDownMs,
      onNews,
      doubt: this.#doubt,
    });
    // After a restart all hosts are new here that still have products.
    for (const { domain } of queue.state.items.in('pending', 'postponed', 'held')) queue.state.items.fresh.add(domain);
  }

  get problem(): string | null {
    if (this.#network.isDown) return 'no host answers: is the network of this machine up?';
    return this.#doubt.isDoubted
      ? 'a third of the hosts that were right refuse this address: is it banned by who serves many of them? Another address would show it'
      : null;
  }

  wake(): void {
    this.#changed.raise();
  }

  run(stop: AbortSignal): Promise<CrawlEnd> {
    return this.#ending.within(stop, (work) => this.#run(stop, work));
  }

  async #run(stop: AbortSignal, work: AbortSignal): Promise<CrawlEnd> {
    const { clock, idleMs } = this.#p;
    for (;;) {
      if (this.#failure !== null) throw this.#failure.error;
      const end = this.#ending.endedBy(stop);
      if (end !== null) {
        await Promise.all(this.#visits);
        return end;
      }
      this.#listFresh();
      this.#wakeDenied();
      let waitMs = idleMs;
      if (!this.#isHeld) {
        for (let next = this.#next(work); next !== null; next = this.#next(work)) this.#begin(next, work);
        const first = this.#asleep.first;
        if (first !== undefined) waitMs = Math.min(idleMs, Math.max(1, Math.ceil(first.atMs - clock.monotonic())));
      }
      await this.#changed.wait(clock, waitMs, work);
    }
  }

  /** No host may be asked. */
  get #isHeld(): boolean {
    const { queue, clock, site } = this.#p;
    if (!queue.isLeased || queue.pausedUntilMs > clock.now() || !queue.hasRoom()) return true;
    return queue.state.requests >= (site.maxRequests ?? Infinity);
  }

  /** Hosts that have got products since the last look. */
  #listFresh(): void {
    const { fresh } = this.#p.queue.state.items;
    for (const domain of fresh) this.#list(domain);
    fresh.clear();
  }

  /** Hosts that an operator has denied: their products fail now, however long they would have to wait. */
  #wakeDenied(): void {
    const { denied } = this.#p.queue.state.domains;
    if (denied.size === 0) return;
    for (const heap of [this.#asleep, this.#unopened]) {
      const listed: Listed[] = [];
      for (let next = heap.pop(); next !== undefined; next = heap.pop()) listed.push(next);
      for (const each of listed)
        if (denied.has(each.domain)) this.#push(this.#awake, each.domain, -Infinity);
        else heap.push(each);
    }
    denied.clear();
  }

  #list(domain: number): void {
    const { state } = this.#p.queue;
    if (this.#listed.has(domain)) return;
    if (this.#productsOf(domain) === 0) return this.#close(domain);
    this.#listed.add(domain);
    if (state.domains.at(domain).givenUp !== null) return this.#push(this.#awake, domain, -Infinity);
    const wasAsked = state.domains.at(domain).lastStartMs !== null || this.#open.has(domain);
    if (wasAsked) this.#sleep(domain, this.#waitMs(this.#hostAt(domain)));
    else this.#push(this.#unopened, domain, -this.#productsOf(domain));
  }

  /** Nothing is left to ask of a host; of those whose robots.txt held for it alone neither. */
  #close(domain: number): void {
    const { state } = this.#p.queue;
    if (state.isNeeded(domain)) return;
    const { origins } = state;
    const over = origins.over(domain);
    this.#open.delete(domain);
    origins.forget(domain);
    for (const each of over) if (!this.#listed.has(each)) this.#close(each);
  }

  #productsOf(domain: number): number {
    const { items } = this.#p.queue.state;
    return items.at('pending', domain).size + items.at('postponed', domain).size + items.at('held', domain).size;
  }

  #sleep(domain: number, forMs: number): void {
    this.#push(this.#asleep, domain, this.#p.clock.monotonic() + forMs);
  }

  #push(heap: TimeHeap<Listed>, domain: number, atMs: number): void {
    heap.push({ atMs, order: this.#added++, domain });
  }

  #hostAt(domain: number): OpenHost {
    const known = this.#open.get(domain);
    if (known !== undefined) return known;
    const { queue, clock, site, onNews } = this.#p;
    const { state } = queue;
    const policy = new HostPolicy({
      ...this.#p,
      domain,
      refusals: this.#refusals,
      network: this.#network,
      onSilence: (origin) => this.#defer(domain, origin),
      atAddress: (url, work, ask) => this.#atAddress(this.#hostAt(domain), url, work, ask),
      hasOther: (origin) => this.#openAt(domain).some(({ id }) => originOf(id) !== origin),
    });
    const pacer = new Pacer(clock, () => queue.intervalAt(domain), state.domains.at(domain).lastStartMs !== null);
    const isSuspected = (): boolean => {
      const { refused, bans, rightPages } = state.domains.at(domain);
      return refused || (bans > 0 && rightPages === 0);
    };
    const onRefusal = (): void => {
      queue.recordRefusal(domain);
      onNews();
    };
    const watch = new HostWatch({ isSuspected, onRefusal, onRight: () => this.#doubt.right(domain) });
    const crawl = new DomainCrawl({
      ...this.#p,
      domain,
      policy,
      pacer,
      watch,
      places: this.#places,
      cookies: openJar(site, clock),
      changed: new SignalFlag(),
      canaryPages: new CanaryPages([], site.productUrl, domain, state),
      incidents: this.#refusals,
    });
    const host: OpenHost = { domain, crawl, policy, pacer, addresses: new Map(), turn: null };
    this.#open.set(domain, host);
    return host;
  }

  /** The open products of a host. */
  #openAt(domain: number): Item[] {
    const { items } = this.#p.queue.state;
    return OPEN_STATES.flatMap((state) => [...items.at(state, domain)]);
  }

  /** Its products of this origin go behind those of others. */
  #defer(domain: number, origin: string): void {
    const { items } = this.#p.queue.state;
    const own = [...items.at('pending', domain)].filter(({ id }) => originOf(id) === origin);
    for (const item of own) items.move(item, 'pending');
  }

  /** The URL that is asked for next: of a product, or of the page that proves what is held; '' for none. */
  #nextUrl(domain: number): string {
    const { state } = this.#p.queue;
    return state.peek(true, domain)?.id ?? state.domains.at(domain).lastStored ?? '';
  }

  /** Nothing is asked of the origin of its next product. */
  #isClosed({ domain, policy }: OpenHost): boolean {
    const item = this.#p.queue.state.peek(true, domain);
    return item !== null && policy.closedAt(item.id) !== null;
  }

  /** Milliseconds until the host may be asked for this URL; 0 or less for now. */
  #waitMs({ domain, policy, pacer }: OpenHost, url = this.#nextUrl(domain)): number {
    const { queue, clock, runMs } = this.#p;
    const { items, domains } = queue.state;
    const pacedMs = pacer.waitMs();
    const restedMs = domains.at(domain).pausedUntilMs - clock.now();
    const newsMs = domains.news.has(domain) ? LOOK_AGAIN_MS : 0;
    // What has failed for the moment is tried again after a while.
    const isAgain = items.at('pending', domain).size === 0 && items.at('postponed', domain).size > 0;
    const againMs = isAgain && pacedMs > 0 ? pacedMs + restOfSilentMs(2, runMs) : 0;
    return Math.max(pacedMs, restedMs, newsMs, againMs, policy.freeAtMs(url) - clock.monotonic());
  }

  /** What is asked now; null for nothing. */
  #next(work: AbortSignal): Visit | null {
    const { queue, clock } = this.#p;
    const nowMs = clock.monotonic();
    for (let first = this.#asleep.first; first !== undefined && first.atMs <= nowMs; first = this.#asleep.first) {
      this.#asleep.pop();
      this.#push(this.#awake, first.domain, -this.#productsOf(first.domain));
    }
    while (this.#visits.size - this.#places.waiting < this.#size && this.#lookUps < LOOK_UPS) {
      const listed = this.#awake.pop() ?? this.#unopened.pop();
      if (listed === undefined) return null;
      const { domain } = listed;
      const host = this.#hostAt(domain);
      const url = this.#nextUrl(domain);
      const address = this.#addressOf(host, url);
      const robotsUrl = host.policy.foreignRobots(url);
      if (this.#isLeftSuspected(domain)) this.#rest(domain);
      if (this.#busy.has(domain)) this.#sleep(domain, LOOK_AGAIN_MS);
      else if (queue.state.domains.at(domain).givenUp !== null) this.#track(this.#failAll(domain, work));
      else if (this.#isClosed(host)) this.#track(this.#failAll(domain, work));
      else if (this.#productsOf(domain) === 0) this.#unlist(domain);
      else if (robotsUrl !== null) {
        const visit = this.#visitFor(host, robotsUrl, work);
        if (visit !== null) return visit;
      } else if (address === null) this.#track(this.#lookUp(host, url), false);
      else {
        const waitMs = Math.max(this.#waitMs(host, url), this.#waitOfOthersMs(host, address));
        if (waitMs <= 0) return { host, address };
        this.#sleep(domain, waitMs);
      }
    }
    return null;
  }

  /** A visit of another host whose robots.txt holds for this one, which sleeps meanwhile; null: not now. */
  #visitFor(asker: OpenHost, robotsUrl: string, work: AbortSignal): Visit | null {
    const { state } = this.#p.queue;
    const { hostname, origin } = new URL(robotsUrl);
    const domain = state.numbers.find?.(hostGroupOf({ hostname }, this.#p.site.hostKey));
    this.#sleep(asker.domain, LOOK_AGAIN_MS);
    if (domain === undefined || this.#busy.has(domain)) return null;
    const host = this.#hostAt(domain);
    if (this.#isLeftSuspected(domain)) this.#rest(domain);
    if (state.domains.at(domain).givenUp !== null || host.policy.closedAt(robotsUrl) !== null) {
      this.#track(asker.policy.giveUpUnder(state.numbers.hostOf(domain), work), false);
      return null;
    }
    // It may have moved within that host.
    const url = host.policy.unread(`${origin}/`);
    const address = url === null ? '' : this.#addressOf(host, url);
    if (url !== null && address === null) this.#track(this.#lookUp(host, url, true), false);
    if (url === null || address === null) return null;
    const isFree = this.#waitMs(host, url) <= 0 && this.#waitOfOthersMs(host, address) <= 0;
    return isFree ? { host, address, robotsUrl: url } : null;
  }

  /** Where the name of a URL leads; '' where nothing is requested; null before it was looked up. */
  #addressOf(host: OpenHost, url: string): string | null {
    const parsed = URL.parse(url);
    // What is no URL to request needs no address: it fails without a request.
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) return '';
    return host.addresses.get(bareHostOf(parsed)) ?? null;
  }

  /** Its owner before has had a refusal from it, and neither a rest nor a right page since. */
  #isLeftSuspected(domain: number): boolean {
    const { refused, bans, lastStartMs } = this.#p.queue.state.domains.at(domain);
    return refused && bans === 0 && lastStartMs === null;
  }

  /** The owner before would have sent one more page; a new owner would have to send a robots.txt request as well. */
  #rest(domain: number): void {
    const { numbers } = this.#p.queue.state;
    const evidence = createEvidence('refused-before', `http://${numbers.hostOf(domain)}/`, null);
    try {
      this.#refusals.begin('banned', evidence, { domain, minMs: 0 });
    } catch {
      // The disk is full: nothing is asked either until it is not.
    }
  }

  /** How long it waits for other hosts: those at its address, and those that have not answered either. */
  #waitOfOthersMs({ policy }: OpenHost, address: string): number {
    // Half of them where no other host is due: at the end of a night those without an answer are all that is left.
    const isOther = this.#awake.first !== undefined || this.#unopened.first !== undefined;
    const isCrowded = policy.silent > 0 && this.#silentVisits >= Math.max(1, this.#size >> (isOther ? 2 : 1));
    const turnMs = address === '' ? 0 : Math.min(LOOK_AGAIN_MS, this.#turns.waitMs(address, this.#p.clock.monotonic()));
    return Math.max(isCrowded ? LOOK_AGAIN_MS : 0, turnMs);
  }

  #unlist(domain: number): void {
    this.#listed.delete(domain);
    this.#list(domain);
    this.#changed.raise();
  }

  #begin({ host, address, robotsUrl }: Visit, work: AbortSignal): void {
    const { domain } = host;
    this.#busy.add(domain);
    if (address !== '') {
      this.#turns.begin(address, this.#p.clock.monotonic());
      host.turn = address;
    }
    const isSilent = host.policy.silent > 0;
    if (isSilent) this.#silentVisits++;
    const asked = robotsUrl === undefined ? this.#visit(host, work) : host.crawl.readRobots(robotsUrl, work);
    const visit = asked.finally(() => {
      this.#busy.delete(domain);
      this.#endTurn(host);
      if (isSilent) this.#silentVisits--;
      if (robotsUrl === undefined) this.#unlist(domain);
    });
    this.#track(visit);
  }

  /** The turn of a visit that it has not used. */
  #endTurn(host: OpenHost): void {
    if (host.turn !== null) this.#turns.end(host.turn, this.#p.clock.monotonic());
    host.turn = null;
  }

  /** Each request of a visit has a turn of its own: it may wait for the pace in between, and lead to another name. */
  async #atAddress<T>(host: OpenHost, url: string, work: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const { clock } = this.#p;
    // A name without an address needs no turn: the request will say so.
    const found = async (): Promise<string> => this.#find(host, url).catch(() => '');
    const address = this.#addressOf(host, url) ?? (await this.#places.away(found));
    if (host.turn !== address) {
      this.#endTurn(host);
      // The other visits wait until this one has ended, and one of them may have the turn at the address.
      if (this.#places.isAlone(host.domain)) await clock.sleep(ADDRESS_GAP_MS, work);
      else if (address !== '') {
        await this.#places.away(() => this.#turns.take(address, clock, work));
        host.turn = address;
      }
    }
    try {
      return await ask();
    } finally {
      this.#endTurn(host);
    }
  }

  async #find(host: OpenHost, url: string): Promise<string> {
    const name = bareHostOf(new URL(url));
    const [found] = await this.#p.resolve(name);
    const address = found?.address ?? '';
    host.addresses.set(name, address);
    return address;
  }

  /** @param isVisit it keeps a place */
  #track(work: Promise<void>, isVisit = true): void {
    const tracked = work
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#visits.delete(tracked);
        this.#changed.raise();
      });
    if (isVisit) this.#visits.add(tracked);
  }

  async #visit({ domain, crawl }: OpenHost, work: AbortSignal): Promise<void> {
    const { queue, onEmpty, onNews } = this.#p;
    const { refused } = queue.state.domains.at(domain);
    const item = queue.state.peek(true, domain);
    if (item !== null) await crawl.crawl(item, work);
    else if (crawl.held > 0) await crawl.proveHeld(work);
    if (refused && !queue.state.domains.at(domain).refused) onNews();
    if (queue.state.items.count('pending') === 0) onEmpty();
  }

  /** @param isForOther it is asked for its robots.txt, for another host: none of its own products waits for that */
  async #lookUp(host: OpenHost, url: string, isForOther = false): Promise<void> {
    this.#lookUps++;
    this.#busy.add(host.domain);
    try {
      await this.#find(host, url);
    } catch (error) {
      host.policy.noteNoAddress(url, describeError(error));
    } finally {
      this.#lookUps--;
      this.#busy.delete(host.domain);
      if (!isForOther) this.#unlist(host.domain);
    }
  }

  /** Nothing more is asked of the host, or of some of its origins: their products fail without a request each. */
  async #failAll(domain: number, work: AbortSignal): Promise<void> {
    const { queue, clock, onResult, onEmpty } = this.#p;
    const { policy } = this.#hostAt(domain);
    const { givenUp } = queue.state.domains.at(domain);
    for (const item of this.#openAt(domain)) {
      const why = givenUp ?? policy.closedAt(item.id);
      if (why === null) continue;
      const failure = toFailure({ item, url: item.id, nowMs: clock.now() }, why.reason, why.detail);
      if (!(await untilWritten(() => queue.recordResult(item, failure, { isFinal: true }), clock, work))) break;
    }
    onResult();
    this.#unlist(domain);
    if (queue.state.items.count('pending') === 0) onEmpty();
  }
}

/** Those of products without an outcome. */
const OPEN_STATES = ['pending', 'postponed', 'held'] as const;

/** '' of what is no URL. */
const originOf = (url: string): string => URL.parse(url)?.origin ?? '';

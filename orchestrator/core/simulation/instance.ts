/**
 * A modelled instance: takes offers, crawls what it is granted, uploads parts, closes its epoch. It follows orders as
 * crawl-api does: both fulfil one contract (test/contract/instance). Only time is computed instead of waited for. What
 * a real one journals survives its crash: keys, chunks, results, parts as they were cut, orders, the incident.
 */
import { backoffMs } from '../../../shared/domain/backoff.ts';
import { refusalOf } from '../../../shared/domain/offer-refusal.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { COMPLETION_PATH, HEARTBEAT_PATH, HELLO_PATH, type Orders } from '../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import type { InstanceSettings } from '../../../shared/wire/settings.ts';
import { createKeyPair, exportPublicKey, type Signatures } from '../../../shared/wire/signature.ts';
import type { OfferResult } from '../cloud/offers.ts';
import type { EventClock } from './event-clock.ts';
import { type Crawl, type CrawlParts, SimulatedCrawl, type Wrongs } from './instance/crawl.ts';
import { HostCrawl } from './instance/host-crawl.ts';
import { Life } from './instance/life.ts';
import { type MessageParts, Messages } from './instance/messages.ts';
import { heartbeatOf, progressOf, type Reported } from './instance/report.ts';
import { Shard } from './instance/shard.ts';
import type { OwnIncident, Site, Visitor } from './instance/site.ts';
import { RETRY_MS, SimulatedUploads, type WrittenParts } from './instance/uploads.ts';

export interface InstanceOptions extends Pick<MessageParts, 'call' | 'onFault'> {
  id: string;
  settings: InstanceSettings;
  /** The address that it reports, and crawls from. */
  address: string;
  clock: EventClock;
  objects: ObjectStore;
  signatures: Signatures;
  site: Site;
  /** The time from a message to its answer, and what an upload takes. */
  roundTripMs: number;
  uploadMs: number;
  /** Its epoch belongs to another instance: it powers itself off. */
  onFenced: () => void;
  written: WrittenParts;
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
  orderedAtMs = -Infinity;
  /** Made up by an attacker who controls it: its next part contains them. */
  forged: ItemResult[] = [];
  readonly #o: InstanceOptions;
  readonly #keys = createKeyPair();
  readonly #life: Life;
  readonly #shard: Shard;
  readonly #crawl: Crawl;
  readonly #uploads: SimulatedUploads;
  readonly #messages: Messages;
  #isReady = false;
  #isClosed = false;
  /** The most products by order; null: the share in the offers. */
  #maxProducts: number | null = null;
  #nextHelloMs = -Infinity;
  #nextBeatMs = Infinity;
  /** The time before which nothing is reported, after a heartbeat without an answer. */
  #quietUntilMs = -Infinity;
  #failures = 0;

  constructor(options: InstanceOptions) {
    const { id, settings, clock, site, wrongs } = options;
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
    const parts: CrawlParts = {
      instance: this,
      settings,
      shard,
      site,
      wrongs,
      onChange,
      onFirstResult: (atMs) => this.#uploads.noteFirst(atMs),
      onEmpty: (atMs) => {
        // In a discovery, what it has found may be all that there is.
        if (settings.links === 'report') this.#uploads.hurry(atMs);
        this.#speak();
      },
    };
    this.#crawl = site.manyHosts === undefined ? new SimulatedCrawl(parts) : new HostCrawl(parts, site.manyHosts);
    this.#uploads = new SimulatedUploads({ ...options, life, shard, privateKey, onChange });
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
    return !this.dead && !this.#crawl.isOver && this.open > 0;
  }

  /** Products granted to it that have no outcome. */
  get open(): number {
    return this.#shard.open;
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
      const { isOver, isDraining, isSealed, incident, deadlineMs, pausedUntilMs, robots, intervalMs } = this.#crawl;
      const refusal = refusalOf(products.length, share, {
        isDraining: isOver || isDraining,
        isSealed,
        hasIncident: incident !== null,
        held: shard.held,
        open: shard.held - this.fetched,
        maxProducts: this.#maxProducts,
        leftMs: deadlineMs - Math.max(this.#life.now(), pausedUntilMs),
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
  #tick(): 'settled' | void {
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
    // The next owners of its hosts must know what it has learned of them.
    const isClosing = crawl.isOver && crawl.hostNews(now).length === 0;
    if (isClosing && uploads.isEmpty && !this.#isClosed) this.#close(now);
    if (now >= this.#nextBeatMs && !this.#messages.isCalling) this.#heartbeat(now);
    const beatMs = this.#messages.isCalling ? Infinity : this.#nextBeatMs;
    life.wakeAt(Math.min(beatMs, crawl.dueMs(now), uploads.dueMs(now, isClosing && !this.#isClosed)));
    if (!this.#messages.isCalling) return 'settled';
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
    const { heartbeatMs, leaseMs } = this.#o.settings;
    this.#nextBeatMs = now + heartbeatMs;
    const heartbeat = heartbeatOf({ ...this.#parts, isClosed: this.#isClosed }, now, now + this.skewMs);
    this.#messages.sendSigned(HEARTBEAT_PATH, heartbeat, (reply) => {
      if (reply?.status === 200) {
        this.#failures = 0;
        if (leaseMs !== undefined) this.#crawl.leaseUntilMs = now + leaseMs;
        this.#crawl.heard(heartbeat.hosts ?? [], now);
        this.#follow(reply.message as Orders);
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
    this.orderedAtMs = now;
    const { intervalMs, sealed, drain, robots } = orders;
    const deadlineMs = Date.parse(orders.deadline);
    const pausedUntilMs = orders.pausedUntil === undefined ? 0 : Date.parse(orders.pausedUntil);
    this.#maxProducts = orders.maxProducts;
    crawl.note(orders.hosts ?? [], now);
    const granted = shard.follow(orders, this.incident !== null);
    const isTaking = !crawl.isOver && !drain && !sealed;
    for (const { chunk, products } of (isTaking && orders.nextSlices) || []) {
      if (shard.has(chunk) || shard.returned.has(chunk)) continue;
      shard.take({ chunk, share: 0, products });
      this.#speak();
    }
    const changed =
      granted > 0 ||
      (robots !== null && robots.version !== crawl.robots?.version) ||
      crawl.intervalMs !== intervalMs ||
      crawl.isSealed !== sealed ||
      crawl.isDraining !== drain ||
      crawl.deadlineMs !== deadlineMs ||
      crawl.pausedUntilMs !== pausedUntilMs;
    crawl.intervalMs = intervalMs;
    crawl.deadlineMs = deadlineMs;
    crawl.pausedUntilMs = pausedUntilMs;
    crawl.isSealed = sealed;
    crawl.isDraining = drain;
    crawl.robots = robots ?? crawl.robots;
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

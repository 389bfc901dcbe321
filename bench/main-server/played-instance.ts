/**
 * An instance of a run over many hosts as far as its main server can tell: it takes offers, asks for grants, sends
 * heartbeats, and stores signed parts, request logs and a manifest. It requests no page. A tick plays what has become
 * due since the one before: its requests have the times that a crawl in the pace of each host would have had.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { HeartbeatLoop, type AnsweredHeartbeat } from '../../crawl-api/callbacks/heartbeat.ts';
import { sayHello } from '../../crawl-api/callbacks/hello.ts';
import { MainServerClient } from '../../crawl-api/callbacks/main-server-client.ts';
import type { OfferAnswer } from '../../crawl-api/queue/queue.ts';
import { RequestLog } from '../../crawl-api/queue/request-log.ts';
import { createBalancerApp } from '../../crawl-api/server/balancer-app.ts';
import { listen } from '../../crawl-api/server/listen.ts';
import { closeServer } from '../../shared/adapters/http/listening.ts';
import { systemRandom } from '../../shared/adapters/random.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { manifestKey, partKey, requestLogKey } from '../../shared/domain/keys.ts';
import { refusalOf } from '../../shared/domain/offer-refusal.ts';
import type { Product } from '../../shared/domain/product.ts';
import { type Due, TimeHeap } from '../../shared/domain/time-heap.ts';
import { ANY_HOST } from '../../shared/domain/domains.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import {
  COMPLETION_PATH,
  type Heartbeat,
  type HostNews,
  MAX_HOSTS,
  NO_PROGRESS,
  type Orders,
  type PartRef,
} from '../../shared/wire/callbacks.ts';
import type { Offer } from '../../shared/wire/instance-api.ts';
import { encodeManifest, type ItemResult, PART_PRODUCTS } from '../../shared/wire/part.ts';
import { signPart } from '../../shared/wire/part-signature.ts';
import type { UserData } from '../../shared/wire/settings.ts';
import { createKeyPair, exportPublicKey, importPublicKey, sha256Hex } from '../../shared/wire/signature.ts';

/** What the sites are like. */
export interface PlayedSites {
  intervalMs: number;
  /** Time of a page, and how many an instance has under way. */
  pageMs: number;
  places: number;
  /** The outcome of a record. */
  resultOf: (product: Product, atMs: number) => ItemResult;
  /** What a host says with its robots.txt; null: nothing. */
  newsOf: (host: string) => HostNews | null;
}

/** Round trips of heartbeats, in milliseconds. */
export interface CallbackTimes {
  /** Those that ask for grants. */
  grants: number[];
  others: number[];
}

export interface PlayedMachine {
  instanceId: string;
  address: string;
  userData: UserData;
  objects: ObjectStore;
  sites: PlayedSites;
  times: CallbackTimes;
}

/** A host that has records here. */
interface Line extends Due {
  atMs: number;
  readonly order: number;
  readonly host: string;
  readonly waiting: Product[];
  gapMs: number;
  /** It was asked for robots.txt. */
  isOpen: boolean;
}

const TICK_MS = 50;
/** What a late tick makes up for. */
const MOST_BEHIND_MS = 1_000;
const packed = promisify(gzip);
/** The host of a URL of the bench: `https://www.host-1.example/…`. */
const hostOf = (url: string): string => url.slice('https://www.'.length, url.indexOf('/', 'https://'.length));

/** Runs until the signal aborts, or the main server fences it. Rejects where a real one would be restarted. */
export const playInstance = (machine: PlayedMachine, stop: AbortSignal): Promise<void> =>
  new PlayedInstance(machine).run(stop);

class PlayedInstance {
  readonly #m: PlayedMachine;
  readonly #keys = createKeyPair();
  readonly #owner: { run: string; slot: number; epoch: number };
  readonly #client: MainServerClient;
  readonly #heart: HeartbeatLoop;
  readonly #log = new RequestLog();
  readonly #fenced = new AbortController();
  /** Chunks without a grant. */
  readonly #offered = new Map<string, readonly Product[]>();
  readonly #granted = new Set<string>();
  readonly #lines = new Map<string, Line>();
  /** Hosts that were never asked, in the order of their grants. */
  readonly #fresh: Line[] = [];
  readonly #heap = new TimeHeap<Line>();
  readonly #parts: PartRef[] = [];
  #acknowledged = -1;
  #results: ItemResult[] = [];
  readonly #news: HostNews[] = [];
  readonly #counts = { assigned: 0, held: 0, stored: 0, gone: 0, failed: 0, requests: 0 };
  #maxProducts: number | null = null;
  #isReady = false;
  #isSealed = false;
  #isDraining = false;
  #phase: 'crawling' | 'uploading' | 'done' = 'crawling';
  #counter = 0;
  #oldestMs = Infinity;
  #budget = 0;
  #lastTickMs = systemClock.now();

  constructor(machine: PlayedMachine) {
    this.#m = machine;
    const { run, slot, epoch, callbackUrl, token, runPublicKey, heartbeatMs } = machine.userData;
    this.#owner = { run, slot, epoch };
    this.#client = new MainServerClient({
      callbackUrl,
      owner: this.#owner,
      token,
      privateKey: this.#keys.privateKey,
      runPublicKey: importPublicKey(runPublicKey),
      nextCounter: () => ++this.#counter,
      localAddress: machine.address,
      timeoutMs: 30_000,
    });
    this.#heart = new HeartbeatLoop({
      client: this.#client,
      describe: () => this.#describe(),
      follow: (orders, answered) => this.#follow(orders, answered),
      intervalMs: heartbeatMs,
      clock: systemClock,
      random: systemRandom,
      log: QUIET,
    });
  }

  async run(stop: AbortSignal): Promise<void> {
    const { instanceId, address, userData } = this.#m;
    const { signal } = this.#fenced;
    const ends = AbortSignal.any([stop, signal]);
    const runPublicKey = importPublicKey(userData.runPublicKey);
    const app = createBalancerApp({
      owner: this.#owner,
      instanceId,
      runPublicKey,
      isReady: () => this.#isReady,
      isBanned: () => false,
      takeOffer: (offer) => Promise.resolve(this.#take(offer)),
    });
    const server = await listen(app, address, userData.apiPort);
    try {
      const publicKey = exportPublicKey(this.#keys.publicKey);
      const hello = { instanceId, address, publicKey, bundleSha256: userData.bundle.sha256 };
      const retry = { clock: systemClock, random: systemRandom, log: QUIET };
      this.#isReady = (await sayHello(this.#client, hello, retry, ends)) === 'accepted';
      this.#log.begin(systemClock.now());
      if (this.#isReady) await Promise.all([this.#heart.run(ends), this.#crawl(ends)]);
    } finally {
      await closeServer(server);
      await this.#client.close();
    }
  }

  get #open(): number {
    const { assigned, stored, gone, failed } = this.#counts;
    return assigned - stored - gone - failed;
  }

  #take({ chunk, share, products }: Offer): OfferAnswer {
    const { held } = this.#counts;
    if (this.#offered.has(chunk) || this.#granted.has(chunk)) return { taken: true, held };
    const refusal = refusalOf(products.length, share, {
      isDraining: this.#isDraining,
      isSealed: this.#isSealed,
      hasIncident: false,
      held,
      open: held - this.#counts.assigned + this.#open,
      maxProducts: this.#maxProducts,
      leftMs: Date.parse(this.#m.userData.deadline) - systemClock.now(),
      productUrl: ANY_HOST,
      robots: null,
      intervalMs: 1,
    });
    if (refusal !== null) return { taken: false, ...refusal };
    this.#hold(chunk, products);
    return { taken: true, held: this.#counts.held };
  }

  #hold(chunk: string, products: readonly Product[]): void {
    this.#offered.set(chunk, products);
    this.#counts.held += products.length;
    this.#heart.poke();
  }

  #describe(): Heartbeat {
    const { assigned, stored, gone, failed, requests } = this.#counts;
    const { pageMs, intervalMs } = this.#m.sites;
    const hosts = this.#news.slice(0, MAX_HOSTS);
    return {
      phase: this.#phase === 'crawling' && assigned === 0 ? 'ready' : this.#phase,
      clock: new Date(systemClock.now()).toISOString(),
      offered: [...this.#offered.keys()],
      transferred: [],
      progress: {
        ...NO_PROGRESS,
        assigned,
        pending: this.#open,
        stored,
        gone,
        failed,
        requests,
        served: stored + gone,
        tried: requests,
        pageMs: requests === 0 ? null : pageMs,
        minGapMs: requests === 0 ? null : intervalMs,
        okAgoMs: requests === 0 ? null : 0,
      },
      parts: this.#parts.filter(({ seq }) => seq > this.#acknowledged).slice(0, 500),
      problem: null,
      incident: null,
      robots: null,
      ...(hosts.length === 0 ? {} : { hosts }),
      understands: ['clock'],
    };
  }

  #follow(orders: Orders, { message, roundTripMs, wallMs }: AnsweredHeartbeat): Promise<void> {
    (message.offered.length > 0 ? this.#m.times.grants : this.#m.times.others).push(roundTripMs);
    if (orders.fenced) {
      this.#fenced.abort();
      return Promise.resolve();
    }
    if (orders.clock !== undefined)
      this.#log.read({ localMs: wallMs + roundTripMs / 2, serverMs: Date.parse(orders.clock), roundTripMs });
    this.#news.splice(0, message.hosts?.length ?? 0);
    this.#acknowledged = Math.max(this.#acknowledged, orders.partsAck);
    this.#maxProducts = orders.maxProducts;
    for (const { host, delayMs = 0, paceMs = 0 } of orders.hosts ?? []) {
      const line = this.#lineOf(host);
      line.gapMs = Math.max(line.gapMs, delayMs, paceMs);
    }
    for (const id of orders.grants) this.#grant(id);
    for (const id of orders.drops) this.#drop(id);
    this.#isDraining ||= orders.drain;
    this.#isSealed ||= orders.sealed;
    if (this.#isSealed) for (const id of this.#offered.keys()) this.#drop(id);
    else
      for (const { chunk, products } of orders.nextSlices ?? [])
        if (!this.#offered.has(chunk) && !this.#granted.has(chunk)) this.#hold(chunk, products);
    return Promise.resolve();
  }

  #drop(id: string): void {
    this.#counts.held -= this.#offered.get(id)?.length ?? 0;
    this.#offered.delete(id);
  }

  #grant(id: string): void {
    const products = this.#offered.get(id);
    if (products === undefined) return;
    this.#offered.delete(id);
    this.#granted.add(id);
    this.#counts.assigned += products.length;
    for (const product of products) {
      const line = this.#lineOf(hostOf(product.id));
      const wasIdle = line.waiting.length === 0;
      line.waiting.push(product);
      if (!wasIdle) continue;
      if (line.isOpen) this.#heap.push(line);
      else this.#fresh.push(line);
    }
  }

  #lineOf(host: string): Line {
    let line = this.#lines.get(host);
    if (line === undefined) {
      const { intervalMs } = this.#m.sites;
      line = { host, order: this.#lines.size, atMs: 0, waiting: [], gapMs: intervalMs, isOpen: false };
      this.#lines.set(host, line);
    }
    return line;
  }

  async #crawl(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const ended = this.#isSealed && this.#open === 0;
      if (!ended) this.#tick(systemClock.now());
      const isDue = systemClock.now() - this.#oldestMs >= this.#m.userData.partMs;
      const least = isDue || ended ? 1 : PART_PRODUCTS;
      while (this.#results.length >= least) await this.#upload();
      if (ended && this.#phase === 'crawling') await this.#close();
      await systemClock.sleep(TICK_MS, stop);
    }
  }

  /** What a crawl would have requested since the last tick: hosts that are due, then new ones. */
  #tick(nowMs: number): void {
    const { places, pageMs } = this.#m.sites;
    const most = (places / pageMs) * MOST_BEHIND_MS;
    this.#budget = Math.min(most, this.#budget + (places / pageMs) * (nowMs - this.#lastTickMs));
    for (; this.#budget >= 1; this.#budget--) {
      const due = this.#heap.first;
      if (due !== undefined && due.atMs <= nowMs) this.#ask(this.#heap.pop()!);
      else {
        const fresh = this.#fresh.shift();
        if (fresh === undefined) break;
        this.#askRobots(fresh);
      }
    }
    this.#lastTickMs = nowMs;
  }

  #askRobots(line: Line): void {
    const { sites } = this.#m;
    const news = sites.newsOf(line.host);
    line.isOpen = true;
    line.gapMs = Math.max(line.gapMs, news?.delayMs ?? 0);
    this.#request(line, 'robots', '200', news?.waitMs ?? 0);
    this.#heap.push(line);
    if (news === null) return;
    this.#news.push(news);
    this.#heart.poke();
  }

  #ask(line: Line): void {
    const product = line.waiting.shift()!;
    const atMs = this.#request(line, 'product', '200', 0);
    const result = this.#m.sites.resultOf(product, atMs);
    this.#counts[result.outcome]++;
    if (this.#results.push(result) === 1) this.#oldestMs = systemClock.now();
    if (line.waiting.length > 0) this.#heap.push(line);
    else if (this.#open === 0) this.#heart.poke();
  }

  #request(line: Line, purpose: 'robots' | 'product', answer: string, restMs: number): number {
    const atMs = Math.max(line.atMs, this.#lastTickMs);
    const { host, order: domain, gapMs: intervalMs } = line;
    this.#log.sent({ atMs, domain, host: `www.${host}`, purpose, browser: false, intervalMs });
    this.#log.ended({ atMs: atMs + 1, domain, answer });
    this.#counts.requests++;
    line.atMs = atMs + Math.max(intervalMs, restMs);
    return atMs;
  }

  async #upload(): Promise<void> {
    const { objects } = this.#m;
    const { run, slot, epoch } = this.#owner;
    // Requests first, as the real one does.
    await this.#uploadLog();
    const results = this.#results.splice(0, PART_PRODUCTS);
    this.#oldestMs = this.#results.length === 0 ? Infinity : systemClock.now();
    const seq = this.#parts.length;
    const text = results.map((result) => `${JSON.stringify(result)}\n`).join('');
    const bytes = signPart(await packed(text), { ...this.#owner, seq }, this.#keys.privateKey);
    const sha256 = sha256Hex(bytes);
    const key = partKey(run, { slot, epoch, seq, sha256 });
    await objects.putIfAbsent(key, bytes, 'application/gzip');
    this.#parts.push({ seq, key, sha256, sizeBytes: bytes.length, products: results.length });
    this.#heart.poke();
  }

  async #uploadLog(): Promise<void> {
    if (!this.#log.isCuttable) return;
    const { run, slot, epoch } = this.#owner;
    this.#log.cut(this.#log.nextSeq);
    const { seq, text } = this.#log.cuts[0]!;
    const place = { ...this.#owner, seq, of: 'requests' } as const;
    const bytes = signPart(await packed(text), place, this.#keys.privateKey);
    const sha256 = sha256Hex(bytes);
    const key = requestLogKey(run, { slot, epoch, seq, sha256 });
    await this.#m.objects.putIfAbsent(key, bytes, 'application/gzip');
    this.#log.store({ seq, key, sha256, sizeBytes: bytes.length });
  }

  async #close(): Promise<void> {
    const { instanceId, objects } = this.#m;
    const { run, slot, epoch } = this.#owner;
    this.#phase = 'uploading';
    await this.#uploadLog();
    const manifest = {
      version: 1,
      ...this.#owner,
      instanceId,
      closedBy: 'instance',
      closedAt: new Date(systemClock.now()).toISOString(),
      parts: this.#parts,
      requestLogs: this.#log.stored,
      progress: this.#describe().progress,
    } as const;
    const bytes = encodeManifest(manifest, this.#keys.privateKey);
    const key = manifestKey(run, slot, epoch);
    await objects.putIfAbsent(key, bytes, 'application/json');
    const completion = { manifestKey: key, manifestSha256: sha256Hex(bytes) };
    const { status, body } = await this.#client.sendSigned(COMPLETION_PATH, completion);
    if (status !== 200) throw new Error(`the completion was answered with ${status}: ${body}`);
    this.#phase = 'done';
    this.#heart.poke();
  }
}

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

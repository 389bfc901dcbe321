/**
 * One instance of the fake fleet: takes offers, crawls what it is granted, uploads parts, closes its epoch. What a
 * real one journals first survives a crash: keys, chunks, results, parts as they were cut, the last start.
 */
import type { KeyObject } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { manifestKey, partKey } from '../../../shared/domain/keys.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots.ts';
import type { Orders, PartRef, Progress, Incident } from '../../../shared/wire/callbacks.ts';
import {
  NO_PROGRESS,
  COMPLETION_PATH,
  HEARTBEAT_PATH,
  HELLO_PATH,
  ordersSchema,
} from '../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { encodeManifest } from '../../../shared/wire/part.ts';
import type { InstanceSettings } from '../../../shared/wire/settings.ts';
import type { Envelope } from '../../../shared/wire/signature.ts';
import {
  createKeyPair,
  exportPublicKey,
  importPublicKey,
  macMessage,
  sha256Hex,
  signMessage,
  verifyMessage,
} from '../../../shared/wire/signature.ts';
import type { OfferResult } from '../../../orchestrator/control/dispatch.ts';
import type { Callback, CallbackReply } from '../../../orchestrator/control/callbacks.ts';

/** How an instance reaches the current main server: null when there is none, or it died before it answered. */
export type Call = (path: string, callback: Callback) => Promise<CallbackReply | null>;

export interface FakeInstanceOptions {
  id: string;
  settings: InstanceSettings;
  clock: Clock;
  objects: ObjectStore;
  call: Call;
  /** The outcome of a product. */
  fetch: (product: { n: number; id: string }) => ItemResult;
  /** How the site answers the next request of this instance. */
  mood: (instance: FakeInstance) => Mood;
  /** The address it reports, and crawls from. */
  address?: string;
  /** Sees every request to the site, including those whose page never arrives. */
  onRequest?: (instance: FakeInstance, product: { n: number; id: string }) => void;
  /** Faults of an instance, to test whether they are noticed. */
  wrongs?: { forgetsPace?: boolean; keepsCrawlingBanned?: boolean };
}

/** `ban`: definitely refused; `odd`: canary pages are unreadable, too; `down`: a server error, the product stays. */
export type Mood = 'fine' | 'ban' | 'odd' | 'down';

interface OwnIncident {
  verdict: Incident['verdict'];
  rule: string;
  atMs: number;
  untilMs: number | null;
}

/** Delay before a failed hello, upload or completion is retried. */
const RETRY_MS = 250;
/** It acts only at multiples of this, and checks at each whether it can act. */
const GRID_MS = 50;

interface Held {
  products: Offer['products'];
  granted: boolean;
}

export class FakeInstance {
  readonly id: string;
  readonly slot: number;
  readonly epoch: number;
  readonly address: string;
  /** Ends permanently and loses its memory. */
  dead = false;
  /** Does nothing until it is thawed, as a stopped process. */
  frozen = false;
  fenced = false;
  /** From the request to its page. */
  pageMs = 0;
  /** How far its own clock is off. */
  skewMs = 0;
  /** When it sent requests, refused ones included. */
  readonly requestsAt: number[] = [];
  incident: OwnIncident | null = null;
  robots: RobotsPolicy | null = null;

  readonly #o: FakeInstanceOptions;
  readonly #keys = createKeyPair();
  readonly #runKey: KeyObject;
  readonly #held = new Map<string, Held>();
  readonly #transferred = new Set<string>();
  #maxProducts: number | null = null;
  readonly #queue: Offer['products'] = [];
  #results: { result: ItemResult; product: Offer['products'][number] }[] = [];
  /** A part as it was cut, until it is in the bucket. */
  #cut: { seq: number; results: ItemResult[] } | null = null;
  readonly #parts: PartRef[] = [];
  readonly #progress: Progress = { ...NO_PROGRESS };
  /** The page being fetched, lost in a crash. */
  #page: { product: Offer['products'][number]; doneAtMs: number } | null = null;
  #acked = -1;
  #counter = 0;
  #ready = false;
  #sealed = false;
  #drain = false;
  #completion: string | null = null;
  #closed = false;
  #poked = false;
  #nextPartMs = 0;
  #nextBeatMs = 0;
  #nextUploadMs = 0;
  #orderedIntervalMs: number;
  /** Null before the first request, and in a process that has forgotten its pace. */
  #lastFetchMs: number | null = null;
  #problem: string | null = null;
  #lastRightMs: number | null = null;
  #release = false;
  #damaged = false;
  /** Counts the processes: what an earlier process awaits never resolves in a later one. */
  #life = 0;
  #wake = new AbortController();
  #fail: (error: unknown) => void = () => undefined;

  constructor(options: FakeInstanceOptions) {
    this.#o = options;
    this.id = options.id;
    this.#runKey = importPublicKey(options.settings.runPublicKey);
    this.#orderedIntervalMs = options.settings.site.intervalMs;
    this.slot = options.settings.slot;
    this.epoch = options.settings.epoch;
    this.address = options.address ?? `127.0.0.${options.settings.slot + 1}`;
  }

  get takesOffers(): boolean {
    return this.#ready && !this.dead && !this.frozen && !this.fenced && this.incident === null;
  }

  /** Products fetched so far. */
  get fetched(): number {
    return this.#progress.requests;
  }

  /** Its manifest is written and the main server has confirmed it. */
  get closed(): boolean {
    return this.#closed;
  }

  offer(offer: Offer): OfferResult {
    if (this.#transferred.has(offer.chunk)) return { kind: 'refused', refusal: { refused: 'share', room: 0 } };
    if (this.#held.has(offer.chunk)) return this.#receipt(offer.chunk);
    if (this.#sealed || this.#drain) return { kind: 'refused', refusal: { refused: 'sealed', room: 0 } };
    const held = [...this.#held.values()].reduce((sum, h) => sum + h.products.length, 0);
    const share = Math.min(offer.share, this.#maxProducts ?? Infinity);
    if (held + offer.products.length > share)
      return { kind: 'refused', refusal: { refused: 'share', room: Math.max(0, share - held) } };
    this.#held.set(offer.chunk, { products: offer.products, granted: false });
    this.#poke();
    return this.#receipt(offer.chunk);
  }

  /** Runs until it is dead or fenced. */
  run(): Promise<void> {
    this.#nextPartMs = this.#o.clock.now() + this.#o.settings.partMs;
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      this.#start(0, resolve);
    });
  }

  /**
   * `kill -9` and a restart after `downMs` on the same box. `lost`: results whose records never fully reached the disk;
   * their products are crawled again.
   */
  crash(downMs: number, lost = 0): void {
    if (this.dead || this.fenced) return;
    this.#page = null;
    this.robots = null;
    this.#acked = -1;
    this.#release = false;
    for (let i = 0; i < lost && this.#results.length > 0; i++) {
      const { result, product } = this.#results.pop()!;
      this.#queue.unshift(product);
      this.#progress[result.outcome]--;
      this.#progress.pending++;
      this.#damaged = true;
    }
    if (this.#o.wrongs?.forgetsPace) this.#lastFetchMs = null;
    this.#nextBeatMs = 0;
    this.#poked = true;
    this.#start(downMs, () => undefined);
  }

  #start(afterMs: number, ended: () => void): void {
    const life = ++this.#life;
    this.#wake.abort('poked');
    const live = async (): Promise<void> => {
      await this.#wait(this.#o.clock.sleep(afterMs));
      while (!this.dead && !this.fenced && life === this.#life) {
        await this.#wait(this.#pause());
        if (!this.#ready) await this.#hello();
        else await this.#tick();
      }
    };
    live().then(ended, this.#fail);
  }

  /** Until something is due, or the instance is poked. */
  async #pause(): Promise<void> {
    const { clock, settings } = this.#o;
    const now = clock.now();
    if (!this.#ready) return clock.sleep(RETRY_MS);
    const due = [this.#nextBeatMs, now + settings.heartbeatMs];
    const isIdle = this.incident !== null || this.#drain || this.robots === null || this.robots.access === 'none';
    if (this.#page) due.push(this.#page.doneAtMs);
    else if (this.#queue.length > 0 && !isIdle) due.push(this.#nextFetchMs);
    if (this.#results.length > 0 || this.#cut) due.push(Math.max(this.#nextPartMs, this.#nextUploadMs));
    if (this.#isOver && !this.#closed) due.push(now + RETRY_MS);
    if (this.incident?.untilMs != null) due.push(this.incident.untilMs);
    const dueMs = this.#poked ? now : Math.min(...due);
    this.#wake = new AbortController();
    // On a grid and never immediately: all instances act in step, and an item that stays overdue does not spin.
    await clock.sleep(Math.ceil(Math.max(now + 1, dueMs) / GRID_MS) * GRID_MS - now, this.#wake.signal);
    await clock.sleep(Math.ceil(clock.now() / GRID_MS) * GRID_MS - clock.now());
  }

  #poke(): void {
    this.#poked = true;
    this.#wake.abort('poked');
  }

  /** The promise's result, or never if this process was killed since. A frozen process continues when it is thawed. */
  async #wait<T>(promise: Promise<T>): Promise<T> {
    const life = this.#life;
    const result = await promise;
    while (this.frozen && !this.dead && life === this.#life) await this.#o.clock.sleep(GRID_MS);
    return life === this.#life ? result : new Promise<never>(() => undefined);
  }

  get #isOver(): boolean {
    return this.#drain || (this.#sealed && this.#queue.length === 0 && this.#page === null);
  }

  async #tick(): Promise<void> {
    if (this.dead) return;
    const now = this.#o.clock.now();
    if (this.#release && !this.#o.wrongs?.keepsCrawlingBanned) await this.#giveBack();
    const { incident } = this;
    if (incident !== null && incident.untilMs !== null && now >= incident.untilMs) this.#tell(null);
    if (this.#page && now >= this.#page.doneAtMs) this.#settle(now);
    if (incident === null || this.#o.wrongs?.keepsCrawlingBanned) this.#crawl(now);
    const isDue = this.#cut !== null || (this.#results.length > 0 && (this.#isOver || now >= this.#nextPartMs));
    if (isDue && now >= this.#nextUploadMs) await this.#upload();
    const isEmpty = this.#results.length === 0 && this.#cut === null && this.#page === null;
    if (this.#isOver && isEmpty && !this.#closed) await this.#close();
    if (this.dead) return;
    if (this.#poked || this.#o.clock.now() >= this.#nextBeatMs) await this.#heartbeat();
  }

  #crawl(now: number): void {
    if (this.#drain || this.#page || now < this.#nextFetchMs) return;
    if (this.robots === null || this.robots.access === 'none') return;
    const [product] = this.#queue;
    if (!product) return;
    const last = this.requestsAt.at(-1);
    if (last !== undefined) this.#progress.minGapMs = Math.min(this.#progress.minGapMs ?? Infinity, now - last);
    this.#lastFetchMs = now;
    this.requestsAt.push(now);
    this.#o.onRequest?.(this, product);
    const mood = this.#o.mood(this);
    if (mood === 'ban') {
      this.#tell({ verdict: 'banned', rule: 'status-403', atMs: now, untilMs: now + this.#coolDownMs });
      if (!this.#o.wrongs?.keepsCrawlingBanned) return;
    }
    if (mood === 'odd') return this.#tell({ verdict: 'suspect', rule: 'required-missing', atMs: now, untilMs: null });
    if (mood === 'down') {
      this.#progress.tried++;
      this.#progress.unavailable++;
      return;
    }
    this.#page = { product, doneAtMs: now + this.pageMs };
    if (this.pageMs === 0) this.#settle(now);
  }

  /** By the pace in force now, whatever it was at the last request; Crawl-delay counts as in a real instance. */
  get #nextFetchMs(): number {
    if (this.#lastFetchMs === null) return 0;
    return this.#lastFetchMs + Math.max(this.#orderedIntervalMs, this.robots?.crawlDelayMs ?? 0);
  }

  #settle(now: number): void {
    const { product } = this.#page!;
    this.#page = null;
    if (this.#queue[0] !== product) return;
    this.#queue.shift();
    this.#lastRightMs = now;
    const result = this.#o.fetch(product);
    this.#results.push({ result, product });
    this.#progress.requests++;
    this.#progress.tried++;
    if (result.outcome !== 'failed') this.#progress.served++;
    else if (result.reason === 'network') this.#progress.unavailable++;
    this.#progress.pending--;
    this.#progress[result.outcome]++;
    this.#poked ||= this.#queue.length === 0;
  }

  get #coolDownMs(): number {
    return this.#o.settings.site.ban.coolDownMs;
  }

  #tell(incident: OwnIncident | null): void {
    this.incident = incident;
    this.#poked = true;
  }

  /** Uploads its results and drops the rest, as ordered. */
  async #giveBack(): Promise<void> {
    if (this.#results.length > 0 || this.#cut) await this.#upload();
    if (this.#results.length > 0 || this.#cut) return;
    this.#release = false;
    this.#queue.length = 0;
    this.#page = null;
    this.#held.clear();
    this.#progress.pending = 0;
    this.#poked = true;
  }

  #incidentNow(now: number): Incident | null {
    if (this.incident === null) return null;
    const { verdict, rule, atMs, untilMs } = this.incident;
    const evidence = {
      rule,
      url: 'https://shop.example/item/x',
      status: rule === 'status-403' ? 403 : 200,
      headers: { server: 'test' },
      body: '<h1>Forbidden</h1>',
    };
    return { verdict, sinceMs: now - atMs, leftMs: untilMs === null ? null : Math.max(0, untilMs - now), evidence };
  }

  async #upload(): Promise<void> {
    const { settings, objects, clock } = this.#o;
    if (!this.#cut && this.#results.length === 0) return;
    this.#cut ??= { seq: this.#parts.length, results: this.#results.splice(0).map((r) => r.result) };
    const { seq, results } = this.#cut;
    const bytes = gzipSync(results.map((r) => JSON.stringify(r)).join('\n'));
    const sha256 = sha256Hex(bytes);
    const key = partKey(settings.run, settings.slot, settings.epoch, seq, sha256);
    try {
      await this.#wait(objects.putIfAbsent(key, bytes, 'application/gzip'));
    } catch {
      // The bucket does not answer: the journal keeps the results.
      this.#problem = 'the bucket does not take results';
      this.#nextUploadMs = clock.now() + RETRY_MS * 4;
      return;
    }
    this.#cut = null;
    this.#problem = null;
    this.#parts.push({ seq, key, sha256, sizeBytes: bytes.length, products: results.length });
    this.#nextPartMs = clock.now() + settings.partMs;
    this.#poked = true;
  }

  async #close(): Promise<void> {
    const { settings, objects, clock } = this.#o;
    const { run, slot, epoch } = settings;
    const key = manifestKey(run, slot, epoch);
    if (this.#completion === null) {
      const closedAt = new Date(clock.now()).toISOString();
      const manifest = { version: 1, run, slot, epoch, instanceId: this.id, closedBy: 'instance', closedAt } as const;
      const damaged = this.#damaged ? { damaged: true as const } : {};
      const bytes = encodeManifest(
        { ...manifest, ...damaged, parts: this.#parts, progress: { ...this.#progress } },
        this.#keys.privateKey,
      );
      this.#completion = JSON.stringify({ manifestKey: key, manifestSha256: sha256Hex(bytes) });
      this.#manifest = bytes;
    }
    try {
      if (this.#manifest) await this.#wait(objects.putIfAbsent(key, this.#manifest, 'application/json'));
      this.#manifest = null;
    } catch {
      return;
    }
    this.#closed = (await this.#signed(COMPLETION_PATH, this.#completion))?.status === 200;
  }

  /** Until it is in the bucket. */
  #manifest: Uint8Array | null = null;

  async #hello(): Promise<void> {
    const { settings, clock } = this.#o;
    const publicKey = exportPublicKey(this.#keys.publicKey);
    const own = { instanceId: this.id, address: this.address, publicKey };
    const body = JSON.stringify({
      ...own,
      bundleSha256: settings.bundle.sha256,
      clock: new Date(clock.now() + this.skewMs).toISOString(),
    });
    const reply = await this.#post(HELLO_PATH, null, body, (e) => macMessage(settings.token, e, body));
    this.#ready = reply?.status === 200;
    this.fenced = reply?.status === 401 || reply?.status === 409;
  }

  async #heartbeat(): Promise<void> {
    this.#poked = false;
    const now = this.#o.clock.now();
    this.#nextBeatMs = now + this.#o.settings.heartbeatMs;
    const offered = [...this.#held].filter(([, h]) => !h.granted).map(([id]) => id);
    const parts = this.#parts.filter((p) => p.seq > this.#acked);
    const phase = this.#closed ? 'done' : this.incident ? 'banned' : this.#sealed ? 'uploading' : 'crawling';
    const okAgoMs = this.#lastRightMs === null ? null : now - this.#lastRightMs;
    const pageMs = this.#progress.requests > 0 ? this.pageMs : null;
    const progress = { ...this.#progress, okAgoMs, pageMs };
    const clock = new Date(now + this.skewMs).toISOString();
    const incident = this.#incidentNow(now);
    const robots = this.robots?.version ?? null;
    const transferred = this.#transferred.size > 0 ? { transferred: [...this.#transferred] } : {};
    const body = JSON.stringify({
      phase,
      clock,
      offered,
      ...transferred,
      progress,
      parts,
      problem: this.#problem,
      incident,
      robots,
    });
    const reply = await this.#signed(HEARTBEAT_PATH, body);
    if (reply?.status === 200) this.#follow(ordersSchema.parse(JSON.parse(reply.body)));
  }

  #follow(orders: Orders): void {
    this.fenced = orders.fenced;
    for (const id of orders.grants) {
      const held = this.#held.get(id);
      if (!held || held.granted) continue;
      held.granted = true;
      this.#queue.push(...held.products);
      this.#progress.assigned += held.products.length;
      this.#progress.pending += held.products.length;
      this.#poked = true;
    }
    for (const id of orders.drops) if (this.#held.get(id)?.granted === false) this.#held.delete(id);
    this.#maxProducts = orders.maxProducts;
    for (const id of orders.transfer ?? []) this.#transfer(id);
    for (const id of orders.transferredAck ?? []) this.#transferred.delete(id);
    if (orders.robots !== null) this.robots = orders.robots;
    this.#orderedIntervalMs = orders.intervalMs;
    this.#release = orders.returnProducts;
    if (this.incident?.verdict === 'suspect' && orders.verdict !== null) {
      const now = this.#o.clock.now();
      const banned = { ...this.incident, verdict: 'banned', untilMs: now + this.#coolDownMs } as const;
      this.#tell(orders.verdict === 'banned' ? banned : null);
    }
    this.#sealed ||= orders.sealed;
    this.#drain ||= orders.drain;
    this.#acked = Math.max(this.#acked, orders.partsAck);
    if (orders.drain && this.#page) this.#page = null;
  }

  /** Returns a chunk of which no product was begun. */
  #transfer(id: string): void {
    const held = this.#held.get(id);
    if (!held?.granted || this.#drain) return;
    const isUntouched = held.products.every((p) => this.#queue.includes(p) && this.#page?.product !== p);
    if (!isUntouched) return;
    this.#held.delete(id);
    for (const product of held.products) this.#queue.splice(this.#queue.indexOf(product), 1);
    this.#progress.assigned -= held.products.length;
    this.#progress.pending -= held.products.length;
    this.#transferred.add(id);
    this.#poked = true;
  }

  #signed(path: string, body: string): Promise<CallbackReply | null> {
    return this.#post(path, ++this.#counter, body, (e) => signMessage(this.#keys.privateKey, e, body));
  }

  /** Null without an answer. Throws when the signature is not by the main server's own key. */
  async #post(
    path: string,
    counter: number | null,
    body: string,
    sign: (envelope: Envelope) => string,
  ): Promise<CallbackReply | null> {
    const { run, slot, epoch } = this.#o.settings;
    const envelope = { method: 'POST', path, run, slot, epoch, ...(counter === null ? {} : { counter }) };
    const callback = { run, slot, epoch, counter, signature: sign(envelope), body: async () => Buffer.from(body) };
    const reply = await this.#wait(this.#o.call(path, callback));
    if (reply?.status !== 200) return reply;
    const signed = verifyMessage(this.#runKey, { ...envelope, method: 'REPLY' }, reply.body, reply.signature ?? '');
    if (!signed) throw new Error(`the reply to ${path} is not signed by the run`);
    return reply;
  }

  #receipt(chunk: string): OfferResult {
    const { run } = this.#o.settings;
    return {
      kind: 'taken',
      receipt: { chunk, run, slot: this.slot, epoch: this.epoch, instanceId: this.id, held: this.#held.size },
    };
  }
}

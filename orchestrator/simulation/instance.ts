/**
 * A modelled instance: takes offers, crawls what it is granted, uploads parts, closes its epoch. It follows orders as crawl-api does;
 * only time is computed instead of waited for. What a real one journals survives its crash: keys, chunks, results, parts as they were
 * cut, the last start.
 */
import type { KeyObject } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { manifestKey, partKey } from '../../shared/domain/keys.ts';
import { type DomainPace, domainOf, domainPaces, meanSpacingMs } from '../../shared/domain/domains.ts';
import type { Refusal } from '../../shared/domain/offer-refusal.ts';
import { paceMarginMs } from '../../shared/domain/pacing.ts';
import { policyAt, type RobotsPolicy } from '../../shared/domain/robots-matcher.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import {
  COMPLETION_PATH,
  HEARTBEAT_PATH,
  HELLO_PATH,
  type Incident,
  NO_PROGRESS,
  type Orders,
  type PartRef,
  type Progress,
} from '../../shared/wire/callbacks.ts';
import type { Offer } from '../../shared/wire/instance-api.ts';
import { encodeManifest, type ItemResult, PART_PRODUCTS } from '../../shared/wire/part.ts';
import { signPart } from '../../shared/wire/part-signature.ts';
import type { InstanceSettings } from '../../shared/wire/settings.ts';
import {
  createKeyPair,
  type Envelope,
  exportPublicKey,
  importPublicKey,
  macMessage,
  sha256Hex,
  type Signatures,
} from '../../shared/wire/signature.ts';
import type { Callback, CallbackReply } from '../control/callbacks/callbacks.ts';
import type { OfferResult } from '../control/model/core.ts';
import type { EventClock, Timer } from './event-clock.ts';

type Product = Offer['products'][number];

/** How the shop treats a request. `ban`: refused beyond doubt; `odd`: canary pages are unreadable too; `down`: a server error. */
export type Treatment = 'fine' | 'ban' | 'odd' | 'down';

/** The shop as an instance meets it. */
export interface Site {
  treat(instance: SimulatedInstance): Treatment;
  /** What becomes of a product whose page is right. */
  result(product: Product, instance: SimulatedInstance): ItemResult;
  /** Sees every request, also one whose page never comes. */
  onRequest(instance: SimulatedInstance, product: Product): void;
  /** From one product to the next at the least, and from the request to its result, for the products of a chunk. */
  pace(products: number): Pace;
}

export interface Pace {
  gapMs: number;
  pageMs: number;
}

/** What an instance does wrong: each must break an invariant. */
export interface Wrongs {
  forgetsPace?: boolean;
  keepsCrawlingBanned?: boolean;
}

export interface InstanceOptions {
  id: string;
  settings: InstanceSettings;
  /** The address that it reports, and crawls from. */
  address: string;
  clock: EventClock;
  objects: ObjectStore;
  signatures: Signatures;
  site: Site;
  /** Sends a callback; null when no main server runs, or it died before it answered. */
  call: (path: string, callback: Callback) => Promise<CallbackReply | null>;
  /** From a message to its answer, and what an upload takes. */
  roundTripMs: number;
  uploadMs: number;
  /** Its epoch belongs to another instance: it powers itself off. */
  onFenced: () => void;
  /** An error that ends the simulation: a reply that the run has not signed. */
  onFault: (error: unknown) => void;
  wrongs: Wrongs;
}

interface OwnIncident {
  verdict: Incident['verdict'];
  rule: string;
  atMs: number;
  untilMs: number | null;
}

interface Held {
  products: readonly Product[];
  granted: boolean;
}

/** A granted product with the pace of its chunk. */
interface Queued extends Pace {
  product: Product;
  chunk: string;
  domain: number;
}

interface AtDomain {
  /** When it sent its last request there, refused or not; null before the first. */
  lastRequestMs: number | null;
  /** When the pace was last kept from: null in a process that has forgotten it. */
  pacedFromMs: number | null;
  pacedGapMs: number;
}

interface Message {
  path: string;
  counter: number | null;
  body: string;
  sign: (envelope: Envelope) => string;
}

/** Between two tries of what did not succeed: a hello, an upload, a completion. */
const RETRY_MS = 1_000;
/** The least memory that zlib accepts: a modelled part is small, and there are thousands. */
const PACKING = { level: 1, memLevel: 1, windowBits: 9 };

export class SimulatedInstance {
  readonly id: string;
  readonly slot: number;
  readonly epoch: number;
  readonly address: string;
  fenced = false;
  /** From the request to its page, where the site does not say. */
  pageMs = 0;
  /** How many times longer its products take than the site says. */
  slowness = 1;
  /** How far its own clock is off. */
  skewMs = 0;
  /** Made up by an attacker who controls it: its next part contains them. */
  forged: ItemResult[] = [];
  incident: OwnIncident | null = null;
  robots: RobotsPolicy | null = null;

  readonly #o: InstanceOptions;
  readonly #keys = createKeyPair();
  readonly #runKey: KeyObject;
  readonly #deadlineMs: number;
  readonly #held = new Map<string, Held>();
  #heldProducts = 0;
  /** Of those: without a grant. */
  #offeredProducts = 0;
  readonly #transferred = new Set<string>();
  #maxProducts: number | null = null;
  /** What is granted and not crawled begins at `#head`. */
  #queue: Queued[] = [];
  #head = 0;
  #results: { result: ItemResult; queued: Queued }[] = [];
  /** A part as it was cut, until the bucket has it. */
  #cut: { seq: number; results: ItemResult[] } | null = null;
  readonly #parts: PartRef[] = [];
  /** Parts that the main server has not acknowledged begin here. */
  #unacknowledged = 0;
  #progress: Progress = { ...NO_PROGRESS };
  /** The page under way, lost in a crash. */
  #page: { queued: Queued; doneAtMs: number } | null = null;
  #counter = 0;
  #ready = false;
  #sealed = false;
  #drain = false;
  #completion: string | null = null;
  #manifest: Uint8Array | null = null;
  #closed = false;
  #intervalMs: number;
  readonly #domains: readonly DomainPace[];
  readonly #at: readonly AtDomain[];
  readonly #busiestShare: number;
  /** Of the last request, over all domains. */
  #gapMs = 0;
  #problem: string | null = null;
  #lastRightMs: number | null = null;
  #returnProducts = false;
  #damaged = false;
  #dead = false;
  #frozen = false;
  /** What came while it was frozen. */
  #late: (() => void)[] = [];
  #nextPartMs = Infinity;
  #nextBeatMs = Infinity;
  #nextTryMs = -Infinity;
  /** One call, and one upload, at a time. */
  #isCalling = false;
  #isUploading = false;
  /** Number of its process: promises of an earlier process are dropped. */
  #life = 0;
  #timer: Timer | null = null;

  constructor(options: InstanceOptions) {
    const { settings } = options;
    this.#o = options;
    this.id = options.id;
    this.#runKey = importPublicKey(settings.runPublicKey);
    this.#deadlineMs = Date.parse(settings.deadline);
    this.#intervalMs = settings.site.intervalMs;
    this.#domains = domainPaces(settings.site.productUrl, null);
    this.#busiestShare = Math.max(...this.#domains.map(({ share }) => share));
    this.#at = this.#domains.map(() => ({ lastRequestMs: null, pacedFromMs: null, pacedGapMs: 0 }));
    this.slot = settings.slot;
    this.epoch = settings.epoch;
    this.address = options.address;
  }

  get dead(): boolean {
    return this.#dead;
  }

  get frozen(): boolean {
    return this.#frozen;
  }

  /** What the balancer's health check finds. */
  get isHealthy(): boolean {
    return this.#ready && !this.#dead && !this.#frozen && !this.fenced && this.incident === null;
  }

  get isCrawling(): boolean {
    return !this.#dead && !this.#isClosing && this.#pending > 0;
  }

  /** Its manifest is written and the main server knows. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Products fetched so far. */
  get fetched(): number {
    return this.#progress.requests;
  }

  get #pending(): number {
    return this.#queue.length - this.#head;
  }

  /** The machine is up and its program begins. */
  start(): void {
    this.#begin(0);
  }

  /** The machine is gone. */
  end(): void {
    this.#dead = true;
    this.#life++;
    if (this.#timer) this.#timer.cancelled = true;
  }

  /** Does nothing until it is thawed, as a stopped process. */
  freeze(): void {
    this.#frozen = true;
  }

  thaw(): void {
    if (!this.#frozen) return;
    this.#frozen = false;
    for (const act of this.#late.splice(0)) act();
    this.#tick();
  }

  /**
   * `kill -9` and a restart after `downMs` on the same box. `lost`: results whose records did not reach the disk whole;
   * their products are crawled again.
   */
  crash(downMs: number, lost = 0): void {
    if (this.#dead || this.fenced) return;
    this.#page = null;
    this.robots = null;
    this.#unacknowledged = 0;
    this.#returnProducts = false;
    this.#isCalling = false;
    this.#isUploading = false;
    for (let i = 0; i < lost && this.#results.length > 0; i++) {
      const { result, queued } = this.#results.pop()!;
      this.#queue.splice(this.#head, 0, queued);
      this.#progress[result.outcome]--;
      this.#damaged = true;
    }
    if (this.#o.wrongs.forgetsPace) for (const at of this.#at) at.pacedFromMs = null;
    this.#begin(downMs);
  }

  #begin(afterMs: number): void {
    const now = this.#o.clock.now();
    this.#life++;
    this.#nextBeatMs = now + afterMs;
    this.#nextTryMs = now + afterMs;
    this.#arm(now + afterMs);
  }

  /** Takes the chunk on offer, or refuses it as crawl-api does. */
  offer(offer: Offer): OfferResult {
    const refuse = (refused: Refusal['refused'], room: number): OfferResult => ({
      kind: 'refused',
      refusal: { refused, room: Math.max(0, room) },
    });
    if (this.#transferred.has(offer.chunk)) return refuse('share', 0);
    if (this.#held.has(offer.chunk)) return this.#receipt(offer.chunk);
    if (this.#drain) return refuse('draining', 0);
    if (this.#sealed) return refuse('sealed', 0);
    const count = offer.products.length;
    const share = Math.min(offer.share, this.#maxProducts ?? Infinity);
    if (this.#heldProducts + count > share) return refuse('share', share - this.#heldProducts);
    const gapMs = meanSpacingMs(this.#domains, this.#intervalMs, (ms) => ms + paceMarginMs(ms));
    const room = Math.floor((this.#deadlineMs - this.#o.clock.now()) / gapMs) - this.#pending - this.#offeredProducts;
    if (count > room) return refuse('deadline', room);
    this.#held.set(offer.chunk, { products: offer.products, granted: false });
    this.#heldProducts += count;
    this.#offeredProducts += count;
    this.#speak();
    return this.#receipt(offer.chunk);
  }

  #receipt(chunk: string): OfferResult {
    const { run } = this.#o.settings;
    const { slot, epoch, id } = this;
    return { kind: 'taken', receipt: { chunk, run, slot, epoch, instanceId: id, held: this.#held.size } };
  }

  /** Sends a heartbeat as soon as a message takes. */
  #speak(): void {
    const atMs = this.#o.clock.now() + this.#o.roundTripMs;
    if (atMs >= this.#nextBeatMs) return;
    this.#nextBeatMs = atMs;
    this.#arm(atMs);
  }

  /** Wakes it at that time, unless it wakes sooner: then it sees what is due. */
  #arm(atMs: number): void {
    if (this.#dead || atMs === Infinity) return;
    if (this.#timer && !this.#timer.cancelled && this.#timer.atMs <= atMs) return;
    if (this.#timer) this.#timer.cancelled = true;
    const timer = this.#o.clock.at(atMs, () => {
      if (this.#timer === timer) this.#timer = null;
      this.#tick();
    });
    this.#timer = timer;
  }

  /** Does everything that is due. */
  #tick(): void {
    if (this.#dead || this.fenced || this.#frozen) return;
    const now = this.#o.clock.now();
    if (!this.#ready) {
      if (now >= this.#nextTryMs && !this.#isCalling) this.#hello();
      this.#arm(this.#nextTryMs > now ? this.#nextTryMs : Infinity);
      return;
    }
    const { incident } = this;
    if (incident !== null && incident.untilMs !== null && now >= incident.untilMs) this.#setIncident(null);
    this.#settlePage(now);
    if (this.#returnProducts && !this.#o.wrongs.keepsCrawlingBanned) this.#giveBack(now);
    this.#crawl(now);
    this.#uploadDue(now);
    this.#closeDue(now);
    if (now >= this.#nextBeatMs && !this.#isCalling) this.#heartbeat();
    this.#arm(this.#dueMs(now));
  }

  #dueMs(now: number): number {
    let due = this.#isCalling ? Infinity : this.#nextBeatMs;
    if (this.#page) {
      // A result is counted with the next request or heartbeat; only the last one of all, or of a part, has consequences of its own.
      const hasConsequences = this.#pending === 1 || this.#results.length + 1 >= PART_PRODUCTS;
      if (hasConsequences) due = Math.min(due, this.#page.doneAtMs);
    }
    if (this.#mayCrawl) due = Math.min(due, Math.max(now + 1, this.#nextRequestMs));
    if (!this.#isUploading && (this.#results.length > 0 || this.#cut))
      due = Math.min(due, Math.max(now + 1, this.#nextPartMs, this.#nextTryMs));
    if (this.#isClosing && !this.#closed && !this.#isUploading) due = Math.min(due, Math.max(now + 1, this.#nextTryMs));
    const { incident } = this;
    return incident?.untilMs == null ? due : Math.min(due, Math.max(now, incident.untilMs));
  }

  get #mayCrawl(): boolean {
    if (this.#pending === 0 || this.#drain) return false;
    if (this.incident !== null && !this.#o.wrongs.keepsCrawlingBanned) return false;
    return this.robots !== null && this.robots.access !== 'none';
  }

  /** When the page under way is there, and the next product's domain may be asked. */
  get #nextRequestMs(): number {
    const next = this.#queue[this.#nextIndex()];
    return Math.max(this.#page?.doneAtMs ?? -Infinity, next === undefined ? -Infinity : this.#freeMs(next.domain));
  }

  /** By the pace in force, whatever it was when the last request began; the Crawl-delay of the rules it knows counts. */
  #freeMs(domain: number): number {
    const { pacedFromMs, pacedGapMs } = this.#at[domain]!;
    if (pacedFromMs === null) return -Infinity;
    const intervalMs = Math.max(this.#intervalMs, policyAt(this.robots, domain)?.crawlDelayMs ?? 0);
    return pacedFromMs + Math.max(intervalMs, pacedGapMs);
  }

  /** Of the products that wait, the first one of the domain that may be asked soonest. */
  #nextIndex(): number {
    const from = this.#head + (this.#page === null ? 0 : 1);
    if (this.#domains.length === 1) return from;
    const seen = new Set<number>();
    let best = from;
    for (let i = from; i < this.#queue.length && seen.size < this.#domains.length; i++) {
      const { domain } = this.#queue[i]!;
      if (seen.has(domain)) continue;
      seen.add(domain);
      if (this.#freeMs(domain) < this.#freeMs(this.#queue[best]!.domain)) best = i;
    }
    return best;
  }

  #crawl(now: number): void {
    if (!this.#mayCrawl || now < this.#nextRequestMs) return;
    const index = this.#nextIndex();
    const queued = this.#queue[index]!;
    this.#queue[index] = this.#queue[this.#head]!;
    this.#queue[this.#head] = queued;
    const { site, wrongs } = this.#o;
    const at = this.#at[queued.domain]!;
    if (at.lastRequestMs !== null)
      this.#progress.minGapMs = Math.min(this.#progress.minGapMs ?? Infinity, now - at.lastRequestMs);
    at.lastRequestMs = now;
    at.pacedFromMs = now;
    this.#gapMs = queued.gapMs * this.slowness;
    at.pacedGapMs = this.#gapMs / this.#busiestShare;
    site.onRequest(this, queued.product);
    const treatment = site.treat(this);
    if (treatment === 'ban') {
      const untilMs = now + this.#o.settings.site.ban.coolDownMs;
      this.#setIncident({ verdict: 'banned', rule: 'status-403', atMs: now, untilMs });
      if (!wrongs.keepsCrawlingBanned) return;
    }
    if (treatment === 'odd')
      return this.#setIncident({ verdict: 'suspect', rule: 'required-missing', atMs: now, untilMs: null });
    if (treatment === 'down') {
      this.#progress.tried++;
      this.#progress.unavailable++;
      return;
    }
    const pageMs = Math.max(this.pageMs, queued.pageMs * this.slowness);
    this.#page = { queued, doneAtMs: now + pageMs };
    if (pageMs === 0) this.#settlePage(now);
  }

  #settlePage(now: number): void {
    const page = this.#page;
    if (page === null || now < page.doneAtMs) return;
    this.#page = null;
    const queued = this.#queue[this.#head];
    if (queued !== page.queued) return;
    this.#head++;
    if (this.#head === this.#queue.length || this.#head > 1_024) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    this.#lastRightMs = page.doneAtMs;
    const result = this.#o.site.result(queued.product, this);
    if (this.#results.length === 0) this.#nextPartMs = page.doneAtMs + this.#o.settings.partMs;
    this.#results.push({ result, queued });
    const progress = this.#progress;
    progress.requests++;
    progress.tried++;
    if (result.outcome !== 'failed') progress.served++;
    else if (result.reason === 'network') progress.unavailable++;
    progress[result.outcome]++;
    if (this.#pending > 0) return;
    // The last product is done: others may have more for it, and in a discovery what it has found may be all that there is.
    if (this.#o.settings.site.links === 'report') this.#nextPartMs = page.doneAtMs;
    this.#speak();
  }

  #setIncident(incident: OwnIncident | null): void {
    this.incident = incident;
    this.#speak();
  }

  /** Uploads what it has and forgets the rest. */
  #giveBack(now: number): void {
    if (this.#isUploading) return;
    if (this.#results.length > 0 || this.#cut) return this.#upload(now);
    this.#returnProducts = false;
    this.#queue = [];
    this.#head = 0;
    this.#page = null;
    this.#held.clear();
    this.#heldProducts = 0;
    this.#offeredProducts = 0;
    this.#speak();
  }

  get #roleSession(): string | null {
    return this.#o.settings.s3.roleSession === true ? `AROASIMULATED00000001:${this.id}` : null;
  }

  /** It crawls no more: what is left is to upload. */
  get #isClosing(): boolean {
    return this.#drain || (this.#sealed && this.#pending === 0);
  }

  #uploadDue(now: number): void {
    if (this.#isUploading || now < this.#nextTryMs) return;
    const isDue = now >= this.#nextPartMs || this.#isClosing || this.#results.length >= PART_PRODUCTS;
    if (this.#cut !== null || (this.#results.length > 0 && isDue)) this.#upload(now);
  }

  #upload(now: number): void {
    const { settings, objects, clock, uploadMs } = this.#o;
    if (now < this.#nextTryMs) return;
    this.#cut ??= {
      seq: this.#parts.length,
      results: [...this.forged.splice(0), ...this.#results.splice(0, PART_PRODUCTS).map((r) => r.result)],
    };
    const { seq, results } = this.#cut;
    this.#isUploading = true;
    this.#after(uploadMs, () => {
      const { run, slot, epoch } = settings;
      const gzip = gzipSync(results.map((r) => JSON.stringify(r)).join('\n'), PACKING);
      const bytes = signPart(gzip, { run, slot, epoch, seq }, this.#keys.privateKey);
      const sha256 = sha256Hex(bytes);
      const key = partKey(run, { slot, epoch, seq, sha256, session: this.#roleSession });
      this.#await(objects.putIfAbsent(key, bytes, 'application/gzip'), (failure) => {
        this.#isUploading = false;
        if (failure !== null) {
          // The bucket does not answer: what is in the journal waits.
          if (this.#problem !== null && failure instanceof Error && failure.name === 'AccessDenied')
            this.#progress.storeRefused = true;
          this.#problem = 'the bucket does not take results';
          this.#nextTryMs = clock.now() + RETRY_MS;
          return;
        }
        this.#cut = null;
        this.#problem = null;
        delete this.#progress.storeRefused;
        this.#progress.uploadMs = Math.max(this.#progress.uploadMs ?? 0, uploadMs);
        this.#parts.push({ seq, key, sha256, sizeBytes: bytes.length, products: results.length });
        this.#speak();
      });
    });
  }

  #closeDue(now: number): void {
    const isEmpty = this.#results.length === 0 && this.#cut === null && this.#page === null;
    if (!this.#isClosing || !isEmpty || this.#closed || this.#isUploading || now < this.#nextTryMs) return;
    const { settings, objects, clock, uploadMs } = this.#o;
    const { run, slot, epoch } = settings;
    const key = manifestKey(run, slot, epoch, this.#roleSession);
    if (this.#completion === null) {
      const closedAt = new Date(now).toISOString();
      const manifest = { version: 1, run, slot, epoch, instanceId: this.id, closedBy: 'instance', closedAt } as const;
      const damaged = this.#damaged ? { damaged: true as const } : {};
      this.#manifest = encodeManifest(
        { ...manifest, ...damaged, parts: this.#parts, progress: this.#progressNow(now) },
        this.#keys.privateKey,
      );
      this.#completion = JSON.stringify({ manifestKey: key, manifestSha256: sha256Hex(this.#manifest) });
    }
    this.#nextTryMs = now + uploadMs + RETRY_MS;
    const complete = (): void =>
      this.#signed(COMPLETION_PATH, this.#completion!, (reply) => {
        this.#closed ||= reply?.status === 200;
        if (this.#closed) this.#speak();
      });
    const bytes = this.#manifest;
    if (bytes === null) return complete();
    this.#after(uploadMs, () =>
      this.#await(objects.putIfAbsent(key, bytes, 'application/json'), (failure) => {
        if (failure !== null) return void (this.#nextTryMs = clock.now() + RETRY_MS);
        this.#manifest = null;
        complete();
      }),
    );
  }

  #hello(): void {
    const { settings, clock } = this.#o;
    this.#nextTryMs = clock.now() + RETRY_MS;
    const body = JSON.stringify({
      instanceId: this.id,
      address: this.address,
      publicKey: exportPublicKey(this.#keys.publicKey),
      bundleSha256: settings.bundle.sha256,
      clock: new Date(clock.now() + this.skewMs).toISOString(),
    });
    const sign = (e: Envelope): string => macMessage(settings.token, e, body);
    this.#post({ path: HELLO_PATH, counter: null, body, sign }, (reply) => {
      this.#ready ||= reply?.status === 200;
      if (reply?.status === 401 || reply?.status === 409) return this.#fence();
      this.#nextBeatMs = clock.now() + settings.heartbeatMs;
      this.#tick();
    });
  }

  #fence(): void {
    this.fenced = true;
    this.#o.onFenced();
  }

  #progressNow(now: number): Progress {
    const { requests } = this.#progress;
    const okAgoMs = this.#lastRightMs === null ? null : now - this.#lastRightMs;
    const pending = this.#pending;
    const { stored, gone, failed } = this.#progress;
    const assigned = pending + stored + gone + failed;
    const pageMs = requests === 0 ? null : this.slowness > 1 ? this.#gapMs : this.#lastPageMs;
    return { ...this.#progress, assigned, pending, okAgoMs, pageMs };
  }

  get #lastPageMs(): number {
    const queued = this.#queue[this.#head] ?? this.#results.at(-1)?.queued;
    return Math.max(this.pageMs, (queued?.pageMs ?? 0) * this.slowness);
  }

  #heartbeat(): void {
    const { clock, settings } = this.#o;
    const now = clock.now();
    this.#nextBeatMs = now + settings.heartbeatMs;
    const offered =
      this.#offeredProducts === 0 ? [] : [...this.#held].flatMap(([id, { granted }]) => (granted ? [] : [id]));
    const phase = this.#closed ? 'done' : this.incident ? 'banned' : this.#isClosing ? 'uploading' : 'crawling';
    const body = JSON.stringify({
      phase,
      clock: new Date(now + this.skewMs).toISOString(),
      offered,
      ...(this.#transferred.size > 0 ? { transferred: [...this.#transferred] } : {}),
      progress: this.#progressNow(now),
      parts: this.#parts.slice(this.#unacknowledged, this.#unacknowledged + 500),
      problem: this.#problem,
      incident: this.#incidentNow(now),
      robots: this.robots?.version ?? null,
    });
    this.#signed(HEARTBEAT_PATH, body, (reply) => {
      if (reply?.status === 200) this.#follow(JSON.parse(reply.body) as Orders);
      if (!this.fenced) this.#tick();
    });
  }

  #incidentNow(now: number): Incident | null {
    if (this.incident === null) return null;
    const { verdict, rule, atMs, untilMs } = this.incident;
    const status = rule === 'status-403' ? 403 : 200;
    const page = { url: 'https://shop.example/item/x', headers: { server: 'test' }, body: '<h1>Forbidden</h1>' };
    const evidence = { rule, status, ...page };
    return { verdict, sinceMs: now - atMs, leftMs: untilMs === null ? null : Math.max(0, untilMs - now), evidence };
  }

  #follow(orders: Orders): void {
    if (orders.fenced) return this.#fence();
    for (const id of orders.grants) this.#accept(id);
    for (const id of orders.drops) if (this.#held.get(id)?.granted === false) this.#forget(id);
    this.#maxProducts = orders.maxProducts;
    for (const id of orders.transfer) this.#transfer(id);
    for (const id of orders.transferredAck) this.#transferred.delete(id);
    if (orders.robots !== null) this.robots = orders.robots;
    this.#intervalMs = orders.intervalMs;
    this.#returnProducts = orders.returnProducts;
    if (this.incident?.verdict === 'suspect' && orders.verdict !== null) {
      const untilMs = this.#o.clock.now() + this.#o.settings.site.ban.coolDownMs;
      this.#setIncident(orders.verdict === 'banned' ? { ...this.incident, verdict: 'banned', untilMs } : null);
    }
    const wasClosing = this.#isClosing;
    this.#sealed ||= orders.sealed;
    this.#drain ||= orders.drain;
    if (this.#drain) this.#page = null;
    while ((this.#parts[this.#unacknowledged]?.seq ?? Infinity) <= orders.partsAck) this.#unacknowledged++;
    if (!wasClosing && this.#isClosing) this.#speak();
  }

  #accept(id: string): void {
    const held = this.#held.get(id);
    if (!held || held.granted) return;
    held.granted = true;
    this.#offeredProducts -= held.products.length;
    const pace = this.#o.site.pace(held.products.length);
    const { productUrl } = this.#o.settings.site;
    for (const product of held.products)
      this.#queue.push({ product, chunk: id, domain: domainOf(productUrl, product.id), ...pace });
    this.#speak();
  }

  #forget(id: string): void {
    const { products, granted } = this.#held.get(id)!;
    this.#heldProducts -= products.length;
    if (!granted) this.#offeredProducts -= products.length;
    this.#held.delete(id);
  }

  /** Gives a chunk back of which nothing was begun. */
  #transfer(id: string): void {
    const held = this.#held.get(id);
    if (!held?.granted || this.#drain) return;
    const left = this.#queue.slice(this.#head);
    const own = left.filter((q) => q.chunk === id);
    if (own.length < held.products.length || this.#page?.queued.chunk === id) return;
    this.#forget(id);
    this.#queue = left.filter((q) => q.chunk !== id);
    this.#head = 0;
    this.#transferred.add(id);
    this.#speak();
  }

  #signed(path: string, body: string, then: (reply: CallbackReply | null) => void): void {
    const counter = ++this.#counter;
    const sign = (e: Envelope): string => this.#o.signatures.sign(this.#keys.privateKey, e, body);
    this.#post({ path, counter, body, sign }, then);
  }

  /** `then` gets null without an answer. */
  #post({ path, counter, body, sign }: Message, then: (reply: CallbackReply | null) => void): void {
    const { settings, signatures } = this.#o;
    const { run, slot, epoch } = settings;
    const envelope = { method: 'POST', path, run, slot, epoch, ...(counter === null ? {} : { counter }) };
    const signature = sign(envelope);
    const callback: Callback = { run, slot, epoch, counter, signature, body: async () => Buffer.from(body) };
    this.#isCalling = true;
    this.#await(this.#o.call(path, callback), (failure, reply) => {
      this.#isCalling = false;
      if (failure !== null) return this.#o.onFault(failure);
      if (reply?.status === 200) {
        const back = { ...envelope, method: 'REPLY' };
        if (!signatures.verify(this.#runKey, back, reply.body, reply.signature ?? ''))
          return this.#o.onFault(new Error(`the reply to ${path} is not signed by the run`));
      }
      then(reply ?? null);
    });
  }

  #after(ms: number, act: () => void): void {
    const life = this.#life;
    this.#o.clock.at(this.#o.clock.now() + ms, () => this.#when(life, act));
  }

  #await<T>(promise: Promise<T>, then: (failure: unknown, value?: T) => void): void {
    const life = this.#life;
    promise.then(
      (value) => this.#when(life, () => then(null, value)),
      (error: unknown) => this.#when(life, () => then(error ?? new Error('failed'))),
    );
  }

  /** Not when this process has ended meanwhile; a frozen one goes on with it when it is thawed. */
  #when(life: number, act: () => void): void {
    if (life !== this.#life || this.#dead) return;
    if (this.#frozen) this.#late.push(() => life === this.#life && act());
    else act();
  }
}

/** One instance of the fake fleet: takes offers, crawls what it is granted, uploads parts, closes its epoch. */
import { gzipSync } from 'node:zlib';
import { manifestKey, partKey } from '../../../shared/domain/keys.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import type { Orders, PartRef, Progress } from '../../../shared/wire/callbacks.ts';
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

/** How an instance reaches whatever main server there is: null when there is none, or it died before it answered. */
export type Call = (path: string, callback: Callback) => Promise<CallbackReply | null>;

export interface FakeInstanceOptions {
  id: string;
  settings: InstanceSettings;
  clock: Clock;
  objects: ObjectStore;
  call: Call;
  /** What becomes of a product. */
  fetch: (product: { n: number; id: string }) => ItemResult;
}

/** How often it looks whether something is to be done. */
const TICK_MS = 50;

interface Held {
  products: Offer['products'];
  granted: boolean;
}

export class FakeInstance {
  readonly id: string;
  readonly slot: number;
  readonly epoch: number;
  /** Ends for good, with what it knew. */
  dead = false;
  /** Does nothing until it is thawed, as a stopped process. */
  frozen = false;
  fenced = false;

  readonly #o: FakeInstanceOptions;
  readonly #keys = createKeyPair();
  readonly #held = new Map<string, Held>();
  readonly #queue: Offer['products'] = [];
  #results: ItemResult[] = [];
  readonly #parts: PartRef[] = [];
  readonly #progress: Progress = { ...NO_PROGRESS };
  #acked = -1;
  #counter = 0;
  #ready = false;
  #sealed = false;
  #drain = false;
  #completion: string | null = null;
  #closed = false;
  #poked = false;
  #nextFetchMs = 0;
  #nextPartMs = 0;
  #nextBeatMs = 0;

  constructor(options: FakeInstanceOptions) {
    this.#o = options;
    this.id = options.id;
    this.slot = options.settings.slot;
    this.epoch = options.settings.epoch;
  }

  get takesOffers(): boolean {
    return this.#ready && !this.dead && !this.frozen && !this.fenced;
  }

  /** Products fetched so far. */
  get fetched(): number {
    return this.#progress.requests;
  }

  offer(offer: Offer): OfferResult {
    if (this.#held.has(offer.chunk)) return this.#receipt(offer.chunk);
    if (this.#sealed || this.#drain) return { kind: 'refused', refusal: { refused: 'sealed', room: 0 } };
    const held = [...this.#held.values()].reduce((sum, h) => sum + h.products.length, 0);
    if (held + offer.products.length > offer.share)
      return { kind: 'refused', refusal: { refused: 'share', room: Math.max(0, offer.share - held) } };
    this.#held.set(offer.chunk, { products: offer.products, granted: false });
    this.#poked = true;
    return this.#receipt(offer.chunk);
  }

  async run(): Promise<void> {
    const { clock, settings } = this.#o;
    this.#nextPartMs = clock.now() + settings.partMs;
    while (!this.dead && !this.fenced) {
      await clock.sleep(TICK_MS);
      if (this.frozen || this.dead) continue;
      if (!this.#ready) await this.#hello();
      else await this.#tick();
    }
  }

  async #tick(): Promise<void> {
    const now = this.#o.clock.now();
    this.#crawl(now);
    const over = this.#drain || (this.#sealed && this.#queue.length === 0);
    if (this.#results.length > 0 && (over || now >= this.#nextPartMs)) await this.#upload(now);
    if (over && this.#results.length === 0 && !this.#closed) await this.#close();
    if (this.dead) return;
    if (this.#poked || now >= this.#nextBeatMs) await this.#heartbeat(now);
  }

  #crawl(now: number): void {
    if (this.#drain || now < this.#nextFetchMs) return;
    const product = this.#queue.shift();
    if (!product) return;
    this.#nextFetchMs = now + this.#o.settings.site.intervalMs;
    const result = this.#o.fetch(product);
    this.#results.push(result);
    this.#progress.requests++;
    this.#progress.pending--;
    this.#progress[result.outcome]++;
    this.#poked ||= this.#queue.length === 0;
  }

  async #upload(now: number): Promise<void> {
    const { settings, objects } = this.#o;
    const results = this.#results.splice(0);
    const bytes = gzipSync(results.map((r) => JSON.stringify(r)).join('\n'));
    const sha256 = sha256Hex(bytes);
    const seq = this.#parts.length;
    const key = partKey(settings.run, settings.slot, settings.epoch, seq, sha256);
    await objects.putIfAbsent(key, bytes, 'application/gzip');
    this.#parts.push({ seq, key, sha256, sizeBytes: bytes.length, products: results.length });
    this.#nextPartMs = now + settings.partMs;
    this.#poked = true;
  }

  async #close(): Promise<void> {
    const { settings, objects, clock } = this.#o;
    const { run, slot, epoch } = settings;
    const key = manifestKey(run, slot, epoch);
    if (this.#completion === null) {
      const closedAt = new Date(clock.now()).toISOString();
      const manifest = { version: 1, run, slot, epoch, instanceId: this.id, closedBy: 'instance', closedAt } as const;
      const bytes = encodeManifest(
        { ...manifest, parts: this.#parts, progress: { ...this.#progress } },
        this.#keys.privateKey,
      );
      await objects.putIfAbsent(key, bytes, 'application/json');
      this.#completion = JSON.stringify({ manifestKey: key, manifestSha256: sha256Hex(bytes) });
    }
    this.#closed = (await this.#signed(COMPLETION_PATH, this.#completion))?.status === 200;
  }

  async #hello(): Promise<void> {
    const { settings, clock } = this.#o;
    const publicKey = exportPublicKey(this.#keys.publicKey);
    const own = { instanceId: this.id, address: `127.0.0.${settings.slot + 1}`, publicKey };
    const body = JSON.stringify({
      ...own,
      bundleSha256: settings.bundle.sha256,
      clock: new Date(clock.now()).toISOString(),
    });
    const reply = await this.#post(HELLO_PATH, null, body, (e) => macMessage(settings.token, e, body));
    this.#ready = reply?.status === 200;
    this.fenced = reply?.status === 401 || reply?.status === 409;
  }

  async #heartbeat(now: number): Promise<void> {
    this.#poked = false;
    this.#nextBeatMs = now + this.#o.settings.heartbeatMs;
    const offered = [...this.#held].filter(([, h]) => !h.granted).map(([id]) => id);
    const parts = this.#parts.filter((p) => p.seq > this.#acked);
    const phase = this.#closed ? 'done' : this.#sealed ? 'uploading' : 'crawling';
    const clock = new Date(now).toISOString();
    const body = JSON.stringify({ phase, clock, offered, progress: this.#progress, parts, problem: null });
    const reply = await this.#signed(HEARTBEAT_PATH, body);
    if (reply?.status === 200) this.#follow(ordersSchema.parse(JSON.parse(reply.body)));
  }

  #follow(orders: Orders): void {
    this.fenced = orders.fenced;
    for (const id of orders.grants) {
      const held = this.#held.get(id)!;
      if (held.granted) continue;
      held.granted = true;
      this.#queue.push(...held.products);
      this.#progress.assigned += held.products.length;
      this.#progress.pending += held.products.length;
      this.#poked = true;
    }
    for (const id of orders.drops) this.#held.delete(id);
    this.#sealed ||= orders.sealed;
    this.#drain ||= orders.drain;
    this.#acked = Math.max(this.#acked, orders.partsAck);
  }

  #signed(path: string, body: string): Promise<CallbackReply | null> {
    return this.#post(path, ++this.#counter, body, (e) => signMessage(this.#keys.privateKey, e, body));
  }

  /** Null without an answer. Throws when the main server's own key did not sign it. */
  async #post(
    path: string,
    counter: number | null,
    body: string,
    sign: (envelope: Envelope) => string,
  ): Promise<CallbackReply | null> {
    const { run, slot, epoch, runPublicKey } = this.#o.settings;
    const envelope = { method: 'POST', path, run, slot, epoch, ...(counter === null ? {} : { counter }) };
    const callback = { run, slot, epoch, counter, signature: sign(envelope), body: Buffer.from(body) };
    const reply = await this.#o.call(path, callback);
    if (reply?.status !== 200) return reply;
    const signed = verifyMessage(
      importPublicKey(runPublicKey),
      { ...envelope, method: 'REPLY' },
      reply.body,
      reply.signature ?? '',
    );
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

/**
 * One instance and all that it meets, on a clock that jumps from event to event: the main server, the bucket, the
 * site.
 */
import { gunzipSync } from 'node:zlib';
import type { OfferAnswer } from '../../../crawl-api/queue/queue.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { EventClock } from '../../../orchestrator/core/simulation/event-clock.ts';
import {
  COMPLETION_PATH,
  type Heartbeat,
  HEARTBEAT_PATH,
  heartbeatSchema,
  HELLO_PATH,
  type Orders,
  ordersSchema,
} from '../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import { type ItemResult, itemResultSchema } from '../../../shared/wire/part.ts';
import type { InstanceSettings } from '../../../shared/wire/settings.ts';
import { createKeyPair, exportPublicKey } from '../../../shared/wire/signature.ts';
import { ALLOW_ALL } from '../../unit/core/builders.ts';
import { products } from '../../unit/crawl-api/fakes.ts';
import { oneTitle } from '../../support/one-title.ts';

/**
 * How the site answers a request: `ban` beyond doubt, `odd` without what every product has, `down` with a server
 * error.
 */
export type Answer = 'fine' | 'ban' | 'odd' | 'down';

/** The instance under test, as a machine has it: its process may die, its disk stays. */
export interface InstanceUnderTest {
  offer(offer: Offer): Promise<OfferAnswer>;
  /**
   * `kill -9`, and a new process after `downMs`. `lost`: number of results that, with what came after them, never
   * reached the disk.
   */
  crash(downMs: number, lost?: number): void;
}

export interface StageOptions {
  site?: Partial<InstanceSettings['site']>;
  /** In every reply from the first on; default: robots.txt allows everything. */
  orders?: Partial<Orders>;
  heartbeatMs?: number;
  /** How the main server answers its hello. */
  helloStatus?: number;
}

export type MakeInstance = (stage: InstanceStage) => Promise<InstanceUnderTest>;

export const START_MS = Date.UTC(2026, 0, 1);
const INTERVAL_MS = 1_000;
/** With the margin of an interval of 1 s. */
export const SPACING_MS = 1_010;
export const HEARTBEAT_MS = 500;
export const COOL_DOWN_MS = 60_000;
const HOUR_MS = 3_600_000;

export class InstanceStage {
  readonly clock = new EventClock(START_MS);
  readonly objects = new MemoryObjectStore(this.clock);
  readonly settings: InstanceSettings;
  readonly heartbeats: Heartbeat[] = [];
  readonly heartbeatTimes: number[] = [];
  readonly requests: { n: number; atMs: number }[] = [];
  completions = 0;
  /** In every reply from now on. */
  orders: Partial<Orders> = { robots: ALLOW_ALL };
  /** In the next reply only. */
  next: Partial<Orders> = {};
  /** False: no main server answers. */
  isUp = true;
  helloStatus: number;
  /** When heartbeats came that got no answer. */
  readonly unansweredMs: number[] = [];
  acknowledges = true;
  /** From a request to the last byte of its page. */
  pageMs = 5;
  answer: (n: number) => Answer = () => 'fine';
  /** It has ended itself: another instance has its epoch. */
  isFenced = false;
  readonly faults: unknown[] = [];
  #instance: InstanceUnderTest | null = null;

  private constructor({ site = {}, orders, heartbeatMs = HEARTBEAT_MS, helloStatus = 200 }: StageOptions) {
    this.orders = orders ?? this.orders;
    this.helloStatus = helloStatus;
    const usual = oneTitle('http://shop.example/{id}');
    const ban = { ...usual.site.ban, coolDownMs: COOL_DOWN_MS };
    const at = (ms: number): string => new Date(START_MS + ms).toISOString();
    this.settings = {
      ...usual,
      run: 'run-1',
      slot: 2,
      epoch: 3,
      token: 'a'.repeat(64),
      runPublicKey: exportPublicKey(createKeyPair().publicKey),
      callbackUrl: 'http://main.example',
      apiPort: 8_080,
      localPort: 8_081,
      bundle: { url: 'http://bundle.example/', sha256: '0'.repeat(64) },
      s3: { region: 'us-east-1', bucket: 'bucket', endpoint: null },
      startedAt: at(0),
      deadline: at(HOUR_MS),
      powerOffAt: at(2 * HOUR_MS),
      heartbeatMs,
      partMs: 10 * HOUR_MS,
      site: { ...usual.site, intervalMs: INTERVAL_MS, robots: 'respect', ban, ...site },
    };
  }

  /** An instance that has sent its hello, and a heartbeat if that was accepted. */
  static async open(make: MakeInstance, options: StageOptions = {}): Promise<InstanceStage> {
    const stage = new InstanceStage(options);
    stage.#instance = await make(stage);
    if (stage.helloStatus === 200) await stage.beat();
    return stage;
  }

  get instance(): InstanceUnderTest {
    return this.#instance!;
  }

  get last(): Heartbeat {
    return this.heartbeats.at(-1)!;
  }

  get asked(): number[] {
    return this.requests.map(({ n }) => n);
  }

  /** From each request to the next. */
  get gaps(): number[] {
    return this.requests.slice(1).map(({ atMs }, i) => atMs - this.requests[i]!.atMs);
  }

  /** The main server's reply to a message; null without one. */
  async reply(path: string, body: string): Promise<{ status: number; body: string } | null> {
    if (!this.isUp) {
      if (path === HEARTBEAT_PATH) this.unansweredMs.push(this.clock.now());
      return null;
    }
    if (path === HELLO_PATH) return { status: this.helloStatus, body: '{"ok":true}' };
    if (path === COMPLETION_PATH) {
      this.completions++;
      return { status: 200, body: '{"ok":true}' };
    }
    const heartbeat = heartbeatSchema.parse(JSON.parse(body));
    this.heartbeats.push(heartbeat);
    this.heartbeatTimes.push(this.clock.now());
    const once = this.next;
    this.next = {};
    const orders: Orders = ordersSchema.parse({
      grants: [],
      drops: [],
      transferredAck: this.acknowledges ? heartbeat.transferred : [],
      sealed: false,
      drain: false,
      fenced: false,
      partsAck: this.acknowledges ? Math.max(-1, ...heartbeat.parts.map(({ seq }) => seq)) : -1,
      intervalMs: INTERVAL_MS,
      deadline: this.settings.deadline,
      robots: null,
      returnProducts: false,
      verdict: null,
      ...this.orders,
      ...once,
    });
    return { status: 200, body: JSON.stringify(orders) };
  }

  /** The site's answer to a request that begins now. */
  request(n: number): Answer {
    this.requests.push({ n, atMs: this.clock.now() });
    return this.answer(n);
  }

  /** Lets this much time pass. */
  async pass(ms: number): Promise<void> {
    const endMs = this.clock.now() + ms;
    this.clock.at(endMs, () => undefined);
    await this.clock.settle();
    while (this.clock.now() < endMs) await this.clock.step();
    if (this.faults.length > 0) throw this.faults[0];
  }

  /** Lets time pass until this holds; fails after an hour. */
  async until(what: string, holds: () => boolean): Promise<void> {
    const endMs = this.clock.now() + HOUR_MS;
    await this.clock.settle();
    while (!holds()) {
      if (this.faults.length > 0) throw this.faults[0];
      if (this.clock.now() > endMs || !(await this.clock.step())) throw new Error(`waited for ${what}`);
    }
  }

  /** Until the next heartbeat is answered, with these orders besides the usual ones. */
  async beat(next: Partial<Orders> = {}): Promise<Heartbeat> {
    const { length } = this.heartbeats;
    this.next = next;
    await this.until('a heartbeat', () => this.heartbeats.length > length);
    await this.clock.settle();
    return this.heartbeats[length]!;
  }

  /** Offers the products first … last as a chunk. */
  offer(chunk: string, [first, last]: readonly [number, number], share = 10_000): Promise<OfferAnswer> {
    return this.instance.offer({ chunk, share, products: products(first, last) });
  }

  /** Offers and grants the products first … last as a chunk. */
  async give(chunk: string, range: readonly [number, number], orders: Partial<Orders> = {}): Promise<void> {
    await this.offer(chunk, range);
    await this.beat({ grants: [chunk], ...orders });
  }

  /** The results in the parts of the bucket, in the order of the parts. */
  results(): ItemResult[] {
    return [...this.objects.objects]
      .filter(([key]) => key.endsWith('.ndjson.gz'))
      .flatMap(([, bytes]) => gunzipSync(bytes).toString('utf8').trim().split('\n'))
      .map((line) => itemResultSchema.parse(JSON.parse(line)));
  }

  hasManifest(): boolean {
    return [...this.objects.objects.keys()].some((key) => key.includes('manifest'));
  }
}

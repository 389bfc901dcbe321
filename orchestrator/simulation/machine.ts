/**
 * One simulated instance: its machine at EC2, its shard, and what it would say in a heartbeat. It follows orders as
 * crawl-api does; only time is computed instead of waited for.
 */
import { paceMarginMs } from '../../shared/domain/pacing.ts';
import type { Heartbeat, Orders, Progress, Incident } from '../../shared/wire/callbacks.ts';
import { NO_PROGRESS } from '../../shared/wire/callbacks.ts';
import type { CloudInstance } from '../cloud/compute.ts';
import type { InstanceRecord } from '../control/model/stores.ts';
import type { Chance, Fate } from './chance.ts';
import { CrawlQueue } from './crawl-queue.ts';
import type { Chunk, Owner, SimPart, Work } from './work.ts';

/** Marks of the instance's own timers: an event whose time is not the mark any more is void. */
interface Timers {
  beatMs: number;
  partMs: number;
  emptyMs: number;
  closedMs: number;
}

/** Nobody reads a clock's text in a simulation. */
const CLOCK = '';

export class Machine {
  readonly record: InstanceRecord;
  readonly owner: Owner;
  readonly fate: Fate;
  readonly queue = new CrawlQueue();
  readonly timers: Timers = { beatMs: Infinity, partMs: Infinity, emptyMs: Infinity, closedMs: Infinity };
  readonly progress: Progress = { ...NO_PROGRESS };
  /** As EC2 knows it now; replaced at each change, so that an earlier look keeps what it saw. */
  cloud: CloudInstance;
  /** From the call on, EC2 begins to show it here. */
  readonly visibleAtMs: number;
  /** When a check of the balancer will have found it healthy twice; Infinity before it is registered. */
  healthyAtMs = Infinity;
  /** Chunks held under no grant yet. */
  offered: Chunk[] = [];
  #offeredProducts = 0;
  /** Parts in the bucket, and how many of them the main server has acknowledged. */
  readonly parts: SimPart[] = [];
  acknowledged = 0;
  /** How many of those are loaded. */
  loaded = 0;
  /** Every chunk it was ever granted and has not given back. */
  readonly granted: Chunk[] = [];
  /** Chunks it has given back and the main server has not confirmed. */
  yielded: { id: string; chunk: Chunk }[] = [];
  /** When the main server last took what it gave back, and since when it asks in vain. */
  gaveAtMs = -Infinity;
  askedSinceMs = Infinity;
  /** Products it is to hold at most; null: as offers say. */
  most: number | null = null;
  slowness: number;
  /** When EC2 stopped billing it; null while it does. */
  endedAtMs: number | null = null;
  /** No process runs on it, whatever EC2 shows. */
  dead = false;
  /** What it does not know yet because it is asleep; no heartbeat before then. */
  frozenUntilMs = -Infinity;
  bannedAtMs = -Infinity;
  banOverAtMs = -Infinity;
  sealed = false;
  /** It crawls no more: what is left is to upload. */
  closing = false;
  /** Its manifest is in the bucket. */
  closed = false;

  constructor(record: InstanceRecord, owner: Owner, fate: Fate, cloud: CloudInstance, visibleAtMs: number) {
    this.record = record;
    this.owner = owner;
    this.fate = fate;
    this.cloud = cloud;
    this.visibleAtMs = visibleAtMs;
    this.slowness = fate.slowness;
  }

  /** True while it can say and do something. */
  isUp(nowMs: number): boolean {
    return !this.dead && this.cloud.state === 'running' && nowMs >= this.frozenUntilMs;
  }

  isBanned(nowMs: number): boolean {
    return nowMs < this.banOverAtMs;
  }

  get isCrawling(): boolean {
    return !this.dead && !this.closing && this.queue.pending > 0;
  }

  /** Products in chunks it holds, granted or not, whatever became of them. */
  get #held(): number {
    return this.queue.assigned + this.#offeredProducts;
  }

  /** Takes the chunk on offer, or refuses it as crawl-api does: sealed, banned, beyond its share, or too late. */
  takes(products: number, share: number, intervalMs: number, leftMs: number, nowMs: number): boolean {
    // First what most refuse for: a round of offers asks everybody.
    if (products > Math.min(share, this.most ?? Infinity) - this.#held) return false;
    if (this.closing || this.sealed || this.isBanned(nowMs) || !this.isUp(nowMs)) return false;
    const open = this.#held - this.queue.crawled;
    return products <= Math.floor(leftMs / (intervalMs + paceMarginMs(intervalMs))) - open;
  }

  hold(chunk: Chunk): void {
    this.offered.push(chunk);
    this.#offeredProducts += chunk.last - chunk.next + 1;
  }

  /** Nothing but progress, parts and chunks to ask for: most heartbeats are like that. */
  isPlain(nowMs: number): boolean {
    return this.yielded.length === 0 && !this.closing && this.record.incident === null && !this.isBanned(nowMs);
  }

  /** Brings `progress` up to date. */
  measure(nowMs: number): Progress {
    this.queue.advance(nowMs);
    const { progress, queue } = this;
    const before = progress.stored;
    progress.assigned = queue.assigned;
    progress.pending = queue.pending;
    progress.stored = queue.crawled;
    progress.requests = queue.crawled;
    progress.tried = queue.crawled;
    progress.served = queue.crawled;
    if (queue.crawled > before) progress.okAgoMs = 0;
    // A page that takes longer than the interval is what makes an instance slow.
    const { pace } = queue;
    if (pace !== null && queue.crawled > 0) progress.pageMs = this.slowness > 1 ? pace.gapMs : pace.pageMs;
    return progress;
  }

  /** What it says in a heartbeat. Parts are told by their number alone: their keys and hashes are not simulated. */
  describe(nowMs: number): Heartbeat {
    return {
      phase: this.closed ? 'done' : this.closing ? 'uploading' : this.isBanned(nowMs) ? 'banned' : 'crawling',
      clock: CLOCK,
      offered: this.offered.map((chunk) => chunk.id),
      progress: this.measure(nowMs),
      parts: [],
      transferred: this.yielded.map(({ id }) => id),
      problem: null,
      incident: this.#incident(nowMs),
      robots: null,
    };
  }

  #incident(nowMs: number): Incident | null {
    if (!this.isBanned(nowMs)) return null;
    return {
      verdict: 'banned',
      sinceMs: nowMs - this.bannedAtMs,
      leftMs: this.banOverAtMs - nowMs,
      evidence: { rule: 'status-403', url: '', status: 403, headers: {}, body: '' },
    };
  }

  /** Crawls those of the chunks it holds that it is granted, and forgets the others. */
  accept(grants: readonly string[], work: Work, chance: Chance, nowMs: number): void {
    for (const chunk of this.offered) {
      if (!grants.includes(chunk.id)) {
        work.dropOffer(chunk);
        continue;
      }
      this.granted.push(chunk);
      this.queue.add(chunk, chance.pace(chunk.last - chunk.next + 1, this.slowness), nowMs);
    }
    this.offered = [];
    this.#offeredProducts = 0;
  }

  /** Carries out orders. True when something has changed that it should tell of at once. */
  follow(orders: Orders, work: Work, chance: Chance, nowMs: number): boolean {
    this.accept(orders.grants, work, chance, nowMs);
    this.sealed ||= orders.sealed;
    this.most = orders.maxProducts;
    const taken = new Set(orders.transferredAck);
    this.yielded = this.yielded.filter(({ id }) => !taken.has(id));
    const given = orders.transfer.length > 0 ? this.queue.giveUp(new Set(orders.transfer), nowMs) : [];
    this.yielded.push(...given.map((chunk) => ({ id: chunk.id, chunk })));
    if (!orders.returnProducts || this.queue.pending === 0) return orders.grants.length > 0 || given.length > 0;
    this.queue.forget(nowMs);
    this.cut(nowMs);
    return true;
  }

  /** Results so far go into the bucket as a part. */
  cut(nowMs: number): void {
    const part = this.queue.cut(nowMs);
    if (part !== null) this.parts.push(part);
  }

  /** No request from now on; what there is goes into the bucket. */
  close(nowMs: number): void {
    this.closing = true;
    this.queue.pause(nowMs);
    this.cut(nowMs);
  }

  /** Loses what it held under offers; returns it. */
  dropAll(): Chunk[] {
    const held = this.offered;
    this.offered = [];
    this.#offeredProducts = 0;
    return held;
  }
}

/**
 * The instance's queue: every change is written to the journal first and then to the state, so that what was answered
 * to anybody is still true after a crash.
 */
import type { Clock } from '../../shared/ports/clock.ts';
import type { Orders, PartRef, Progress } from '../../shared/wire/callbacks.ts';
import type { Offer, Refusal } from '../../shared/wire/instance-api.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import { describeError } from '../../shared/domain/errors.ts';
import { isRetryable } from '../../shared/domain/outcome.ts';
import { paceMarginMs } from '../../shared/domain/pacing.ts';
import type { Cut, Item, QueueState } from './queue-state.ts';
import type { JournalRecord } from './records.ts';

/** The journal as the queue uses it. */
export interface Journal {
  append(records: readonly JournalRecord[]): void;
  sync(): Promise<void>;
}

/** Results reach the disk at the latest this long after they are known; a power cut may cost that much. */
const LAZY_SYNC_MS = 1_000;

export type OfferAnswer = { taken: true; held: number } | ({ taken: false } & Refusal);

export class Queue {
  readonly state: QueueState;
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #defaults: { intervalMs: number; deadlineMs: number };
  #syncPlanned = false;
  #closing = false;
  /** What is wrong with the disk; null when nothing is. */
  diskProblem: string | null = null;

  constructor(state: QueueState, journal: Journal, clock: Clock, defaults: { intervalMs: number; deadlineMs: number }) {
    this.state = state;
    this.#journal = journal;
    this.#clock = clock;
    this.#defaults = defaults;
  }

  get intervalMs(): number {
    return this.state.orders?.intervalMs ?? this.#defaults.intervalMs;
  }

  get deadlineMs(): number {
    return this.state.orders ? Date.parse(this.state.orders.deadline) : this.#defaults.deadlineMs;
  }

  get isSealed(): boolean {
    return this.state.orders?.sealed ?? false;
  }

  /** True when no further request may be sent: told so, past the deadline, or the epoch is being closed. */
  get isDraining(): boolean {
    const { manifestText, drained, orders } = this.state;
    return this.#closing || manifestText !== null || drained || (orders?.drain ?? false);
  }

  /** True when everything that will ever be granted has its outcome. */
  get isFinished(): boolean {
    return this.isSealed && this.state.pendingCount === 0 && this.state.postponedCount === 0;
  }

  /** Takes a chunk on offer, on disk when it resolves; the same chunk again is taken again. */
  async offer(offer: Offer): Promise<OfferAnswer> {
    if (!this.state.chunks.has(offer.chunk)) {
      const refusal = this.#refuse(offer);
      if (refusal) return { taken: false, ...refusal };
    }
    try {
      if (!this.state.chunks.has(offer.chunk))
        this.#write([{ t: 'offered', chunk: offer.chunk, products: offer.products }]);
      await this.#sync();
    } catch {
      return { taken: false, refused: 'disk', room: 0 };
    }
    return { taken: true, held: this.state.held };
  }

  #refuse(offer: Offer): Refusal | null {
    if (this.isDraining) return { refused: 'draining', room: 0 };
    if (this.isSealed) return { refused: 'sealed', room: 0 };
    const size = offer.products.length;
    const due = offer.share - this.state.held;
    if (size > due) return { refused: 'share', room: Math.max(0, due) };
    const paceMs = this.intervalMs + paceMarginMs(this.intervalMs);
    const open = this.state.held - this.#ended();
    const room = Math.floor((this.deadlineMs - this.#clock.now()) / paceMs) - open;
    return size > room ? { refused: 'deadline', room: Math.max(0, Math.min(room, due)) } : null;
  }

  #ended(): number {
    const { stored, gone, failed } = this.state.counts;
    return stored + gone + failed;
  }

  /** Carries out the orders about chunks, pace and end; on disk when it resolves. Says what changed. */
  async follow(orders: Orders): Promise<{ granted: number; changed: boolean }> {
    const offered = new Set(this.state.offeredChunks());
    const grants = orders.grants.filter((chunk) => offered.has(chunk));
    const drops = orders.drops.filter((chunk) => offered.has(chunk) && !grants.includes(chunk));
    // Nothing more will be granted after the seal, so what is still only offered is nobody's here.
    if (orders.sealed)
      for (const chunk of offered) if (!grants.includes(chunk) && !drops.includes(chunk)) drops.push(chunk);
    const records: JournalRecord[] = [];
    if (drops.length > 0) records.push({ t: 'dropped', chunks: drops });
    if (grants.length > 0) records.push({ t: 'granted', chunks: grants });
    const { intervalMs, deadline, sealed, drain } = orders;
    const now = this.state.orders;
    const changed =
      now === null ||
      now.intervalMs !== intervalMs ||
      now.deadline !== deadline ||
      now.sealed !== sealed ||
      now.drain !== drain;
    if (changed) records.push({ t: 'ordered', intervalMs, deadline, sealed, drain });
    if (orders.partsAck > this.state.ackedSeq) records.push({ t: 'acked', seq: orders.partsAck });
    if (records.length === 0) return { granted: 0, changed: false };
    this.#write(records);
    if (grants.length > 0) await this.#sync();
    else this.#syncSoon();
    return { granted: grants.length, changed };
  }

  /** Told by somebody on the box to stop: no order takes that back. */
  drain(): void {
    this.#write([{ t: 'drained' }]);
    this.#syncSoon();
  }

  /** A request is about to be sent. Throws when that cannot be written down: then it must not be sent. */
  recordStart(n: number, atMs: number): void {
    this.#write([{ t: 'started', n, atMs: Math.round(atMs * 1_000) / 1_000 }]);
    this.#syncSoon();
  }

  /** Writes the outcome of a try; a failure that may go away is kept for a second one unless it was that. */
  recordResult(item: Item, result: ItemResult): void {
    const again = item.state === 'pending' && result.outcome === 'failed' && isRetryable(result.reason);
    this.#write([{ t: again ? 'postponed' : 'result', result }]);
    this.#syncSoon();
  }

  /** No request will be sent any more: what failed once has failed. */
  stopCrawling(): void {
    this.#closing = true;
    const records: JournalRecord[] = [];
    for (const item of this.state.items.values()) {
      if (item.state === 'postponed' && item.first) records.push({ t: 'result', result: item.first });
    }
    if (records.length > 0) this.#write(records);
    this.#syncSoon();
  }

  /** Makes the oldest results without a part, at most `limit`, the next part's; on disk when it resolves. */
  async cut(limit: number): Promise<Cut | null> {
    const { from, to } = this.state.uncut();
    if (from === to) return null;
    const cut: Cut = { seq: this.state.nextSeq, from, to: Math.min(to, from + limit) };
    this.#write([{ t: 'cut', ...cut }]);
    await this.#sync();
    return cut;
  }

  recordPart(part: PartRef): void {
    this.#write([{ t: 'part', part }]);
    this.#syncSoon();
  }

  async recordManifest(text: string): Promise<void> {
    this.#write([{ t: 'manifest', text }]);
    await this.#sync();
  }

  recordClosed(): void {
    this.#write([{ t: 'closed' }]);
    this.#syncSoon();
  }

  /** Uploaded parts that the main server has not confirmed, oldest first. */
  unackedParts(limit: number): PartRef[] {
    return this.state.parts.filter((part) => part.seq > this.state.ackedSeq).slice(0, limit);
  }

  progress(pageMs: number | null): Progress {
    const { items, pendingCount, postponedCount, counts, requests, minGapMs } = this.state;
    return { assigned: items.size, pending: pendingCount + postponedCount, ...counts, requests, minGapMs, pageMs };
  }

  #write(records: JournalRecord[]): void {
    try {
      this.#journal.append(records);
    } catch (error) {
      this.diskProblem = `the journal cannot be written: ${describeError(error)}`;
      throw error;
    }
    this.diskProblem = null;
    for (const record of records) this.state.apply(record);
  }

  async #sync(): Promise<void> {
    try {
      await this.#journal.sync();
    } catch (error) {
      this.diskProblem = `the journal cannot be written to the disk: ${describeError(error)}`;
      throw error;
    }
  }

  #syncSoon(): void {
    if (this.#syncPlanned) return;
    this.#syncPlanned = true;
    void this.#syncLater();
  }

  async #syncLater(): Promise<void> {
    await this.#clock.sleep(LAZY_SYNC_MS);
    this.#syncPlanned = false;
    // The problem is kept for the heartbeat; the next write tries again.
    await this.#sync().catch(() => undefined);
  }
}

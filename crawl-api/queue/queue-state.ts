/**
 * What the journal's records add up to: chunks, products, results waiting for upload, parts, orders. Pure: the same records
 * in the same order always give the same state. Only `apply` changes it.
 *
 * A product goes pending → stored | gone | failed, or pending → postponed → stored | gone | failed.
 */
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { Product } from '../../shared/domain/product.ts';
import type { PartRef } from '../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { JournalRecord } from './records.ts';

export const ITEM_STATES = ['pending', 'postponed', 'stored', 'gone', 'failed'] as const;
export type ItemState = (typeof ITEM_STATES)[number];

export interface Item extends Product {
  chunk: string;
  state: ItemState;
  reason: FailureReason | null;
  /** The first result of a postponed product: it stands if there is no time for a second try. */
  first: ItemResult | null;
}

export interface Cut {
  seq: number;
  from: number;
  to: number;
}

interface Chunk {
  /** Null once granted: the products are items then. */
  products: Product[] | null;
  size: number;
}

/** Part numbers go on this far above the last known one when records were lost. */
const SEQ_JUMP = 1_000;

export class QueueState {
  readonly chunks = new Map<string, Chunk>();
  readonly items = new Map<number, Item>();
  /** Numbers of products, in the order in which they are to be crawled. */
  #pending: number[] = [];
  #pendingHead = 0;
  #postponed: number[] = [];
  #postponedHead = 0;
  /** Products in chunks held, granted or not, whatever became of them. */
  held = 0;
  orders: { intervalMs: number; deadline: string; sealed: boolean; drain: boolean } | null = null;
  drained = false;
  counts = { stored: 0, gone: 0, failed: 0 };
  requests = 0;
  /** Wall clock; null before the first request. */
  lastStartMs: number | null = null;
  minGapMs: number | null = null;
  /** Lines of results that are not in the bucket; the first one has number `linesFrom`. */
  #lines: string[] = [];
  #linesFrom = 0;
  /** Characters in results that no cut covers yet. */
  uncutChars = 0;
  #cutTo = 0;
  /** Cuts that are not in the bucket yet, in order. */
  readonly cuts: Cut[] = [];
  readonly parts: PartRef[] = [];
  nextSeq = 0;
  ackedSeq = -1;
  manifestText: string | null = null;
  closed = false;

  apply(record: JournalRecord): void {
    switch (record.t) {
      case 'offered':
        if (this.chunks.has(record.chunk)) return;
        this.chunks.set(record.chunk, { products: record.products, size: record.products.length });
        this.held += record.products.length;
        return;
      case 'granted':
        for (const chunk of record.chunks) this.#grant(chunk);
        return;
      case 'dropped':
        for (const id of record.chunks) {
          const chunk = this.chunks.get(id);
          if (!chunk || chunk.products === null) continue;
          this.held -= chunk.size;
          this.chunks.delete(id);
        }
        return;
      case 'ordered':
        this.orders = {
          intervalMs: record.intervalMs,
          deadline: record.deadline,
          sealed: record.sealed,
          drain: record.drain,
        };
        return;
      case 'drained':
        this.drained = true;
        return;
      case 'started':
        this.#start(record.atMs);
        return;
      case 'postponed':
        this.#postpone(record.result);
        return;
      case 'result':
        this.#finish(record.result);
        return;
      case 'cut':
        this.cuts.push({ seq: record.seq, from: record.from, to: record.to });
        this.nextSeq = record.seq + 1;
        this.#cutTo = record.to;
        this.uncutChars = this.#charsFrom(record.to);
        return;
      case 'part':
        this.#store(record.part);
        return;
      case 'acked':
        this.ackedSeq = Math.max(this.ackedSeq, record.seq);
        return;
      case 'manifest':
        this.manifestText = record.text;
        return;
      case 'closed':
        this.closed = true;
        return;
      case 'damaged':
        this.nextSeq += SEQ_JUMP;
        return;
    }
  }

  /** The product to crawl now, without taking it: the next granted one, or with `retry` one that failed before. */
  peek(retry: boolean): Item | null {
    const n = this.#pending[this.#pendingHead] ?? (retry ? this.#postponed[this.#postponedHead] : undefined);
    return n === undefined ? null : this.items.get(n)!;
  }

  get pendingCount(): number {
    return this.#pending.length - this.#pendingHead;
  }

  get postponedCount(): number {
    return this.#postponed.length - this.#postponedHead;
  }

  /** Ids of chunks held under no grant. */
  offeredChunks(): string[] {
    return [...this.chunks].filter(([, chunk]) => chunk.products !== null).map(([id]) => id);
  }

  /** Results without a cut: their numbers are [from, to). */
  uncut(): { from: number; to: number } {
    return { from: this.#cutTo, to: this.#linesFrom + this.#lines.length };
  }

  /** The lines of results [from, to), which no part in the bucket holds yet. */
  linesOf(cut: { from: number; to: number }): string[] {
    return this.#lines.slice(cut.from - this.#linesFrom, cut.to - this.#linesFrom);
  }

  #grant(id: string): void {
    const chunk = this.chunks.get(id);
    if (!chunk || chunk.products === null) return;
    for (const { n, id: productId } of chunk.products) {
      // The same product under an older generation of its chunk: it is ours already.
      if (this.items.has(n)) continue;
      this.items.set(n, { n, id: productId, chunk: id, state: 'pending', reason: null, first: null });
      this.#pending.push(n);
    }
    chunk.products = null;
  }

  #start(atMs: number): void {
    this.requests++;
    if (this.lastStartMs !== null) {
      const gapMs = atMs - this.lastStartMs;
      if (this.minGapMs === null || gapMs < this.minGapMs) this.minGapMs = gapMs;
    }
    this.lastStartMs = atMs;
  }

  #postpone(result: ItemResult): void {
    const item = this.items.get(result.n);
    if (item?.state !== 'pending') return;
    this.#leaveQueue(item);
    item.state = 'postponed';
    item.first = result;
    this.#postponed.push(item.n);
  }

  #finish(result: ItemResult): void {
    const item = this.items.get(result.n);
    if (!item || (item.state !== 'pending' && item.state !== 'postponed')) return;
    this.#leaveQueue(item);
    item.state = result.outcome;
    item.reason = result.outcome === 'failed' ? result.reason : null;
    item.first = null;
    this.counts[result.outcome]++;
    const line = JSON.stringify(result);
    this.#lines.push(line);
    this.uncutChars += line.length;
  }

  #leaveQueue(item: Item): void {
    const isPending = item.state === 'pending';
    const queue = isPending ? this.#pending : this.#postponed;
    const head = isPending ? this.#pendingHead : this.#postponedHead;
    if (queue[head] === item.n) {
      if (isPending) this.#pendingHead++;
      else this.#postponedHead++;
      return;
    }
    const at = queue.indexOf(item.n, head);
    if (at !== -1) queue.splice(at, 1);
  }

  #store(part: PartRef): void {
    this.parts.push(part);
    const at = this.cuts.findIndex((cut) => cut.seq === part.seq);
    if (at === -1) return;
    const [cut] = this.cuts.splice(at, 1);
    // Parts go up in order, so what is in the bucket is always the beginning.
    this.#lines.splice(0, cut!.to - this.#linesFrom);
    this.#linesFrom = cut!.to;
  }

  #charsFrom(index: number): number {
    let chars = 0;
    for (let i = index - this.#linesFrom; i < this.#lines.length; i++) chars += this.#lines[i]!.length;
    return chars;
  }
}

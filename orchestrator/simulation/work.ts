/**
 * The ledger of a simulated run: chunks, who owns them, and how far their results have come. Products of a chunk are crawled in
 * order, so one number says which of them have an outcome; nothing is kept per product.
 */
import { cutChunks } from '../../shared/domain/sharing.ts';
import type { OutcomeCounts } from '../../shared/domain/outcome.ts';
import type { WorkCounts } from '../control/model/stores.ts';

/** One instance, as the owner of chunks: an entry of `WorkCounts.bySlot`. */
export type Owner = WorkCounts['bySlot'][number];

export interface Chunk {
  readonly index: number;
  generation: number;
  /** `<index>-<generation>` */
  id: string;
  /** First product without an outcome; after `last` when all have one. */
  next: number;
  readonly last: number;
  /** Null while it waits. */
  owner: Owner | null;
  /** True while somebody holds it under an offer, or may. */
  offered: boolean;
  /** The loss that it came back from, until it is granted again. */
  loss: Loss | null;
}

/** How long it takes from the last word of a lost instance until all of its products have new owners. */
export interface Loss {
  slot: number;
  lastHeardMs: number;
  /** Chunks that still wait for a new owner. */
  waiting: number;
  /** Null until then. */
  reassignedAtMs: number | null;
}

/** Results in the bucket: which product of a chunk comes next after them. */
export interface SimPart {
  products: number;
  reaches: readonly { chunk: Chunk; next: number }[];
  loaded: boolean;
}

export class Work {
  readonly chunks: readonly Chunk[];
  readonly counts: WorkCounts = { chunks: 0, waiting: 0, granted: 0, bySlot: [] };
  readonly totals: OutcomeCounts & { seen: number; loaded: number } = {
    stored: 0,
    gone: 0,
    failed: 0,
    seen: 0,
    loaded: 0,
  };
  /** Chunks that nobody owns and nobody holds under an offer, oldest first. */
  readonly #free: Chunk[];
  readonly #goneShare: number;
  #firstFree = 0;

  constructor(products: number, chunkSize: number, goneShare: number) {
    this.#goneShare = goneShare;
    this.chunks = cutChunks(products, chunkSize).map(({ index, first, last }) => ({
      index,
      generation: 1,
      id: `${index}-1`,
      next: first,
      last,
      owner: null,
      offered: false,
      loss: null,
    }));
    this.#free = [...this.chunks];
    this.counts.chunks = this.chunks.length;
    this.counts.waiting = this.chunks.length;
  }

  addOwner(slot: number, epoch: number): Owner {
    const owner: Owner = { slot, epoch, chunks: 0, products: 0 };
    this.counts.bySlot.push(owner);
    return owner;
  }

  /** The next chunk to offer; null when none is free. */
  firstFree(): Chunk | null {
    return this.#free[this.#firstFree] ?? null;
  }

  /** An instance holds the first free chunk under an offer. */
  takeFirst(): Chunk {
    const chunk = this.#free[this.#firstFree++]!;
    chunk.offered = true;
    if (this.#firstFree > 1_024) {
      this.#free.splice(0, this.#firstFree);
      this.#firstFree = 0;
    }
    return chunk;
  }

  /** Nobody holds it any more: it may be offered again. */
  dropOffer(chunk: Chunk): void {
    if (!chunk.offered) return;
    chunk.offered = false;
    if (chunk.owner === null) this.#free.push(chunk);
  }

  /** The chunk is its own now; false when somebody has it. */
  grant(chunk: Chunk, owner: Owner, nowMs: number): boolean {
    if (chunk.owner !== null) return chunk.owner === owner;
    chunk.owner = owner;
    chunk.offered = false;
    owner.chunks++;
    owner.products += openIn(chunk);
    this.counts.granted++;
    this.counts.waiting--;
    const { loss } = chunk;
    chunk.loss = null;
    if (loss !== null && --loss.waiting === 0) loss.reassignedAtMs = nowMs;
    return true;
  }

  /** Takes back a chunk that has products without outcome, as its next generation; returns how many. */
  takeBack(chunk: Chunk, loss: Loss | null): number {
    const open = openIn(chunk);
    const { owner } = chunk;
    if (owner === null || open === 0) return 0;
    owner.chunks--;
    owner.products -= open;
    this.counts.granted--;
    this.counts.waiting++;
    chunk.owner = null;
    chunk.generation++;
    chunk.id = `${chunk.index}-${chunk.generation}`;
    chunk.loss = loss;
    if (loss !== null) loss.waiting++;
    this.#free.push(chunk);
    return open;
  }

  /** Enters the outcomes of a part; the first outcome of a product wins. Loading it again changes nothing. */
  load(part: SimPart): void {
    if (part.loaded) return;
    part.loaded = true;
    this.totals.loaded++;
    for (const { chunk, next } of part.reaches) {
      if (next <= chunk.next) continue;
      const gone = this.#goneBelow(next) - this.#goneBelow(chunk.next);
      this.totals.gone += gone;
      this.totals.stored += next - chunk.next - gone;
      chunk.next = next;
    }
  }

  /** Ends every product without outcome as failed; returns how many. */
  failRest(): number {
    let open = 0;
    for (const chunk of this.chunks) {
      open += openIn(chunk);
      chunk.next = chunk.last + 1;
    }
    this.totals.failed += open;
    return open;
  }

  /** Products below this number that are gone: spread evenly, the same ones whoever crawls them. */
  #goneBelow(number: number): number {
    return Math.floor((number - 1) * this.#goneShare);
  }
}

/** Products of the chunk without an outcome. */
export const openIn = (chunk: Chunk): number => chunk.last - chunk.next + 1;

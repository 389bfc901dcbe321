/**
 * What one simulated instance has to crawl, and how far it is. Progress is computed from the pace when somebody asks, so a
 * chunk of 500 products costs as much as a chunk of one.
 */
import type { Pace } from './chance.ts';
import type { Chunk, SimPart } from './work.ts';

interface Pile extends Pace {
  chunk: Chunk;
  /** The next product to crawl when the clock was last set. */
  first: number;
  last: number;
  /** When `first` is asked for. */
  startMs: number;
  /** Results since then, as of the last look. */
  done: number;
}

/** A moment computed from a pace may miss the very result that it stands for by a rounding error. */
const HAIR = 1e-6;

export class CrawlQueue {
  readonly #piles: Pile[] = [];
  /** The first pile that is not all crawled. */
  #head = 0;
  /** The first pile with results that are in no part. */
  #uncutFrom = 0;
  #running = true;
  /** When the address may be asked for the next pile. */
  #freeAtMs = 0;
  /** Products in all piles, crawled or not. */
  assigned = 0;
  /** Results so far, as of the last look. */
  crawled = 0;
  #cut = 0;

  /** Takes a granted chunk behind what there is. */
  add(chunk: Chunk, pace: Pace, nowMs: number): void {
    const pile: Pile = { chunk, first: chunk.next, last: chunk.last, startMs: 0, done: 0, ...pace };
    this.#piles.push(pile);
    this.assigned += sizeOf(pile);
    this.#schedule(pile, nowMs);
  }

  #schedule(pile: Pile, nowMs: number): void {
    pile.startMs = this.#running ? Math.max(nowMs, this.#freeAtMs) : Infinity;
    if (this.#running) this.#freeAtMs = pile.startMs + sizeOf(pile) * pile.gapMs;
  }

  /** Brings `crawled` up to date. */
  advance(nowMs: number): void {
    for (let pile = this.#piles[this.#head]; pile; pile = this.#piles[++this.#head]) {
      const done = resultsBy(pile, nowMs);
      this.crawled += done - pile.done;
      pile.done = done;
      if (done < sizeOf(pile)) return;
    }
  }

  get pending(): number {
    return this.assigned - this.crawled;
  }

  /** The pace of what is being crawled; null before the first chunk. */
  get pace(): Pace | null {
    return this.#piles[Math.min(this.#head, this.#piles.length - 1)] ?? null;
  }

  /** Results that are in no part. */
  get uncut(): number {
    return this.crawled - this.#cut;
  }

  /** No request from now on. */
  pause(nowMs: number): void {
    if (!this.#running) return;
    this.advance(nowMs);
    this.#running = false;
    for (let i = this.#head; i < this.#piles.length; i++) this.#piles[i]!.startMs = Infinity;
  }

  /** Crawls on; with a factor each product takes that many times as long as before. */
  resume(nowMs: number, factor = 1): void {
    if (this.#running) return;
    this.#running = true;
    this.#freeAtMs = nowMs;
    // What is crawled of a pile is on record; the rest of it gets a clock of its own.
    if ((this.#piles[this.#head]?.done ?? 0) > 0) this.#splitHead();
    for (const pile of this.#piles.slice(this.#head)) {
      pile.gapMs *= factor;
      pile.pageMs *= factor;
      this.#schedule(pile, nowMs);
    }
  }

  #splitHead(): void {
    const pile = this.#piles[this.#head]!;
    const rest: Pile = { ...pile, first: pile.first + pile.done, done: 0 };
    pile.last = rest.first - 1;
    this.#piles.splice(++this.#head, 0, rest);
  }

  /** Forgets what is not crawled. */
  forget(nowMs: number): void {
    this.advance(nowMs);
    const pile = this.#piles[this.#head];
    if (pile) pile.last = pile.first + pile.done - 1;
    this.#piles.length = this.#head + (pile && pile.done > 0 ? 1 : 0);
    this.#head = this.#piles.length;
    this.assigned = this.crawled;
    this.#freeAtMs = nowMs;
  }

  /** Forgets those of the chunks of which no product has been asked for; returns them. */
  giveUp(chunkIds: ReadonlySet<string>, nowMs: number): Chunk[] {
    this.advance(nowMs);
    const given: Chunk[] = [];
    let to = this.#head;
    let nextMs: number | null = null;
    for (let i = this.#head; i < this.#piles.length; i++) {
      const pile = this.#piles[i]!;
      const isBegun = pile.done > 0 || pile.startMs <= nowMs;
      if (!isBegun && chunkIds.has(pile.chunk.id)) {
        // What stands behind it moves up.
        nextMs ??= pile.startMs;
        given.push(pile.chunk);
        this.assigned -= sizeOf(pile);
        continue;
      }
      if (!isBegun && nextMs !== null) pile.startMs = nextMs;
      if (nextMs !== null) nextMs = pile.startMs + sizeOf(pile) * pile.gapMs;
      this.#piles[to++] = pile;
    }
    this.#piles.length = to;
    if (nextMs !== null && this.#running) this.#freeAtMs = nextMs;
    return given;
  }

  /** The chunks that are not all crawled, in order. */
  openChunks(): Chunk[] {
    return this.#piles.slice(this.#head).map((pile) => pile.chunk);
  }

  /** When the last product has its result; Infinity while it pauses, -Infinity when nothing is left. */
  get emptyAtMs(): number {
    if (this.#head >= this.#piles.length) return -Infinity;
    const last = this.#piles.at(-1)!;
    return last.startMs + (sizeOf(last) - 1) * last.gapMs + last.pageMs;
  }

  /** When there are so many results in no part; Infinity when never. */
  resultMs(count: number): number {
    let left = count - this.uncut;
    if (left <= 0) return -Infinity;
    for (let i = this.#head; i < this.#piles.length; i++) {
      const pile = this.#piles[i]!;
      const open = sizeOf(pile) - pile.done;
      if (left <= open) return pile.startMs + (pile.done + left - 1) * pile.gapMs + pile.pageMs;
      left -= open;
    }
    return Infinity;
  }

  /** A part with all results that are in none; null when there is none. */
  cut(nowMs: number): SimPart | null {
    this.advance(nowMs);
    const products = this.uncut;
    if (products === 0) return null;
    const reaches: { chunk: Chunk; next: number }[] = [];
    for (let i = this.#uncutFrom; i <= this.#head && i < this.#piles.length; i++) {
      const pile = this.#piles[i]!;
      if (pile.done > 0) reaches.push({ chunk: pile.chunk, next: pile.first + pile.done });
    }
    this.#uncutFrom = this.#head;
    this.#cut = this.crawled;
    return { products, reaches, loaded: false };
  }
}

const sizeOf = (pile: Pile): number => pile.last - pile.first + 1;

function resultsBy(pile: Pile, nowMs: number): number {
  const sinceMs = nowMs - pile.startMs - pile.pageMs;
  if (!(sinceMs >= -HAIR)) return pile.done;
  return Math.max(pile.done, Math.min(sizeOf(pile), Math.floor(sinceMs / pile.gapMs + HAIR) + 1));
}

/** Compares millions of product IDs without storing them: as multisets, and for duplicates. */
import { hash } from 'node:crypto';

/** SHA-256 of an ID's bytes, as 32 one-byte characters: the fastest form in Node. */
export function hashOf(id: string): string {
  return hash('sha256', id, 'binary');
}

const WORDS = 8;

const wordOf = (hashed: string, at: number): number =>
  hashed.charCodeAt(at) |
  (hashed.charCodeAt(at + 1) << 8) |
  (hashed.charCodeAt(at + 2) << 16) |
  (hashed.charCodeAt(at + 3) << 24);

/**
 * An order-independent sum over IDs: each word of their hashes, times the number of occurrences. Two lists with the
 * same sums differ only with a probability far below that of a memory fault (2^-256 for a count that is off by an odd
 * number, 2^8 times that with each factor of two). This protects against random errors and faults, not against an
 * attacker who chooses a million IDs.
 */
export class Fingerprint {
  readonly #words = new Int32Array(WORDS);

  add(hashed: string, times: number): void {
    for (let i = 0; i < WORDS; i++) this.#words[i]! += Math.imul(wordOf(hashed, 4 * i), times);
  }

  equals(other: Fingerprint): boolean {
    return this.#words.every((word, i) => word === other.#words[i]);
  }
}

const FIRST_ROOM = 1_024;

/**
 * Detects whether an ID was added twice, from 64 bits of its hash: no false negatives, and one false positive in 37
 * million runs of a million products.
 */
export class Repeats {
  #room = new BigUint64Array(FIRST_ROOM);
  #halves = new Uint32Array(this.#room.buffer);
  #count = 0;

  add(hashed: string): void {
    if (this.#count === this.#room.length) {
      const room = new BigUint64Array(2 * this.#count);
      room.set(this.#room);
      this.#room = room;
      this.#halves = new Uint32Array(room.buffer);
    }
    this.#halves[2 * this.#count] = wordOf(hashed, 0);
    this.#halves[2 * this.#count + 1] = wordOf(hashed, 4);
    this.#count++;
  }

  any(): boolean {
    const sorted = this.#room.subarray(0, this.#count).sort();
    for (let i = 1; i < sorted.length; i++) if (sorted[i] === sorted[i - 1]) return true;
    return false;
  }
}

/** One of `count` slices of about the same size that partition all IDs. */
export interface Slice {
  index: number;
  count: number;
}

export function isIn(slice: Slice, id: string): boolean {
  return slice.count === 1 || (wordOf(hashOf(id), 0) >>> 0) % slice.count === slice.index;
}

/** Slices of `items` IDs with at most about `size` each. */
export function slicesOf(items: number, size: number): Slice[] {
  const count = Math.max(1, Math.ceil(items / size));
  return Array.from({ length: count }, (_, index) => ({ index, count }));
}

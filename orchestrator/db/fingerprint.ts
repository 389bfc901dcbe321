/** Millions of product IDs compared without keeping them: as a set with counts, and among themselves. */
import { hash } from 'node:crypto';

/** SHA-256 of an ID's bytes, as 32 characters of one byte each: the quickest form that Node gives. */
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
 * A sum over IDs that does not depend on their order: each word of their hashes, times how often each one is there. Two
 * lists with the same sums are the same but for a chance far below that of a fault in memory (2^-256 for a count that is
 * off by an odd number, 2^8 times that with each factor of two). Against chance and faults, not against somebody who may
 * choose a million IDs to that end.
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

/** Says whether an ID was added twice, from 64 bits of its hash: never a wrong no, and a wrong yes once in 37 million runs of a million products. */
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

/** One of `count` parts of about the same size that all IDs fall into. */
export interface Slice {
  index: number;
  count: number;
}

export function isIn(slice: Slice, id: string): boolean {
  return slice.count === 1 || (wordOf(hashOf(id), 0) >>> 0) % slice.count === slice.index;
}

/** Slices of `items` IDs of which each has at most about `size`. */
export function slicesOf(items: number, size: number): Slice[] {
  const count = Math.max(1, Math.ceil(items / size));
  return Array.from({ length: count }, (_, index) => ({ index, count }));
}

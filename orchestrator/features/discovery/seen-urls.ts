/**
 * Which URLs discovery has taken before, in 10 bits each: a Bloom filter. It never forgets one; of those it has not
 * seen it takes about one in a hundred for seen, when it is as full as it was made for.
 */
import { AppError } from '../../../shared/domain/errors.ts';
import { HASH_BYTES } from '../../core/db/key-hash.ts';

/** The filter is stored in pages of this size; the last one is shorter. */
export const PAGE_BYTES = 65_536;

const BITS_PER_URL = 10;
const BITS_PER_HASH = 5;
/** Above this, 48 bits of a hash no longer reach every bit evenly. */
const MAX_CAPACITY = 1e9;

export class BloomSeen {
  /** How many URLs it is made for. It takes more, at a higher rate of false positives. */
  readonly capacity: number;
  readonly #bits: number;
  readonly #bytes: Uint8Array;
  /** Indexes of the last hash; one array for all, because `has` is called for every link. */
  readonly #indexes = new Float64Array(BITS_PER_HASH);
  #count = 0;
  #bitsSet = 0;

  /** An empty filter. */
  constructor(capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 1 || capacity > MAX_CAPACITY)
      throw new RangeError(`a filter for ${capacity} URLs: not a whole number from 1 to ${MAX_CAPACITY}`);
    this.capacity = capacity;
    this.#bits = capacity * BITS_PER_URL;
    this.#bytes = new Uint8Array(Math.ceil(this.#bits / 8));
  }

  /** A stored filter: the capacity it was made with, its `count`, and its pages in order. */
  static from(capacity: number, count: number, pages: Iterable<Uint8Array>): BloomSeen {
    const seen = new BloomSeen(capacity);
    const expected = seen.#bytes.length;
    let length = 0;
    for (const page of pages) {
      if (length + page.length <= expected) seen.#bytes.set(page, length);
      length += page.length;
    }
    if (length !== expected)
      throw new AppError(
        'internal',
        `the stored set of seen URLs has ${length} bytes, but one for ${capacity} URLs has ${expected}`,
      );
    seen.#count = count;
    seen.#bitsSet = countBits(seen.#bytes);
    return seen;
  }

  /** URLs added that were not there, or not thought to be. */
  get count(): number {
    return this.#count;
  }

  /** False when the hash was there before, or seemed to be. */
  add(hash: Uint8Array): boolean {
    const before = this.#bitsSet;
    for (const index of this.#locate(hash)) {
      const at = Math.floor(index / 8);
      const mask = 1 << (index % 8);
      if ((this.#bytes[at]! & mask) !== 0) continue;
      this.#bytes[at]! |= mask;
      this.#bitsSet++;
    }
    const isNew = this.#bitsSet > before;
    if (isNew) this.#count++;
    return isNew;
  }

  /** True for a hash that was added, and for another one at `falsePositiveRate()`. */
  has(hash: Uint8Array): boolean {
    for (const index of this.#locate(hash)) {
      if ((this.#bytes[Math.floor(index / 8)]! & (1 << (index % 8))) === 0) return false;
    }
    return true;
  }

  /** The share of unseen URLs that `has` takes for seen, from how many bits are set now. */
  falsePositiveRate(): number {
    return (this.#bitsSet / this.#bits) ** BITS_PER_HASH;
  }

  /** The filter's bytes for storing: views, which later additions change. */
  *pages(): Generator<Uint8Array> {
    for (let start = 0; start < this.#bytes.length; start += PAGE_BYTES)
      yield this.#bytes.subarray(start, start + PAGE_BYTES);
  }

  /** Double hashing (Kirsch and Mitzenmacher): a start and a step, 48 bits of the hash each, give all indexes. */
  #locate(hash: Uint8Array): Float64Array {
    if (hash.length !== HASH_BYTES) throw new RangeError(`a hash of ${hash.length} bytes instead of ${HASH_BYTES}`);
    const bits = this.#bits;
    let index = Math.floor(fractionAt(hash, 0) * bits);
    const step = 1 + Math.floor(fractionAt(hash, 8) * (bits - 1));
    for (let i = 0; i < BITS_PER_HASH; i++) {
      this.#indexes[i] = index;
      index += step;
      if (index >= bits) index -= bits;
    }
    return this.#indexes;
  }
}

/** Six bytes as a number from 0 to below 1. */
function fractionAt(hash: Uint8Array, at: number): number {
  const bytes = new DataView(hash.buffer, hash.byteOffset + at);
  return (bytes.getUint16(0) * 2 ** 32 + bytes.getUint32(2)) * 2 ** -48;
}

const BITS_OF_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll('0', '').length);

function countBits(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum += BITS_OF_BYTE[byte]!;
  return sum;
}

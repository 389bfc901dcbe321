/**
 * The IDs and URLs of a list of products, outside of V8's heap: strings in a map take more memory, and the garbage that
 * V8 allows comes on top.
 */
import type { IdList, UrlsById } from '../model/stores.ts';

/** Above 32 MB the C library returns memory that is freed to the system. Of a new slab only what is written counts. */
const SLAB_BYTES = 67_108_864;
/** Ends each ID and each URL: no byte of UTF-8. */
const END = 0xff;
/** Scheme and host, which URLs share. */
const ORIGIN = /^https?:\/\/[^/]+/;
/** Bytes of the number of an origin, which a URL begins with. */
const NUMBER = 3;
/** Further origins are stored with each URL: the map of 100,000 takes 10 MB, a larger one more than it saves. */
const MAX_ORIGINS = 100_000;
const FIRST_TABLE = 1_024;
/** IDs of a piece: with URLs of 2,000 bytes at most they take far less than the 4 GB that a place can count. */
const PIECE = 65_536;

export class PackedUrls implements IdList, UrlsById {
  readonly #slabs: Buffer[] = [];
  /** Bytes of the last slab. */
  #used = SLAB_BYTES;
  /** Where each ID begins, with its URL after it, counted from the first ID of its piece. Pieces need no copies. */
  readonly #places: Uint32Array[] = [];
  /** Where the first ID of each piece begins, counted over all slabs. */
  readonly #bases: number[] = [];
  /** The places of IDs in the list, from 1, by their hashes; 0: none. At most half of it is filled. */
  #table = new Uint32Array(FIRST_TABLE);
  /** Each origin once, by its number, and the numbers. The first one is of URLs that are kept whole. */
  readonly #origins = [''];
  readonly #numbers = new Map<string, number>();
  #scratch = Buffer.alloc(4_096);
  /** Number of IDs. */
  length = 0;

  /** @param url of an ID that is new, as it is requested: ASCII. Both together are shorter than a slab */
  add(id: string, url: string): void {
    const bytes = this.#encode(id);
    const origin = this.#numberOf(url);
    const rest = url.slice(this.#origins[origin]!.length);
    const size = bytes + NUMBER + rest.length + 2;
    if (this.#used + size > SLAB_BYTES) {
      this.#slabs.push(Buffer.alloc(SLAB_BYTES));
      this.#used = 0;
    }
    const slab = this.#slabs.at(-1)!;
    this.#scratch.copy(slab, this.#used, 0, bytes);
    slab[this.#used + bytes] = END;
    slab.writeUIntLE(origin, this.#used + bytes + 1, NUMBER);
    slab.write(rest, this.#used + bytes + 1 + NUMBER, 'latin1');
    slab[this.#used + size - 1] = END;
    const place = (this.#slabs.length - 1) * SLAB_BYTES + this.#used;
    if (this.length % PIECE === 0) {
      this.#places.push(new Uint32Array(PIECE));
      this.#bases.push(place);
    }
    this.#places.at(-1)![this.length % PIECE] = place - this.#bases.at(-1)!;
    this.#used += size;
    this.length++;
    if (this.length * 2 > this.#table.length) this.#grow();
    else this.#table[this.#slotOf(bytes)] = this.length;
  }

  has(id: string): boolean {
    return this.#table[this.#slotOf(this.#encode(id))] !== 0;
  }

  get(id: string): string | undefined {
    const bytes = this.#encode(id);
    const found = this.#table[this.#slotOf(bytes)]!;
    if (found === 0) return undefined;
    const { slab, from } = this.#find(found - 1);
    const at = from + bytes + 1;
    return this.#origins[slab.readUIntLE(at, NUMBER)]! + textAt(slab, at + NUMBER);
  }

  /** The ID at this place in the list. */
  at(index: number): string | undefined {
    return index < this.length ? this.#idAt(index) : undefined;
  }

  slice(from = 0, to = this.length): string[] {
    const ids: string[] = [];
    for (let i = from; i < Math.min(to, this.length); i++) ids.push(this.#idAt(i));
    return ids;
  }

  *[Symbol.iterator](): Generator<string> {
    for (let i = 0; i < this.length; i++) yield this.#idAt(i);
  }

  /** The slab of an ID, and where it begins there. */
  #find(index: number): { slab: Buffer; from: number } {
    const piece = Math.floor(index / PIECE);
    const place = this.#bases[piece]! + this.#places[piece]![index % PIECE]!;
    return { slab: this.#slabs[Math.floor(place / SLAB_BYTES)]!, from: place % SLAB_BYTES };
  }

  #idAt(index: number): string {
    const { slab, from } = this.#find(index);
    return textAt(slab, from);
  }

  #numberOf(url: string): number {
    const origin = ORIGIN.exec(url)?.[0];
    const known = origin === undefined ? 0 : this.#numbers.get(origin);
    if (known !== undefined) return known;
    if (this.#origins.length > MAX_ORIGINS) return 0;
    // A copy: a part of a string keeps the whole one.
    const copy = Buffer.from(origin!).toString();
    this.#numbers.set(copy, this.#origins.length);
    return this.#origins.push(copy) - 1;
  }

  /** Writes the ID into the scratch; its number of bytes. */
  #encode(id: string): number {
    if (id.length * 3 > this.#scratch.length) this.#scratch = Buffer.alloc(id.length * 3);
    return this.#scratch.write(id);
  }

  /** Where the ID in the scratch is in the table, or goes to. */
  #slotOf(bytes: number): number {
    const scratch = this.#scratch;
    const mask = this.#table.length - 1;
    for (let slot = hashOf(scratch, 0, bytes) & mask; ; slot = (slot + 1) & mask) {
      const found = this.#table[slot]!;
      if (found === 0) return slot;
      const { slab, from } = this.#find(found - 1);
      if (slab[from + bytes] === END && slab.compare(scratch, 0, bytes, from, from + bytes) === 0) return slot;
    }
  }

  #grow(): void {
    const table = new Uint32Array(this.#table.length * 2);
    const mask = table.length - 1;
    for (let index = 0; index < this.length; index++) {
      const { slab, from } = this.#find(index);
      let slot = hashOf(slab, from, slab.indexOf(END, from)) & mask;
      while (table[slot] !== 0) slot = (slot + 1) & mask;
      table[slot] = index + 1;
    }
    this.#table = table;
  }
}

const textAt = (slab: Buffer, from: number): string => slab.toString('utf8', from, slab.indexOf(END, from));

/** FNV-1a. */
function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

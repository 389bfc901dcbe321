/**
 * The IDs and URLs of a list of products, outside of V8's heap: strings in a map take more memory, and the garbage that
 * V8 allows comes on top.
 */
import type { IdList, UrlsById } from '../model/stores.ts';

/** Above 32 MB the C library returns memory that is freed to the system. Of a new slab only what is written counts. */
const SLAB_BYTES = 67_108_864;
/** Ends each ID and each URL: no byte of UTF-8. */
const END = 0xff;
const FIRST_TABLE = 1_024;
/** IDs. */
const PIECE = 65_536;

export class PackedUrls implements IdList, UrlsById {
  readonly #slabs: Buffer[] = [];
  /** Bytes of the last slab. */
  #used = SLAB_BYTES;
  /** Where each ID begins, with its URL after it: its slab, and the place there. In pieces, which need no copies. */
  readonly #places: Float64Array[] = [];
  /** The places of IDs in the list, from 1, by their hashes; 0: none. At most half of it is filled. */
  #table = new Uint32Array(FIRST_TABLE);
  #scratch = Buffer.alloc(4_096);
  /** Number of IDs. */
  length = 0;

  /** @param url of an ID that is new, as it is requested: ASCII. Both together are shorter than a slab */
  add(id: string, url: string): void {
    const bytes = this.#encode(id);
    if (this.#used + bytes + url.length + 2 > SLAB_BYTES) {
      this.#slabs.push(Buffer.alloc(SLAB_BYTES));
      this.#used = 0;
    }
    const slab = this.#slabs.at(-1)!;
    this.#scratch.copy(slab, this.#used, 0, bytes);
    slab[this.#used + bytes] = END;
    slab.write(url, this.#used + bytes + 1, 'latin1');
    slab[this.#used + bytes + 1 + url.length] = END;
    if (this.length % PIECE === 0) this.#places.push(new Float64Array(PIECE));
    this.#places.at(-1)![this.length % PIECE] = (this.#slabs.length - 1) * SLAB_BYTES + this.#used;
    this.#used += bytes + url.length + 2;
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
    return found === 0 ? undefined : this.#text(found - 1, bytes + 1);
  }

  /** The ID at this place in the list. */
  at(index: number): string | undefined {
    return index < this.length ? this.#text(index, 0) : undefined;
  }

  slice(from = 0, to = this.length): string[] {
    const ids: string[] = [];
    for (let i = from; i < Math.min(to, this.length); i++) ids.push(this.#text(i, 0));
    return ids;
  }

  *[Symbol.iterator](): Generator<string> {
    for (let i = 0; i < this.length; i++) yield this.#text(i, 0);
  }

  /** The slab of an ID, and where it begins there. */
  #find(index: number): { slab: Buffer; from: number } {
    const place = this.#places[Math.floor(index / PIECE)]![index % PIECE]!;
    return { slab: this.#slabs[Math.floor(place / SLAB_BYTES)]!, from: place % SLAB_BYTES };
  }

  #text(index: number, after: number): string {
    const { slab, from } = this.#find(index);
    return slab.toString('utf8', from + after, slab.indexOf(END, from + after));
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

/** FNV-1a. */
function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/**
 * How products are split into chunks, and how many chunks each slot may hold.
 *
 * All chunks but the last have the same size, so a shard's size is its number of chunks. Chunks are granted in two
 * steps: first every slot may hold floor(chunks / slots); only when all of those are granted may a slot take one more.
 * That keeps shards even to within one chunk, whatever order the load balancer picks targets in.
 */

/** Maximum IDs per call: express refuses bodies over 100 KB by default, and an ID may be long. */
export const MAX_CHUNK = 500;

/**
 * IDs per chunk: a twentieth of a share, so that a late instance still gets some, within [1, 500]. Rounded up, a share
 * is at most 20 chunks. Rounded down it would be slightly more, so some slots would hold 21 and a plan would need 23
 * instances where 22 suffice.
 */
export function chunkSize(products: number, slots: number): number {
  return Math.min(MAX_CHUNK, Math.max(1, Math.ceil(products / Math.max(1, slots) / 20)));
}

export interface ChunkRange {
  /** 1, 2, 3 … */
  index: number;
  /** First and last product number, both inclusive; numbers start at 1. */
  first: number;
  last: number;
}

/** Splits product numbers 1..products into ranges of `size`. */
export function cutChunks(products: number, size: number): ChunkRange[] {
  const ranges: ChunkRange[] = [];
  for (let first = 1, index = 1; first <= products; first += size, index++) {
    ranges.push({ index, first, last: Math.min(products, first + size - 1) });
  }
  return ranges;
}

/**
 * How many chunks one slot may hold now.
 * @param total chunks of the run
 * @param slots slots that can still take chunks
 * @param granted chunks granted so far to those slots
 */
export function dueChunks(total: number, slots: number, granted: number): number {
  if (slots <= 0) return 0;
  const floor = Math.floor(total / slots);
  return granted >= floor * slots ? Math.ceil(total / slots) : floor;
}

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
  /** Where products are at many hosts; omitted: all are at one site. */
  hosts?: ChunkHosts;
}

/** The hosts of a chunk: whole ones, or a slice of a single one. */
export interface ChunkHosts {
  /** Index of the first chunk of the host that this one is a slice of; null: it has whole hosts. */
  sliceOf: number | null;
  /** How long its longest host takes at its pace, the slices that follow included. Milliseconds. */
  leftMs: number;
}

/** When a slice waits that is not the next one of its host: a later time than any. */
export const NOT_NEXT_MS = Number.MAX_SAFE_INTEGER;

/** The first slice of a host, or a chunk of whole hosts: nothing comes before it. */
export const isFirst = ({ sliceOf }: ChunkHosts, index: number): boolean => sliceOf === null || sliceOf === index;

/** The slices of one host as the ledger has them. Times are milliseconds since 1970. */
export interface SliceDue {
  /** Waiting: it is not offered before. Granted: when its crawl begins, after that of the slice before it. */
  dueAtMs: number;
  leftMs: number;
}

/**
 * When the crawl of a slice begins that is granted now.
 * @param dueAtMs since when it waited for the owner of its host; null: it has none
 */
export const beginsAtMs = (nowMs: number, dueAtMs: number | null, lengthMs: number): number =>
  Math.max(nowMs, dueAtMs === null ? 0 : Math.round(dueAtMs + lengthMs * AHEAD));

/**
 * When the next slice of a host is offered to the owner of the one before it: when half of that one is left. An owner
 * holds little that others could crawl, and has a next page when it needs one.
 */
export const nextDueAtMs = ({ dueAtMs, leftMs }: SliceDue, nextLeftMs: number): number =>
  Math.round(dueAtMs + (leftMs - nextLeftMs) * (1 - AHEAD));

const AHEAD = 0.5;

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

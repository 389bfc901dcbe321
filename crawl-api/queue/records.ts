/**
 * What the journal holds, in the order in which it happened. Replaying the records gives the state back
 * (queue-state.ts), so a killed process goes on where it was.
 */
import type { PartRef } from '../../shared/wire/callbacks.ts';
import type { Product } from '../../shared/domain/product.ts';
import type { ItemResult } from '../../shared/wire/part.ts';

export type JournalRecord =
  /** Chunks taken from the balancer, not ours yet. */
  | { t: 'offered'; chunk: string; products: Product[] }
  /** Chunks that are ours from now on. */
  | { t: 'granted'; chunks: string[] }
  /** Chunks that belong to somebody else. */
  | { t: 'dropped'; chunks: string[] }
  /** Orders in force: pace, deadline, and whether anything more will come. */
  | { t: 'ordered'; intervalMs: number; deadline: string; sealed: boolean; drain: boolean }
  /** Somebody on the box said stop; no order takes that back. */
  | { t: 'drained' }
  /** The request for product `n` was written at this wall-clock time (fractions of a millisecond kept). */
  | { t: 'started'; n: number; atMs: number }
  /** Failed once in a way that may go away: tried again at the end of the shard. */
  | { t: 'postponed'; result: ItemResult }
  /** The product's outcome. Results are numbered from 0 in the order of these records. */
  | { t: 'result'; result: ItemResult }
  /** Results with numbers in [from, to) make part `seq`. Written before the upload, so that every try has the same bytes. */
  | { t: 'cut'; seq: number; from: number; to: number }
  /** The part is in the bucket. */
  | { t: 'part'; part: PartRef }
  /** The main server has every part up to this one. */
  | { t: 'acked'; seq: number }
  /** The manifest, as text: no result comes after it, and every try stores the same bytes. */
  | { t: 'manifest'; text: string }
  /** The main server has confirmed the completion. */
  | { t: 'closed' }
  /** Records were lost to a damaged file: part numbers go on far above those that may have been used. */
  | { t: 'damaged' };

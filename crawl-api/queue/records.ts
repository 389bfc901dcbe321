/**
 * What the journal holds, in the order in which it happened. Replaying the records gives the state back
 * (queue-state.ts), so a killed process goes on where it was.
 */
import type { PartRef } from '../../shared/wire/callbacks.ts';
import type { Product } from '../../shared/domain/product.ts';
import type { RobotsPolicy } from '../../shared/domain/robots-matcher.ts';
import type { Evidence } from '../../shared/domain/verdict.ts';
import type { ItemResult } from '../../shared/wire/part.ts';

/** `started` of a page that is asked only to know whether the address is served. */
export const CANARY_PAGE = 0;

/** Why the address sends no request; `untilMs` is null as long as only the main server can end it. */
export interface AddressIncident {
  verdict: 'suspect' | 'banned';
  sinceMs: number;
  untilMs: number | null;
  evidence: Evidence;
}

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
  /** robots.txt to follow. */
  | { t: 'robots'; policy: RobotsPolicy }
  /** A request for product `n`, or KNOWN_PAGE, was written at this wall-clock time (fractions of a millisecond kept). */
  | { t: 'started'; n: number; atMs: number; browser?: true }
  /** The request was broken off on purpose: nothing is known about the product, and it did no harm. */
  | { t: 'broken-off' }
  /** The process died while product `n` was under way: it goes to the end. */
  | { t: 'died'; n: number }
  /** Failed once in a way that may go away: tried again at the end of the shard. */
  | { t: 'postponed'; result: ItemResult }
  /** The site asked for a pause until then; the product is tried again after it. */
  | { t: 'paused'; n: number; untilMs: number }
  /** A result that stands only when the address is proven fine. */
  | { t: 'held'; result: ItemResult }
  /** A page was right at this time: what was held stands. */
  | { t: 'proved'; atMs: number }
  /** Nothing can prove the held results, or nothing has to: they stand. */
  | { t: 'accepted' }
  /** The address sends no request until the incident is over. A ban makes held products pending again. */
  | { t: 'incident'; incident: AddressIncident }
  | { t: 'reopened' }
  /** A banned instance has given back what it has not crawled. */
  | { t: 'released' }
  /** Chunks given back untouched, because the main server wants them: never crawled here after this record. */
  | { t: 'transferred'; chunks: string[] }
  /** The main server knows of these: they need not be told any more. */
  | { t: 'taken'; chunks: string[] }
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

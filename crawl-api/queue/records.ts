/**
 * The records of the journal, in the order in which they happened. Replaying them rebuilds the state (queue-state.ts),
 * so a killed process resumes where it was.
 */
import type { HostOrder, Orders, PartRef } from '../../shared/wire/callbacks.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { Product } from '../../shared/domain/product.ts';
import type { RobotsPolicy } from '../../shared/domain/robots-matcher.ts';
import type { Evidence } from '../../shared/domain/verdict.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { ClockReading, LogRef, Purpose } from '../../shared/wire/request-log.ts';

/** `started` of a page that is fetched only to check whether the site serves the address. */
export const CANARY_PAGE = 0;

/** A record of the first domain of the shop, as all are with a single one, does not name it. */
interface AtDomain {
  domain?: number;
}

export const atDomain = (domain: number): AtDomain => (domain === 0 ? {} : { domain });

/** Why the address sends no request; `untilMs` is null when only the main server can end it. */
export interface AddressIncident extends AtDomain {
  verdict: 'suspect' | 'banned';
  sinceMs: number;
  untilMs: number | null;
  evidence: Evidence;
}

/** What the main server knows of one of many hosts. */
export interface HostNote extends Pick<HostOrder, 'host' | 'delayMs' | 'paceMs' | 'refusals' | 'denied'> {
  /** No request before it, by the wall clock. */
  untilMs?: number;
}

/** What holds until the next heartbeat is answered. */
export type StandingOrders = Pick<Orders, 'intervalMs' | 'deadline' | 'pausedUntil' | 'sealed' | 'drain'>;

export type JournalRecord =
  /** A process began, at this time by the clock of all requests that it sends. */
  | { t: 'process'; atMs: number }
  /** The main server's clock, as a reply has shown it. */
  | ({ t: 'clock' } & ClockReading)
  /** Chunks offered through the load balancer, not owned yet. */
  | { t: 'offered'; chunk: string; products: Product[] }
  /** Chunks that this instance owns from now on. */
  | { t: 'granted'; chunks: string[] }
  /** Chunks that this instance does not own. */
  | { t: 'dropped'; chunks: string[] }
  /** Orders in force: pace, deadline, and whether more chunks may follow. */
  | ({ t: 'ordered' } & StandingOrders)
  /** A program on this machine asked to stop; no order reverses it. */
  | { t: 'drained' }
  | { t: 'robots'; policy: RobotsPolicy }
  /** Of many hosts: robots.txt of an origin was read at this wall-clock time. `movedTo`: that of another host holds. */
  | ({ t: 'origin-robots'; origin: string; policy: RobotsPolicy; atMs: number; movedTo?: string } & AtDomain)
  /** Of many hosts: what the main server knows of some of them. */
  | { t: 'host-notes'; notes: HostNote[] }
  /** One of many hosts has refused a page: after a second one it rests, whatever process asks for it. */
  | ({ t: 'refused' } & AtDomain)
  /** One of many hosts refuses this address: it rests, and its held products are pending again. */
  | ({ t: 'rested'; untilMs: number; evidence: Evidence } & AtDomain)
  /** One of many hosts is asked nothing more in this run: its products fail for that reason. */
  | ({ t: 'given-up'; reason: FailureReason; detail: string } & AtDomain)
  /**
   * A request for product `n`, or CANARY_PAGE, was sent at this wall-clock time (with fractions of a millisecond).
   * `beside`: requests to other domains may be under way. `host`: where it is not the domain's own. `what`: where it is
   * not the product's own page, or a canary page.
   */
  | ({
      t: 'started';
      n: number;
      atMs: number;
      browser?: true;
      beside?: true;
      host?: string;
      what?: Exclude<Purpose, 'product' | 'canary'>;
    } & AtDomain)
  /** The domain's request has ended: its status, or why there was none. Its page may still be at work. */
  | ({ t: 'answered'; atMs: number; answer: string } & AtDomain)
  /** The request was aborted on purpose: nothing is known about the product, and it did no harm. */
  | ({ t: 'broken-off' } & AtDomain)
  /** The process died while crawling product `n`: it goes to the end. */
  | { t: 'died'; n: number }
  /** The process died while several products were under way: each is tried again alone. */
  | { t: 'died-beside'; ns: number[] }
  /** A temporary failure: tried again at the end of the shard. */
  | { t: 'postponed'; result: ItemResult }
  /** The domain asked for a pause until then; the product is tried again after it. */
  | ({ t: 'paused'; n: number; untilMs: number } & AtDomain)
  /** A result that stands only once the address is proved served. */
  | { t: 'held'; result: ItemResult }
  /** A page of the domain was right at this time: its held results stand. */
  | ({ t: 'proved'; atMs: number } & AtDomain)
  /** The domain's held results stand: no proof is possible, or none is needed. */
  | ({ t: 'accepted' } & AtDomain)
  /** The address sends no request until the incident is over. A ban makes held products pending again. */
  | { t: 'incident'; incident: AddressIncident }
  | { t: 'reopened' }
  /** A banned instance has returned the products that it has not crawled. */
  | { t: 'released' }
  /** Chunks returned untouched by order of the main server: never crawled here after this record. */
  | { t: 'transferred'; chunks: string[] }
  /** The main server has confirmed these returned chunks: they need not be reported any more. */
  | { t: 'taken'; chunks: string[] }
  /** The product's outcome. Results are numbered from 0 in the order of these records. */
  | { t: 'result'; result: ItemResult }
  /** Results [from, to) make part `seq`. Written before the upload: every retry has the same bytes. */
  | { t: 'cut'; seq: number; from: number; to: number }
  | { t: 'part'; part: PartRef }
  /** The requests since the last such record make object `seq` of the request log. */
  | { t: 'log-cut'; seq: number }
  | { t: 'log'; log: LogRef }
  /** The main server has every part up to this one. */
  | { t: 'acked'; seq: number }
  /** The manifest, as text: no result follows it, and every retry stores the same bytes. */
  | { t: 'manifest'; text: string }
  | { t: 'closed' }
  /** Records were lost to a damaged file: part numbers continue far above those that may have been used. */
  | { t: 'damaged' };

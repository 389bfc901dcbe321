/** The shop as a modelled instance meets it, and the instance as the shop does. */
import type { Product } from '../../../../shared/domain/product.ts';
import type { RobotsPolicy } from '../../../../shared/domain/robots-matcher.ts';
import type { Incident } from '../../../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../../../shared/wire/part.ts';

/**
 * How the shop treats a request. `ban`: refused beyond doubt; `odd`: canary pages are unreadable too; `down`: a
 * server error.
 */
export type Treatment = 'fine' | 'ban' | 'odd' | 'down';

/** Why an instance has stopped crawling; `untilMs` is null when only the main server can end it. */
export interface OwnIncident {
  verdict: Incident['verdict'];
  rule: string;
  domain: number;
  atMs: number;
  untilMs: number | null;
}

/** An instance that sends requests. */
export interface Visitor {
  readonly slot: number;
  readonly epoch: number;
  readonly address: string;
  /** The rules that it knows; null before the first. */
  readonly robots: RobotsPolicy | null;
  readonly incident: OwnIncident | null;
  /** When it last followed orders; -Infinity before the first. */
  readonly orderedAtMs: number;
  /** The time from the request to its page, where the site does not say. */
  readonly pageMs: number;
  /** How many times longer its products take than the site says. */
  readonly slowness: number;
}

export interface Site {
  treat(instance: Visitor, product: Product): Treatment;
  /** What becomes of a product whose page is right. */
  result(product: Product, instance: Visitor): ItemResult;
  /** Sees every request, also one whose page never comes. */
  onRequest(instance: Visitor, product: Product): void;
  /** Omitted: it is one site. */
  manyHosts?: ManyHosts;
  /** The least time from one product to the next, and from the request to its result, for the products of a chunk. */
  pace(products: number): Pace;
}

/** The many hosts of a run, as its instances meet them. */
export interface ManyHosts {
  /** The host never answers. */
  isSilent(host: string): boolean;
  /** The requests that a record takes, with redirects and further pages; omitted: one. */
  requestsOf?(record: Product): number;
  /** Sees every request to a host, for a page or for its robots.txt. */
  onRequest(instance: Visitor, host: string): void;
  /** What hosts ask for themselves; omitted: nothing. */
  wishes?: HostsWishes;
}

/** How hosts that ask for more than the pace of the run want to be treated. Milliseconds. */
export interface HostsWishes {
  /** The Crawl-delay in its robots.txt; 0 without one. */
  delayMs(host: string): number;
  /** How long it wants no request, as it answers one for a page (Retry-After); 0: it gives the page. */
  restMs(host: string): number;
  /** The instance has learned that the host wants this gap, and no request before that time. */
  onLearned(instance: Visitor, host: string, wish: { delayMs: number; untilMs: number }): void;
}

export interface Pace {
  gapMs: number;
  pageMs: number;
}

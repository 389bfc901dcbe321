/** The deterministic sums of a plan: how long a fleet of n takes when everything takes its usual time. */
import {
  busiestDomain,
  type DomainPace,
  meanSpacingMs,
  ONE_DOMAIN,
  pageShare,
} from '../../../shared/domain/domains.ts';
import { easingMs, plannedSpacingMs } from '../../../shared/domain/pacing.ts';
import { chunkSize, MAX_CHUNK } from '../../../shared/domain/sharing.ts';
import { costOfRecord, type HostsPlan } from './host-sums.ts';
import type { PlanInput } from './plan.ts';
import { rotationCostMs, rotationsDuring } from './address-rotation.ts';

/** Milliseconds between RunInstances calls that EC2 allows an account once its burst is used up. */
const LAUNCH_GAP_MS = 500;

/** Parsing and the journal, on top of a page's own time. */
export const PAGE_OVERHEAD_MS = 5;

/**
 * The longest time until the first byte of a page that is rendered; it is read long after that, and the pace counts
 * from it.
 */
const RENDERED_ANSWER_MS = 500;

/** What does not depend on the number of instances. */
export interface Work {
  products: number;
  /** Requests of a product. */
  requestsEach: number;
  /** The interval as configured, or longer if the rate ceiling of the fleet is below one instance's rate. */
  intervalMs: number;
  domains: readonly DomainPace[];
  /** The domain that decides how long an instance takes. */
  busiest: DomainPace;
  /** The part of a page's time for which it delays the next request, over all domains: 1 with one page at a time. */
  pageShare: number;
  /** The time from the start of one request to the start of the next, over all domains. */
  requestMs: number;
  /** The same at the least, were pages there at once. */
  leastMs: number;
  /** Time per product beside its requests. */
  extraMs: number;
  /** The domain with most products decides it, not the places for pages, which any domain may use. */
  isDomainBound: boolean;
  /** Time per product: its requests, one after the other. */
  paceMs: number;
  /** Time of an instance's last product: no interval after its last page. */
  lastMs: number;
  /** The interval that an address begins at twice, times the requests of a product; 0 where it does not. */
  easedMs: number;
  /** Of many hosts the time that the longest one takes, whatever the number of instances; 0 for one site. */
  longestMs: number;
}

/** The sums of one site, or of many hosts: all that a plan says follows from them. */
export const workOf = (input: PlanInput): Work =>
  input.hosts === undefined ? siteWork(input) : hostsWork(input, input.hosts);

/** A place of an instance is what a request takes: hosts whose pace is longer take turns in it. */
function hostsWork({ products, intervalMs, pageP50Ms, pagesAtOnce = 1 }: PlanInput, hosts: HostsPlan): Work {
  const { requestsEach, deadMs } = costOfRecord(hosts);
  const pageMs = pageP50Ms + PAGE_OVERHEAD_MS;
  const requestMs = pageMs / pagesAtOnce;
  const extraMs = deadMs / pagesAtOnce;
  return {
    products,
    requestsEach,
    intervalMs,
    domains: ONE_DOMAIN,
    busiest: busiestDomain(ONE_DOMAIN, intervalMs),
    pageShare: 1 / pagesAtOnce,
    requestMs,
    leastMs: 0,
    extraMs,
    isDomainBound: false,
    paceMs: requestMs * requestsEach + extraMs,
    lastMs: pageMs,
    easedMs: 0,
    longestMs: hosts.longestMs,
  };
}

function siteWork(input: PlanInput): Work {
  const { maxRatePerSecond: rate, intervalMs: wanted, pageP50Ms, pagesEach, browser } = input;
  const { domains = ONE_DOMAIN, pagesAtOnce = 1 } = input;
  const isEased = input.bannedLately !== undefined;
  const intervalMs = rate === null ? wanted : Math.max(wanted, (domains.length * 1_000) / rate);
  const pageMs = pageP50Ms + PAGE_OVERHEAD_MS;
  const answerMs = browser ? Math.min(pageP50Ms, RENDERED_ANSWER_MS) : pageP50Ms;
  const spacingOf = (ms: number): number => plannedSpacingMs(ms, answerMs);
  const busiest = busiestDomain(domains, intervalMs);
  const share = pageShare(domains, pagesAtOnce);
  const domainMs = Math.max(meanSpacingMs(domains, intervalMs, spacingOf), busiest.share * pageMs);
  const requestMs = Math.max(domainMs, share * pageMs);
  // The pages of one product are all at one domain.
  const pageSpacingMs = Math.max(spacingOf(Math.max(intervalMs, busiest.delayMs)), pageMs);
  return {
    products: input.products,
    requestsEach: pagesEach,
    intervalMs,
    domains,
    busiest,
    pageShare: share,
    requestMs,
    leastMs: requestMs,
    extraMs: 0,
    isDomainBound: domainMs >= requestMs,
    paceMs: requestMs * pagesEach,
    lastMs: pageSpacingMs * (pagesEach - 1) + pageMs,
    easedMs: isEased ? Math.max(intervalMs, busiest.delayMs) * pagesEach : 0,
    longestMs: 0,
  };
}

/** How the products are divided among n instances, and the most that one of them gets. */
export interface Share {
  chunkSize: number;
  chunks: number;
  each: number;
}

/** @param largest maximum products in a chunk: `largestChunk` of the run */
export function shareOf(products: number, instances: number, largest = MAX_CHUNK): Share {
  const size = Math.min(largest, chunkSize(products, instances));
  const chunks = Math.ceil(products / size);
  return { chunkSize: size, chunks, each: Math.min(products, Math.ceil(chunks / Math.max(1, instances)) * size) };
}

/** Time of the last of n launch calls, after the start of the run. */
export const lastLaunchMs = (instances: number): number => Math.max(0, instances - 1) * LAUNCH_GAP_MS;

/**
 * The launch calls, or the load balancer's start if that outlasts the calls and a slow boot; a slow boot is added to
 * it.
 */
export const rampMs = (input: PlanInput, instances: number): number =>
  Math.max(lastLaunchMs(instances), input.balancerMs - input.bootP95Ms);

/** When the last instance gets its first products. */
const startMs = (input: PlanInput, instances: number): number => rampMs(input, instances) + input.bootP95Ms;

/** How long one instance needs for its products. */
export const crawlMs = (work: Work, products: number): number =>
  products <= 0 ? 0 : (products - 1) * work.paceMs + work.lastMs + easingMs(work.easedMs, products);

/** Products that the last of n instances can crawl in the time between start and tail. */
export function capacityOf(input: PlanInput, work: Work, instances: number): number {
  const windowMs = input.deadlineMs - startMs(input, instances) - input.tailMs;
  const crawlableMs = windowMs - lostToRotationsIn(input, windowMs, instances);
  if (crawlableMs < work.lastMs) return 0;
  let products = 1 + Math.floor((crawlableMs - work.lastMs) / work.paceMs);
  while (work.easedMs > 0 && crawlMs(work, products) > crawlableMs) products--;
  return products;
}

/** When n instances finish if everything takes its usual time and boots are slow. */
export function plannedEndMs(input: PlanInput, work: Work, instances: number): number {
  const crawl = crawlMs(work, shareOf(work.products, instances, largestChunk(input, work)).each);
  const longMs = Math.max(crawl + lostToRotation(input, crawl, instances), work.longestMs);
  return startMs(input, instances) + longMs + input.tailMs;
}

/** Address rotations that an instance needs during this much crawling. */
export function rotationsFor(input: PlanInput, crawl: number, instances: number): number {
  const everyMs = input.recycleEveryMs ?? null;
  const costMs = rotationCostMs(input.bootP95Ms, input.tailMs);
  return everyMs === null ? 0 : rotationsDuring(crawl, { everyMs, costMs, instances });
}

/**
 * Time those rotations take, in which nothing is crawled. One more is counted because shares end up uneven: a rotated
 * slot continues with whatever waits, so the last chunk may end that much later.
 */
export function lostToRotation(input: PlanInput, crawl: number, instances: number): number {
  const count = rotationsFor(input, crawl, instances);
  return count === 0 ? 0 : (count + 1) * rotationCostMs(input.bootP95Ms, input.tailMs);
}

/** The most that a chunk of many hosts takes an instance; of a short run as much less as its limits are shorter. */
const MOST_CHUNK_MS = 120_000;
const CHUNK_OF_WINDOW = 1 / 120;

/**
 * The largest chunk; with address rotation, one that lasts no longer than a rotation takes: what a rotation cuts short
 * is made up for quickly. Of many hosts one of some minutes, because instances take what they have time for.
 */
export function largestChunk(input: PlanInput, work: Pick<Work, 'paceMs'>): number {
  if (input.hosts !== undefined) {
    const chunkMs = Math.min(MOST_CHUNK_MS, input.deadlineMs * CHUNK_OF_WINDOW);
    return Math.min(MAX_CHUNK, Math.max(1, Math.floor(chunkMs / work.paceMs)));
  }
  if ((input.recycleEveryMs ?? null) === null) return MAX_CHUNK;
  return Math.min(MAX_CHUNK, Math.max(1, Math.floor(rotationCostMs(input.bootP95Ms, input.tailMs) / work.paceMs)));
}

/** The inverse: how much of a window is lost to rotations when the rest of it is crawled. */
function lostToRotationsIn(input: PlanInput, windowMs: number, instances: number): number {
  const costMs = rotationCostMs(input.bootP95Ms, input.tailMs);
  let lostMs = 0;
  while (lostMs < windowMs && lostToRotation(input, windowMs - lostMs, instances) > lostMs) lostMs += costMs;
  return lostMs;
}

/**
 * Fewer instances cannot do it, however fast they boot. Of one site however fast its pages are: the busiest domain
 * decides; of many hosts at the usual page time.
 */
export function lowerBound(work: Work, pagesEach: number, deadlineMs: number): number {
  const { products, intervalMs, busiest } = work;
  if (products === 0) return 0;
  if (work.longestMs > 0) return Math.max(1, Math.ceil((products * work.paceMs) / deadlineMs));
  const productMs = Math.max(intervalMs, busiest.delayMs) * pagesEach;
  if (productMs <= 0) return 1;
  const busiestProducts = Math.round(products * busiest.share);
  return Math.max(1, Math.ceil(busiestProducts / (1 + Math.floor(Math.max(0, deadlineMs) / productMs))));
}

/** The sums of a plan that know no chance: how long a fleet of n takes when everything goes as it usually does. */
import { plannedSpacingMs } from '../../shared/domain/pacing.ts';
import { chunkSize, MAX_CHUNK } from '../../shared/domain/sharing.ts';
import type { PlanInput } from './plan.ts';
import { rotationCostMs, rotationsDuring } from './address-rotation.ts';

/** RunInstances calls a second that EC2 lets an account make once its burst is used up. */
const LAUNCH_GAP_MS = 500;

/** Parsing and the journal, on top of a page's own time. */
export const PAGE_OVERHEAD_MS = 5;

/** What does not depend on the number of instances. */
export interface Work {
  products: number;
  /** As configured, or longer where the ceiling of the fleet is below one instance's rate. */
  intervalMs: number;
  /** From the start of one request to that of the next. */
  requestMs: number;
  /** What one product takes: its requests, one after the other. */
  paceMs: number;
  /** The last product of an instance: no interval after its last page. */
  lastMs: number;
}

export function workOf(input: PlanInput): Work {
  const { maxRatePerSecond: rate, intervalMs: wanted, pageP50Ms, pagesEach } = input;
  const intervalMs = rate === null ? wanted : Math.max(wanted, 1_000 / rate);
  const pageMs = pageP50Ms + PAGE_OVERHEAD_MS;
  const requestMs = Math.max(plannedSpacingMs(intervalMs, pageP50Ms), pageMs);
  return {
    products: input.products,
    intervalMs,
    requestMs,
    paceMs: requestMs * pagesEach,
    lastMs: requestMs * (pagesEach - 1) + pageMs,
  };
}

/** How the products are cut for n instances, and the most that one of them gets. */
export interface Share {
  chunkSize: number;
  chunks: number;
  each: number;
}

/** @param largest most products in a chunk: `largestChunk` of the run */
export function shareOf(products: number, instances: number, largest = MAX_CHUNK): Share {
  const size = Math.min(largest, chunkSize(products, instances));
  const chunks = Math.ceil(products / size);
  return { chunkSize: size, chunks, each: Math.min(products, Math.ceil(chunks / Math.max(1, instances)) * size) };
}

/** When the last of n launch calls is made, after the start of the run. */
export const lastLaunchMs = (instances: number): number => Math.max(0, instances - 1) * LAUNCH_GAP_MS;

/** Launch calls, or the balancer's start where that outlasts the calls and a slow boot; a slow boot comes on top. */
export const rampMs = (input: PlanInput, instances: number): number =>
  Math.max(lastLaunchMs(instances), input.balancerMs - input.bootP95Ms);

/** When the last instance has its first products. */
export const startMs = (input: PlanInput, instances: number): number => rampMs(input, instances) + input.bootP95Ms;

/** How long one instance takes for its products. */
export const crawlMs = (work: Work, products: number): number =>
  products <= 0 ? 0 : (products - 1) * work.paceMs + work.lastMs;

/** Products that the last of n instances can crawl in what the start and the tail leave of the time. */
export function capacityOf(input: PlanInput, work: Work, instances: number): number {
  const windowMs = input.deadlineMs - startMs(input, instances) - input.tailMs;
  const crawlableMs = windowMs - lostToRenewalsIn(input, windowMs, instances);
  return crawlableMs < work.lastMs ? 0 : 1 + Math.floor((crawlableMs - work.lastMs) / work.paceMs);
}

/** When n instances are through, all going as it usually does and boots slowly. */
export function plannedEndMs(input: PlanInput, work: Work, instances: number): number {
  const crawl = crawlMs(work, shareOf(work.products, instances, largestChunk(input, work)).each);
  return startMs(input, instances) + crawl + lostToRotation(input, crawl, instances) + input.tailMs;
}

/** Rotations of its address that an instance needs for so much crawling. */
export function rotationsFor(input: PlanInput, crawl: number, instances: number): number {
  const everyMs = input.recycleEveryMs ?? null;
  const costMs = rotationCostMs(input.bootP95Ms, input.tailMs);
  return everyMs === null ? 0 : rotationsDuring(crawl, { everyMs, costMs, instances });
}

/**
 * What they take, in which nothing is crawled. One more is counted for shares that are not even any more: a rotated slot goes on
 * with whatever waits, so the last chunk of all may end that much later.
 */
export function lostToRotation(input: PlanInput, crawl: number, instances: number): number {
  const count = rotationsFor(input, crawl, instances);
  return count === 0 ? 0 : (count + 1) * rotationCostMs(input.bootP95Ms, input.tailMs);
}

/** Where addresses are rotated, a chunk is crawled within what a rotation takes: what is cut short there is soon made up for. */
export function largestChunk(input: PlanInput, work: Pick<Work, 'paceMs'>): number {
  if ((input.recycleEveryMs ?? null) === null) return MAX_CHUNK;
  return Math.min(MAX_CHUNK, Math.max(1, Math.floor(rotationCostMs(input.bootP95Ms, input.tailMs) / work.paceMs)));
}

/** The same from the other side: how much of a window is lost, when the rest of it is crawled. */
function lostToRenewalsIn(input: PlanInput, windowMs: number, instances: number): number {
  const costMs = rotationCostMs(input.bootP95Ms, input.tailMs);
  let lostMs = 0;
  while (lostMs < windowMs && lostToRotation(input, windowMs - lostMs, instances) > lostMs) lostMs += costMs;
  return lostMs;
}

/** Fewer instances cannot do it, however fast they boot and however quick the pages are. */
export function lowerBound(products: number, intervalMs: number, deadlineMs: number): number {
  if (products === 0) return 0;
  if (intervalMs <= 0) return 1;
  return Math.ceil(products / (1 + Math.floor(Math.max(0, deadlineMs) / intervalMs)));
}

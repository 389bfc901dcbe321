/** The sums of a plan that know no chance: how long a fleet of n takes when everything goes as it usually does. */
import { nextStartMs } from '../../shared/domain/pacing.ts';
import { chunkSize } from '../../shared/domain/sharing.ts';
import type { PlanInput } from './plan.ts';

/** RunInstances calls a second that EC2 lets an account make once its burst is used up. */
const LAUNCH_GAP_MS = 500;

/** Parsing and the journal, on top of a page's own time. */
export const PAGE_OVERHEAD_MS = 5;

/** What does not depend on the number of instances. */
export interface Work {
  products: number;
  /** As configured, or longer where the ceiling of the fleet is below one instance's rate. */
  intervalMs: number;
  paceMs: number;
  /** The last product of an instance takes only its page, no interval after it. */
  lastMs: number;
}

export function workOf(input: PlanInput): Work {
  const { maxRatePerSecond: rate, intervalMs: wanted, pageP50Ms } = input;
  const intervalMs = rate === null ? wanted : Math.max(wanted, 1_000 / rate);
  const lastMs = pageP50Ms + PAGE_OVERHEAD_MS;
  return {
    products: input.products,
    intervalMs,
    paceMs: Math.max(nextStartMs(0, pageP50Ms, intervalMs), lastMs),
    lastMs,
  };
}

/** How the products are cut for n instances, and the most that one of them gets. */
export interface Share {
  chunkSize: number;
  chunks: number;
  each: number;
}

export function shareOf(products: number, instances: number): Share {
  const size = chunkSize(products, instances);
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
  return windowMs < work.lastMs ? 0 : 1 + Math.floor((windowMs - work.lastMs) / work.paceMs);
}

/** When n instances are through, all going as it usually does and boots slowly. */
export const plannedEndMs = (input: PlanInput, work: Work, instances: number): number =>
  startMs(input, instances) + crawlMs(work, shareOf(work.products, instances).each) + input.tailMs;

/** Fewer instances cannot do it, however fast they boot and however quick the pages are. */
export function lowerBound(products: number, intervalMs: number, deadlineMs: number): number {
  if (products === 0) return 0;
  if (intervalMs <= 0) return 1;
  return Math.ceil(products / (1 + Math.floor(Math.max(0, deadlineMs) / intervalMs)));
}

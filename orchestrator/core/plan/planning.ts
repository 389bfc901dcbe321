/**
 * What every step of planning shares: the input with its sums, probability model, type and prices, and the search for a
 * fleet.
 */
import { limitsFor } from '../../../shared/domain/limits.ts';
import { type Day, FinishModel } from './finish-model.ts';
import { rotationsFor, type Work, workOf, capacityOf, largestChunk, plannedEndMs, shareOf } from './fleet-sums.ts';
import { chooseInstanceType, type InstanceType } from './instance-types.ts';
import type { CostBreakdown, PlanInput, RegionShare } from './plan.ts';
import { hourlyPrice } from './price-table.ts';
import { estimateCost, requestsOf, sumOf } from './prices.ts';
import { type Placed, spread } from './spread.ts';

export interface Planning {
  input: PlanInput;
  work: Work;
  model: FinishModel;
  type: InstanceType;
  /** Expected price of n instances; `endMs`: when half of such runs have ended, where that is known already. */
  priceOf(instances: number, endMs?: number): CostBreakdown;
  /** How n instances are divided among the regions, and the expected price of each part. */
  sharesOf(instances: number): RegionShare[];
  /** The price if every instance lasts until the deadline plus grace: the most that launching n may cost. */
  worstPriceOf(instances: number): CostBreakdown;
  /** The same with other input, on the same simulated days. */
  with(change: Partial<PlanInput>): Planning;
}

/** A rotating machine is billed beside its successor until EC2 has terminated it. */
const RENEWAL_OVERLAP_MS = 120_000;

export function prepare(input: PlanInput, days: readonly Day[]): Planning {
  const work = workOf(input);
  const model = new FinishModel(input, work, days);
  // Where instances run: the bucket may be in a region of which no prices were asked.
  const place = input.regions?.[0] ?? input;
  const type = chooseInstanceType(input.instanceTypes, place.region, input.memoryGb, input.prices);
  const { partMs } = limitsFor(input.deadlineMs);
  const priceIn = ({ region, instances }: Placed, share: number, lifeMs: number, balancerMs: number): CostBreakdown => {
    const products = Math.ceil(input.products * share);
    return estimateCost({
      ...input,
      region,
      bucketRegion: input.region,
      products,
      instanceType: type.name,
      instances,
      lifeMs,
      balancerMs: instances === 0 ? 0 : balancerMs,
      // No part is empty, so there are at most as many as products.
      ...requestsOf(instances, Math.min(products, instances * Math.ceil(lifeMs / partMs))),
    });
  };
  const placesOf = (instances: number): Placed[] => {
    if (input.regions === undefined || instances === 0) return [{ region: input.region, instances }];
    const priceOf = (region: string): number => hourlyPrice(region, type.name, input.prices).usd;
    return spread(input.regions, instances, { vcpus: type.vcpus, priceOf });
  };
  const pricesIn = (instances: number, lifeMs: number, balancerMs: number): CostBreakdown[] =>
    placesOf(instances).map((place) => {
      const share = instances === 0 ? 0 : place.instances / instances;
      return priceIn(place, share, lifeMs, balancerMs);
    });
  const expected = (n: number, endMs = n === 0 ? 0 : model.endMs(0.5, n)): CostBreakdown[] =>
    pricesIn(n, n === 0 ? 0 : model.meanLifeMs(n), endMs);
  const latestMs = input.deadlineMs + input.graceMs;
  return {
    input,
    work,
    model,
    type,
    priceOf: (n, endMs) => sumOf(expected(n, endMs)),
    sharesOf(n) {
      const costs = expected(n);
      return placesOf(n).map(({ region, instances }, i) => ({
        region,
        instances,
        vcpus: instances * type.vcpus,
        vcpuQuota: input.regions?.find((r) => r.region === region)?.vcpuQuota ?? null,
        cost: costs[i]!.total,
      }));
    },
    worstPriceOf: (n) =>
      sumOf(pricesIn(n, latestMs + rotationsFor(input, input.deadlineMs, n) * RENEWAL_OVERLAP_MS, latestMs)),
    with: (change) => prepare({ ...input, ...change }, days),
  };
}

/** On-time probability that a plan aims at. */
export const TARGET_CHANCE = 0.999;
/** Probability it accepts, with a warning, when the limits or the launch rate leave no room for the reserve. */
const LEAST_CHANCE = 0.95;
/** Fleets evaluated before the search gives up: each takes well under a millisecond. */
const MAX_TRIES = 1_000;

export interface Fleet {
  instances: number;
  chance: number;
}

/**
 * The smallest fleet within [from, to] that meets the target; else the most probable acceptable one; else null. Goes up
 * one by one, because the probability is not quite monotone: chunks make steps, and every launch costs half a second.
 */
export function smallestFleet({ input, work, model }: Planning, from: number, to: number): Fleet | null {
  const room = capacityOf(input, work, 1);
  if (room === 0) return null;
  let best: Fleet | null = null;
  let lastEach = Infinity;
  let tries = 0;
  for (let n = Math.max(1, from, Math.ceil(input.products / room)); n <= to && tries < MAX_TRIES; n++) {
    const capacity = capacityOf(input, work, n);
    if (capacity === 0) break;
    const { each } = shareOf(input.products, n, largestChunk(input, work));
    // The same load per instance with one more launch cannot be better.
    if (each > capacity || each === lastEach) continue;
    lastEach = each;
    tries++;
    const chance = model.chanceBy(input.deadlineMs, n, LEAST_CHANCE);
    if (chance >= TARGET_CHANCE) return { instances: n, chance };
    if (chance >= LEAST_CHANCE && chance > (best?.chance ?? 0)) best = { instances: n, chance };
  }
  return best;
}

/** The number of instances in [1, most] that finishes first: more of them share the work but take longer to launch. */
export function fastestFleet({ input, work }: Planning, most: number): number {
  let best = 1;
  let bestMs = Infinity;
  for (let n = 1; n <= Math.min(most, input.products); n++) {
    const endMs = plannedEndMs(input, work, n);
    if (endMs < bestMs) [best, bestMs] = [n, endMs];
  }
  return best;
}

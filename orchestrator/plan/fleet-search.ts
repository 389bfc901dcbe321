/** Searches for the number of instances: the smallest that meets the deadline, and the fastest overall. */
import { capacityOf, largestChunk, plannedEndMs, shareOf } from './fleet-sums.ts';
import type { Planning } from './planning.ts';

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

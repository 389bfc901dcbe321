/** Explains why a plan does not fit, when the work could be done within the same limits, and what would make room. */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { allowedBy, type Ceiling, ceilings } from './ceilings.ts';
import { fastestFleet, smallestFleet, TARGET_CHANCE, type Planning } from './planning.ts';
import { plannedEndMs } from './fleet-sums.ts';
import type { Plan } from './plan.ts';
import { asFlag, percent, plural, roundUp } from './wording.ts';

export type Judgement = Pick<Plan, 'verdict' | 'faults' | 'earliestEndMs' | 'remedies'>;

export const FEASIBLE: Judgement = { verdict: 'feasible', faults: [], earliestEndMs: null, remedies: [] };

/** @param needed instances needed without limits; null when more instances do not help either */
export function judgeInfeasible(planning: Planning, limits: readonly Ceiling[], needed: number | null): Judgement {
  const earliestEndMs = earliestEnd(planning);
  const moreTime = earliestEndMs === null ? [] : [`--deadline ${asFlag(earliestEndMs)}`];
  if (needed === null) {
    return { verdict: 'infeasible', faults: [tooShort(planning)], earliestEndMs, remedies: moreTime };
  }
  const tooFew = limits.filter((c) => c.instances < needed);
  // A max_rate below one instance's own rate still allows that one, at a longer interval: then the rate is what does
  // not fit.
  const broken = tooFew.length > 0 ? tooFew : limits.filter((c) => c.key === 'site.max_rate');
  const order = ['infeasible', 'over-quota', 'over-budget'] as const;
  return {
    verdict: order.find((v) => broken.some((c) => c.verdict === v)) ?? 'infeasible',
    faults: broken.map((c) => c.fault(needed)),
    earliestEndMs,
    // Either more time, or all of the broken limits raised together.
    remedies: [...moreTime, broken.map((c) => c.remedy(needed)).join(' and ')],
  };
}

function tooShort(planning: Planning): string {
  const { input, work, model } = planning.with({ maxRatePerSecond: null });
  const n = fastestFleet(planning, Math.min(input.products, input.maxInstances));
  const endMs = plannedEndMs(input, work, n);
  if (endMs > input.deadlineMs) {
    return `No allowed number of instances can be done in ${formatDuration(input.deadlineMs)}: with ${plural(n, 'instance')}, the quickest, starting, crawling and loading takes ${formatDuration(roundUp(endMs))}.`;
  }
  return `Booting is too uncertain for ${formatDuration(input.deadlineMs)}: with ${plural(n, 'instance')}, the best number, only ${percent(model.chanceBy(input.deadlineMs, n))} of runs are on time.`;
}

/** Factor between the deadlines tried when the budget must fit too; and how many are tried. */
const STEP = 1.15;
const STEPS = 40;

/** The first deadline that the same limits allow, rounded up; null when there is none. */
function earliestEnd(planning: Planning): number | null {
  const { input } = planning;
  const allowed = allowedBy(
    planning,
    ceilings(planning).filter((c) => c.key !== 'run.max_cost'),
  );
  if (allowed < 1) return null;
  const n = fastestFleet(planning, allowed);
  const exactMs = Math.max(plannedEndMs(input, planning.work, n), planning.model.endMs(TARGET_CHANCE, n));
  const soonestMs = roundUp(exactMs);
  if (input.maxCost === null || fitsBy(planning, soonestMs)) return soonestMs;
  return soonestAffordable(planning, soonestMs);
}

/**
 * The first deadline that fits a budget, with which the fastest fleet may be too expensive while a smaller, slower one
 * is not. The price falls with time until the load balancer's hours outweigh what fewer boots save, so going up in
 * steps finds it.
 */
function soonestAffordable(planning: Planning, fromMs: number): number | null {
  const { input, work, model } = planning;
  // The cost of one instance without a deadline: no deadline makes the run cheaper than its hours of crawling.
  const hours = planning.with({ deadlineMs: Math.max(1, work.products * work.paceMs), graceMs: 0 }).worstPriceOf(1);
  if (hours.instances + (hours.credits ?? 0) + hours.ipv4 + hours.ebs > input.maxCost! || model.endMs(0.5, 1) < fromMs)
    return null;
  let lowMs = fromMs;
  let highMs = fromMs * STEP;
  for (let step = 0; !fitsBy(planning, highMs); step++) {
    if (step === STEPS) return null;
    lowMs = highMs;
    highMs *= STEP;
  }
  for (let i = 0; i < 8; i++) {
    const middleMs = (lowMs + highMs) / 2;
    if (fitsBy(planning, middleMs)) highMs = middleMs;
    else lowMs = middleMs;
  }
  return roundUp(highMs);
}

function fitsBy(planning: Planning, deadlineMs: number): boolean {
  const later = planning.with({ deadlineMs });
  return smallestFleet(later, 1, allowedBy(later, ceilings(later))) !== null;
}

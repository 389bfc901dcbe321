/**
 * Plans a run: the smallest fleet that finishes by the deadline 999 times in 1,000, within every limit, with its price;
 * or why there is none and what would help (docs/decisions/0001-planning.md). Pure: the same input and seed give the
 * same plan.
 */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { Random } from '../../../shared/ports/random.ts';
import { allowedBy, type Ceiling, ceilings } from './ceilings.ts';
import { drawDays } from './finish-model.ts';
import { fastestFleet, type Fleet, smallestFleet, TARGET_CHANCE, type Planning, prepare } from './planning.ts';
import { capacityOf, crawlMs, largestChunk, lowerBound, rampMs, rotationsFor, shareOf } from './fleet-sums.ts';
import type { HostPace } from './host-pace.ts';
import type { Plan, PlanInput } from './plan.ts';
import { rotationCostMs } from './address-rotation.ts';
import { hourlyPrice, servicePrices } from './price-table.ts';
import type { PlanRegion } from './spread.ts';
import { FEASIBLE, judgeInfeasible } from './verdict.ts';
import { percent } from './wording.ts';

/** The plan for this input. Never throws: an infeasible run comes back as a verdict with its reasons. */
export function planRun(input: PlanInput, random: Random): Plan {
  const planning = prepare(input, drawDays(random));
  if (input.products === 0) return { ...figures(planning, 0), ...FEASIBLE, warnings: priceWarnings(planning) };
  const limits = ceilings(planning);
  const allowed = allowedBy(planning, limits);
  const fleet = smallestFleet(planning, Math.min(input.minInstances, input.products, Math.max(1, allowed)), allowed);
  if (fleet !== null) {
    return {
      ...figures(planning, fleet.instances),
      ...FEASIBLE,
      warnings: [...fleetWarnings(planning, fleet, limits), ...priceWarnings(planning)],
    };
  }
  const needed = neededFleet(planning);
  return {
    ...figures(planning, fleetToShow(planning, limits, needed)),
    ...judgeInfeasible(planning, limits, needed),
    warnings: [...paceWarnings(planning), ...priceWarnings(planning)],
  };
}

/** The number of instances needed without limits; null when no number is enough. */
function neededFleet(planning: Planning): number | null {
  const { input } = planning;
  const free = planning.with({ maxRatePerSecond: null });
  return smallestFleet(free, Math.min(input.minInstances, input.products), input.products)?.instances ?? null;
}

/**
 * The fleet to show when nothing fits: what the deadline takes if only money stands in the way, else the fastest
 * allowed.
 */
function fleetToShow(planning: Planning, limits: readonly Ceiling[], needed: number | null): number {
  const allowed = allowedBy(
    planning,
    limits.filter((c) => c.key !== 'run.max_cost'),
  );
  return needed !== null && needed <= allowed ? needed : fastestFleet(planning, Math.max(1, allowed));
}

type Figures = Omit<Plan, 'verdict' | 'faults' | 'earliestEndMs' | 'remedies' | 'warnings'>;

function figures(planning: Planning, instances: number): Figures {
  const { input, work, model, type } = planning;
  const share = shareOf(input.products, instances, largestChunk(input, work));
  const none = instances === 0;
  const endP50Ms = none ? 0 : model.endMs(0.5, instances);
  return {
    products: input.products,
    instances,
    productsEach: none ? 0 : share.each,
    chunkSize: share.chunkSize,
    chunks: share.chunks,
    capacityEach: capacityOf(input, work, Math.max(1, instances)),
    intervalMs: work.intervalMs,
    ...domainsOf(planning),
    ...(input.hosts === undefined ? {} : { manyHosts: input.hosts }),
    ...(input.paces === undefined ? {} : { paces: input.paces.map((pace) => atLeast(pace, work.intervalMs)) }),
    ...(input.operatorPace === undefined ? {} : { operatorPace: input.operatorPace }),
    ...(input.bannedLately === undefined ? {} : { bannedLately: input.bannedLately }),
    paceMs: work.paceMs,
    deadlineMs: input.deadlineMs,
    bootP95Ms: input.bootP95Ms,
    rampMs: none ? 0 : rampMs(input, instances),
    endP50Ms,
    endP95Ms: none ? 0 : model.endMs(0.95, instances),
    onTimeProbability: none ? 1 : model.chanceBy(input.deadlineMs, instances),
    lowerBoundInstances: lowerBound(work, input.pagesEach, input.deadlineMs),
    instanceType: type.name,
    ...(input.regions === undefined ? {} : { regions: none ? [] : planning.sharesOf(instances) }),
    vcpus: instances * type.vcpus,
    vcpuQuota: input.regions === undefined ? input.vcpuQuota : sumOfQuotas(input.regions),
    ...(input.quota ? { quota: input.quota } : {}),
    cost: planning.priceOf(instances, endP50Ms),
    ...addressesOf(planning, instances),
    ...rotationOf(planning, instances),
    ...(input.prices ? { prices: input.prices } : {}),
  };
}

function domainsOf({ input, work }: Planning): Pick<Plan, 'domains'> {
  const count = work.domains.length;
  if (count === 1) return {};
  const pages = Math.min(count, input.pagesAtOnce ?? 1);
  return { domains: { count, busiestShare: work.busiest.share, ...(pages === 1 ? {} : { pages }) } };
}

/** One set in each region that has instances. */
function addressesOf(planning: Planning, instances: number): Pick<Plan, 'balancerAddresses'> {
  const { balancerAddresses = 0, ownBalancer = false, noBalancer = false } = planning.input;
  if (balancerAddresses === 0 || ownBalancer || noBalancer || instances === 0) return {};
  return { balancerAddresses: balancerAddresses * planning.sharesOf(instances).length };
}

const atLeast = (pace: HostPace, intervalMs: number): HostPace => ({
  ...pace,
  intervalMs: Math.max(intervalMs, pace.intervalMs),
});

/** The sum of the regions' quotas; null when one of them is unknown. */
const sumOfQuotas = (regions: readonly PlanRegion[]): number | null =>
  regions.reduce<number | null>(
    (sum, { vcpuQuota }) => (sum === null || vcpuQuota === null ? null : sum + vcpuQuota),
    0,
  );

function rotationOf({ input, work }: Planning, instances: number): Pick<Plan, 'renewals'> {
  const everyMs = input.recycleEveryMs ?? null;
  if (everyMs === null || instances === 0) return {};
  const each = rotationsFor(
    input,
    crawlMs(work, shareOf(input.products, instances, largestChunk(input, work)).each),
    instances,
  );
  return { renewals: { everyMs, each, costMs: rotationCostMs(input.bootP95Ms, input.tailMs) } };
}

function fleetWarnings(planning: Planning, fleet: Fleet, limits: readonly Ceiling[]): string[] {
  const { input } = planning;
  const list = [...paceWarnings(planning), ...memoryWarnings(planning)];
  const wanted = Math.min(input.minInstances, input.products);
  if (fleet.instances < wanted) {
    const limit = limits.find((c) => c.instances < wanted);
    list.push(`run.min_instances asks for ${wanted}, but ${limit?.key ?? 'a limit'} allows ${fleet.instances}.`);
  }
  if (fleet.chance < TARGET_CHANCE) {
    list.push(`There is no room for the full reserve: ${percent(fleet.chance)} of runs are on time instead of 99.9 %.`);
  }
  return list;
}

function paceWarnings({ input, work }: Planning): string[] {
  if (work.intervalMs <= input.intervalMs) return [];
  const interval = formatDuration(work.intervalMs);
  return [`site.max_rate is below one request per interval of one instance: the interval becomes ${interval}.`];
}

function memoryWarnings({ input, type }: Planning): string[] {
  if (type.memoryGb >= input.memoryGb) return [];
  return [
    `None of aws.instance_types has the ${input.memoryGb} GB that an instance needs (with a browser 2): ${type.name} has ${type.memoryGb} GB and may run out of memory.`,
  ];
}

function priceWarnings({ input, type }: Planning): string[] {
  const regions = input.regions?.map(({ region }) => region) ?? [input.region];
  return regions
    .flatMap((region) => [
      hourlyPrice(region, type.name, input.prices).warning,
      servicePrices(region, input.prices).warning,
    ])
    .filter((warning) => warning !== null);
}

/** What the run may still spend on launches. Pure; prices from plan/prices.ts. */
import type { FleetSnapshot } from '../model/fleet-snapshot.ts';
import type { LaunchBill, Pool } from '../model/launch-history.ts';
import { actualCost } from '../../plan/prices.ts';
import { LOSS_REASON } from '../model/loss-reason.ts';
import { drainAtMs, powerOffAtMs } from '../model/run-deadlines.ts';
import { billingTerms, regionsOf } from '../model/run-settings.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { isGivenUp } from '../model/instance-state.ts';

export interface Spending {
  /** USD for everything launched so far, if running instances and the balancer last until deadline + grace. */
  committed: number;
  /** USD for each further instance, from now until deadline + grace. */
  each: number;
  /** `run.max_cost`; null when there is none. */
  cap: number | null;
}

/** What is to be launched; by default the plan's type, in the cheapest region of the run. */
type Wanted = Partial<Pick<Pool, 'instanceType' | 'region'>>;

/** True when `n` further instances, alive until deadline + grace, keep the run within `run.max_cost`. */
export function canAfford(world: World, n = 1, wanted: Wanted = {}): boolean {
  const { committed, each, cap } = spendingOf(world, wanted);
  return cap === null || committed + n * each <= cap;
}

/** A rotated machine is billed along with its successor until EC2 has ended it; each start costs at least a minute. */
const OVERLAP_MS = 120_000;

/** How many addresses can be rotated within `run.max_cost`, besides the `underWay` ones; Infinity without a cap. */
export function canAffordRotation(world: World, underWay: number): number {
  const { committed, cap } = spendingOf(world);
  if (cap === null) return Infinity;
  const { run, nowMs } = world;
  const bill = { instanceType: run.plan.instanceType, launchedAtMs: nowMs, endedAtMs: nowMs + OVERLAP_MS };
  const each = fleetCost(run, [bill], nowMs);
  return Math.max(0, Math.floor((cap - committed) / each) - underWay);
}

/** The figures behind `canAfford`. */
export function spendingOf(world: World, wanted: Wanted = {}): Spending {
  const { run } = world;
  return {
    committed: fleetCost(run, billed(world.fleet), powerOffAtMs(run)) + balancerCost(run),
    each: oneMore(run, wanted, world.nowMs),
    cap: run.settings.run.maxCost,
  };
}

/**
 * True when the cap kept a slot empty although there was time to fill it: then the budget is the reason for products
 * left open. Computed from the rows for the moment when the slot became free, so that a restart comes to the same
 * answer.
 */
export function isShortOfMoney(world: World): boolean {
  const { run } = world;
  const cap = run.settings.run.maxCost;
  if (cap === null) return false;
  const latest = world.fleet.latest;
  for (let slot = 0; slot < run.plan.instances; slot++) {
    const record = latest.get(slot);
    const freeMs = record ? freeSinceMs(record) : run.startedAtMs;
    if (freeMs === null || freeMs + world.limits.bootMs >= drainAtMs(run)) continue;
    const then = billed(world.fleet, freeMs).filter((b) => b.launchedAtMs <= freeMs);
    const committed = fleetCost(run, then, powerOffAtMs(run)) + balancerCost(run);
    if (committed + oneMore(run, {}, freeMs) > cap) return true;
  }
  return false;
}

/** When a slot lost its last instance; null while it has one, or when it was given up because nothing was left for it. */
function freeSinceMs(record: InstanceRecord): number | null {
  if (!isGivenUp(record) || record.reason === null || record.reason === LOSS_REASON.notNeeded) return null;
  return record.terminatedAtMs ?? record.phaseAtMs;
}

/** The bills as they stood at a moment; by default as they stand now. */
const billed = ({ launches }: FleetSnapshot, atMs = Infinity): LaunchBill[] =>
  launches.bills.map((b) => (b.endedAtMs !== null && b.endedAtMs > atMs ? { ...b, endedAtMs: null } : b));

/** Without the balancer, which is billed anyway. */
function fleetCost(run: RunRecord, bills: readonly LaunchBill[], latestMs: number): number {
  if (bills.length === 0) return 0;
  const instances = bills.map((b) => ({ ...b, endedAtMs: b.endedAtMs ?? Math.max(latestMs, b.launchedAtMs) }));
  const cost = actualCost({ ...frame(run), instances });
  return cost.total - cost.balancer;
}

function oneMore(
  run: RunRecord,
  { instanceType = run.plan.instanceType, region }: Wanted,
  launchedAtMs: number,
): number {
  const regions = region === undefined ? regionsOf(run.settings.aws).map((each) => each.region) : [region];
  const endedAtMs = powerOffAtMs(run);
  const prices = regions.map((each) => {
    const bill = { region: each, instanceType, launchedAtMs, endedAtMs: Math.max(endedAtMs, launchedAtMs) };
    const { total, balancer, traffic = 0 } = actualCost({ ...frame(run), instances: [bill] });
    // Traffic grows with the products, not with the instances: `committed` has that of all products.
    return total - balancer - traffic;
  });
  return Math.min(...prices);
}

const balancerCost = (run: RunRecord): number => {
  const one = { instanceType: run.plan.instanceType, launchedAtMs: run.startedAtMs, endedAtMs: run.startedAtMs };
  const instances = run.plan.regions?.map(({ region }) => ({ ...one, region })) ?? [one];
  return actualCost({ ...frame(run), instances }).balancer;
};

const frame = (run: RunRecord) => ({
  region: run.settings.aws.region,
  ...billingTerms(run.settings),
  prices: run.plan.prices ?? null,
  startedAtMs: run.startedAtMs,
  finishedAtMs: powerOffAtMs(run),
  products: run.planned,
});

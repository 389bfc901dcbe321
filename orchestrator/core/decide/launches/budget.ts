/** What the run may still spend on launches. Pure; prices from core/plan/prices.ts. */
import type { FleetSnapshot } from '../../model/fleet-snapshot.ts';
import type { LaunchBill, Pool } from '../../model/launch-history.ts';
import { actualCost } from '../../plan/prices.ts';
import { LOSS_REASON } from '../../model/loss-reason.ts';
import { drainAtMs, powerOffAtMs } from '../../model/run-deadlines.ts';
import { billingTerms, regionsOf } from '../../model/run-settings.ts';
import type { InstanceRecord, RunRecord } from '../../model/stores.ts';
import type { Observed as World } from '../../model/world.ts';
import { isGivenUp } from '../../model/instance-state.ts';
import { homeOf, nextPool } from './pools.ts';

export interface Spending {
  /** USD for everything launched so far, if running instances and the balancers last until deadline + grace. */
  committed: number;
  /** USD that the further launch would add, from now until deadline + grace. */
  each: number;
  /** `run.max_cost`; null when there is none. */
  cap: number | null;
}

/** A further launch. A region without a load balancer gets one with its first launch. */
export type Wanted = Partial<Pick<Pool, 'instanceType' | 'region'>>;

/** True when the next launches of these slots, alive until deadline + grace, keep the run within `run.max_cost`. */
export function canAfford(world: World, ...slots: number[]): boolean {
  const cap = world.run.settings.run.maxCost;
  return cap === null || billWith(world, ...slots.map((slot) => nextLaunch(world, slot))) <= cap;
}

/** The slot's next launch, as far as its pool is known: else where the plan has it, of the plan's type. */
function nextLaunch(world: World, slot: number): Wanted {
  const next = nextPool(world, slot);
  return (next.kind === 'pool' && next.pool) || { region: homeOf(world, slot) };
}

/** A rotated machine is billed along with its successor until EC2 has ended it; each start costs at least a minute. */
const OVERLAP_MS = 120_000;

/** How many addresses can be rotated within `run.max_cost`, besides the `underWay` ones; Infinity without a cap. */
export function canAffordRotation(world: World, underWay: number): number {
  const { run, nowMs } = world;
  const cap = run.settings.run.maxCost;
  if (cap === null) return Infinity;
  const committed = billWith(world);
  const { instanceType } = run.plan;
  const each = Math.max(
    ...plannedRegions(run).map((region) => {
      const overlap = { region, instanceType, launchedAtMs: nowMs, endedAtMs: nowMs + OVERLAP_MS };
      return billOf(run, [...billed(world.fleet), overlap]) - committed;
    }),
  );
  return Math.max(0, Math.floor((cap - committed) / each) - underWay);
}

export function spendingOf(world: World, wanted: Wanted = {}): Spending {
  const committed = billWith(world);
  return { committed, each: billWith(world, wanted) - committed, cap: world.run.settings.run.maxCost };
}

/**
 * What one further launch makes of the bill, by its type and region. All slots of a round ask, and there are few
 * answers: without it n empty slots would sum up n bills each. Of the fleet, the run and the moment that are in it.
 */
const nextBills = new WeakMap<FleetSnapshot, { run: RunRecord; nowMs: number; usd: Map<string, number> }>();

/** USD for everything launched so far and these launches, if everything alive lasts until deadline + grace. */
export function billWith({ run, fleet, nowMs }: World, ...launches: readonly Wanted[]): number {
  const sum = (): number =>
    billOf(run, [...billed(fleet), ...launches.map((wanted) => launchedAt(run, wanted, nowMs))]);
  if (launches.length > 1) return sum();
  let known = nextBills.get(fleet);
  if (known?.run !== run || known.nowMs !== nowMs) nextBills.set(fleet, (known = { run, nowMs, usd: new Map() }));
  const [{ instanceType, region } = {}] = launches;
  const key = launches.length === 0 ? '' : `${instanceType} in ${region}`;
  const usd = known.usd.get(key) ?? sum();
  known.usd.set(key, usd);
  return usd;
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
    if (billOf(run, [...then, launchedAt(run, { region: homeOf(world, slot) }, freeMs)]) > cap) return true;
  }
  return false;
}

/**
 * When a slot lost its last instance; null while it has one, or when it was given up because nothing was left for it.
 */
function freeSinceMs(record: InstanceRecord): number | null {
  if (!isGivenUp(record) || record.reason === null || record.reason === LOSS_REASON.notNeeded) return null;
  return record.terminatedAtMs ?? record.phaseAtMs;
}

/** The bills as they stood at a moment; by default as they stand now. */
const billed = ({ launches }: FleetSnapshot, atMs = Infinity): LaunchBill[] =>
  launches.bills.map((b) => (b.endedAtMs !== null && b.endedAtMs > atMs ? { ...b, endedAtMs: null } : b));

const launchedAt = ({ plan }: RunRecord, wanted: Wanted, launchedAtMs: number): LaunchBill => ({
  instanceType: plan.instanceType,
  ...wanted,
  launchedAtMs,
  endedAtMs: null,
});

/** Including the balancers of the planned regions, which are billed anyway, and of those launched in. */
function billOf(run: RunRecord, bills: readonly LaunchBill[]): number {
  const instances = bills.map((b) => ({ ...b, endedAtMs: b.endedAtMs ?? Math.max(powerOffAtMs(run), b.launchedAtMs) }));
  const regions = new Set([...plannedRegions(run), ...bills.map((b) => b.region ?? run.settings.aws.region)]);
  const { plan, startedAtMs } = run;
  const one = { instanceType: plan.instanceType, launchedAtMs: startedAtMs, endedAtMs: startedAtMs };
  const balancers = actualCost({
    ...frame(run),
    instances: [...regions].map((region) => ({ ...one, region })),
  }).balancer;
  if (bills.length === 0) return balancers;
  const { total, balancer } = actualCost({ ...frame(run), instances });
  return total - balancer + balancers;
}

/** The regions for which the plan has instances. */
const plannedRegions = ({ plan, settings }: RunRecord): string[] =>
  plan.regions?.map(({ region }) => region) ?? [regionsOf(settings.aws)[0].region];

const frame = (run: RunRecord) => ({
  region: run.settings.aws.region,
  ...billingTerms(run.settings),
  prices: run.plan.prices ?? null,
  startedAtMs: run.startedAtMs,
  finishedAtMs: powerOffAtMs(run),
  products: run.planned,
});

/** What the run may still spend on launches. Pure; prices from core/plan/prices.ts. */
import type { FleetSnapshot } from '../../model/fleet-snapshot.ts';
import type { LaunchBill, Pool } from '../../model/launch-history.ts';
import { Bill, type BilledInstance } from '../../plan/prices.ts';
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

/** True when the slot's next launch, alive until deadline + grace, keeps the run within `run.max_cost`. */
export const canAfford = (world: World, slot: number): boolean => affordable(world, [slot]) === 1;

/** How many of these slots' next launches keep the run within `run.max_cost`, from the first on. */
export function affordable(world: World, slots: readonly number[]): number {
  if (world.run.settings.run.maxCost === null) return slots.length;
  const budget = new Budget(world);
  const first = slots.findIndex((slot) => !budget.admit(nextLaunch(world, slot)));
  return first < 0 ? slots.length : first;
}

/** What a round may still launch: each admitted launch adds to the bill of those before it. */
export class Budget {
  readonly #world: World;
  #bill: Bill;
  /** USD for everything launched so far and admitted, if everything alive lasts until deadline + grace. */
  committed: number;
  /** USD that the dearest launch asked for would have added. */
  dearest = 0;

  constructor(world: World) {
    this.#world = world;
    this.#bill = billNow(world);
    this.committed = this.#bill.cost().total;
  }

  /** True when the launch keeps the run within `run.max_cost`; then it is part of the bill. */
  admit(wanted: Wanted): boolean {
    const { run, nowMs } = this.#world;
    const bill = this.#bill.with([launchedAt(run, wanted, nowMs)]);
    const { total } = bill.cost();
    this.dearest = Math.max(this.dearest, total - this.committed);
    if (total > (run.settings.run.maxCost ?? Infinity)) return false;
    this.#bill = bill;
    this.committed = total;
    return true;
  }
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
  const bill = billNow(world);
  const committed = bill.cost().total;
  const { instanceType } = run.plan;
  const each = Math.max(
    ...plannedRegions(run).map((region) => {
      const overlap = { region, instanceType, launchedAtMs: nowMs, endedAtMs: nowMs + OVERLAP_MS };
      return bill.with([overlap]).cost().total - committed;
    }),
  );
  return Math.max(0, Math.floor((cap - committed) / each) - underWay);
}

export function spendingOf(world: World, wanted: Wanted = {}): Spending {
  const committed = billWith(world);
  return { committed, each: billWith(world, wanted) - committed, cap: world.run.settings.run.maxCost };
}

/** USD for everything launched so far and these launches, if everything alive lasts until deadline + grace. */
export function billWith(world: World, ...launches: readonly Wanted[]): number {
  const { run, nowMs } = world;
  return billNow(world)
    .with(launches.map((wanted) => launchedAt(run, wanted, nowMs)))
    .cost().total;
}

/** The bills of fleets, each with the run that it was made out for: all slots of a round ask for it. */
const bills = new WeakMap<FleetSnapshot, { run: RunRecord; bill: Bill }>();

/** The bill of everything launched so far. */
function billNow({ run, fleet }: World): Bill {
  let known = bills.get(fleet);
  if (known?.run !== run) bills.set(fleet, (known = { run, bill: billOf(run, fleet.launches.bills) }));
  return known.bill;
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
    const then = world.fleet.launches.bills
      .filter((b) => b.launchedAtMs <= freeMs)
      .map((b) => (b.endedAtMs !== null && b.endedAtMs > freeMs ? { ...b, endedAtMs: null } : b));
    const next = launchedAt(run, { region: homeOf(world, slot) }, freeMs);
    if (billOf(run, then).with([next]).cost().total > cap) return true;
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

const launchedAt = (run: RunRecord, wanted: Wanted, launchedAtMs: number): BilledInstance =>
  untilEnd(run, { instanceType: run.plan.instanceType, ...wanted, launchedAtMs, endedAtMs: null });

const untilEnd = (run: RunRecord, bill: LaunchBill): BilledInstance => ({
  ...bill,
  endedAtMs: bill.endedAtMs ?? Math.max(powerOffAtMs(run), bill.launchedAtMs),
});

/** Including the balancers of the planned regions, which are billed anyway, and of those launched in. */
const billOf = (run: RunRecord, launches: readonly LaunchBill[]): Bill =>
  new Bill(frame(run), plannedRegions(run)).with(launches.map((launch) => untilEnd(run, launch)));

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
  hadBalancer: true,
});

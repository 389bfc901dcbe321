/**
 * Chooses the pool of a slot's next launch. A pool is an instance type in a subnet of a region; EC2 runs out of
 * capacity pool by pool. Which pools are dry follows from the rows of the instances, so it survives a restart. Pure.
 */
import { backoffMs } from '../../../../shared/domain/backoff.ts';
import { type Pool, poolKey, type Pools } from '../../model/launch-history.ts';
import { LOSS_REASON } from '../../model/loss-reason.ts';
import { type RegionState, regionNamed } from '../../model/regions.ts';
import type { Observed } from '../../model/world.ts';
import { launchGate } from './launch-gate.ts';

/**
 * `none`: no pool is left that the slot may use, or EC2 has refused all for good. `wait`: all are dry or being tried.
 */
export type NextPool = { kind: 'pool'; pool: Pool | null } | { kind: 'wait' } | { kind: 'none' };

/** Longest pause for a pool that stays dry, as a multiple of the first. */
const MAX_FACTOR = 4;

/** The pool of the slot's next claim; null while the pools are not known: then the claim itself takes the first. */
export function nextPool(world: Observed, slot: number): NextPool {
  const { pools } = world;
  if (!pools) return { kind: 'pool', pool: null };
  const epochs = world.fleet.epochs(slot);
  const inSubnets = (reason: string): Set<string> =>
    new Set(epochs.filter((r) => r.reason === reason).map((r) => r.request.subnetId));
  const shared = inSubnets(LOSS_REASON.sharedAddress);
  const unhealthy = inSubnets(LOSS_REASON.neverHealthy);
  const allowed = poolsFor(pools, slot, homeOf(world, slot)).filter(
    (p) => !shared.has(p.subnetId) && !isClosedPool(world, p),
  );
  if (allowed.length === 0) return { kind: 'none' };
  // In a zone that the balancer does not reach, the next instance would be unhealthy too.
  const ordered = [
    ...allowed.filter((p) => !unhealthy.has(p.subnetId)),
    ...allowed.filter((p) => unhealthy.has(p.subnetId)),
  ];
  const free = ordered.find((p) => isOpen(world, p));
  return free ? { kind: 'pool', pool: free } : { kind: 'wait' };
}

/**
 * All pools in the order of a slot: those of its own region first. In a region it starts in a subnet of its own and
 * tries all of them before the next type.
 */
export function poolsFor({ regions, instanceTypes }: Pools, slot: number, home?: string): Pool[] {
  const ordered = regions.toSorted((a, b) => Number(b.name === home) - Number(a.name === home));
  return ordered.flatMap(({ name: region, subnetIds }) => {
    const first = slot % Math.max(1, subnetIds.length);
    const own = [...subnetIds.slice(first), ...subnetIds.slice(0, first)];
    return instanceTypes.flatMap((instanceType) => own.map((subnetId) => ({ region, subnetId, instanceType })));
  });
}

/**
 * The region for which the plan has the slot; the only one of a run of one. Slots beyond the plan are spread as it is.
 */
export function homeOf({ run, regions: all }: Observed, slot: number): string {
  const { regions = [], instances } = run.plan;
  let rest = slot % Math.max(1, instances);
  for (const { region, instances: share } of regions) {
    if (rest < share) return region;
    rest -= share;
  }
  return all[0].name;
}

/** EC2 has refused this pool, or its type everywhere, for a reason that waiting does not fix. */
export function isClosedPool(world: Observed, pool: Omit<Pool, 'region'>): boolean {
  const closed = world.fleet.launches.closedPools;
  if (closed.size === 0) return false;
  const saidMs = Math.max(closed.get(pool.instanceType) ?? -Infinity, closed.get(poolKey(pool)) ?? -Infinity);
  // The cause may have been fixed before a resume: each main server tries for itself.
  return saidMs >= world.loopStartedAtMs;
}

/** True when there is no pool left in which an instance could be launched. */
export function areAllPoolsClosed(world: Observed): boolean {
  const { pools } = world;
  if (!pools || world.fleet.launches.closedPools.size === 0) return false;
  return poolsFor(pools, 0).every((pool) => isClosedPool(world, pool));
}

/** How many more instances the configuration allows in the region. */
export function roomIn({ fleet, regions }: Observed, { name, maxInstances }: RegionState): number {
  if (maxInstances === Infinity) return Infinity;
  return maxInstances - fleet.in(name, name === regions[0].name).alive;
}

/** Until when the pool is not tried; null when its last answer was an instance, or it was never tried. */
export function dryUntilMs(world: Observed, pool: Omit<Pool, 'region'>): number | null {
  const pools = world.fleet.launches.dryPools;
  const answers = pools.size === 0 ? undefined : pools.get(poolKey(pool));
  const last = answers?.refusedMs.at(-1);
  if (answers === undefined || last === undefined) return null;
  // Several slots refused at once count as one refusal.
  let rounds = 0;
  let roundMs = -Infinity;
  for (const atMs of answers.refusedMs) {
    if (atMs < roundMs + world.limits.dryPoolMs) continue;
    rounds++;
    roundMs = atMs;
  }
  const firstMs = world.limits.dryPoolMs;
  return last + backoffMs(rounds - 1, { firstMs, maxMs: firstMs * MAX_FACTOR });
}

/** True when the pool's last answer was a lack of capacity: the next launch there is a trial, one at a time. */
export function isTrial(world: Observed, pool: Pool): boolean {
  return (world.fleet.launches.dryPools.get(poolKey(pool))?.refusedMs.length ?? 0) > 0;
}

function isOpen(world: Observed, pool: Pool): boolean {
  const region = regionNamed(world.regions, pool.region);
  if (launchGate(world, region) === 'held' || roomIn(world, region) <= 0) return false;
  const untilMs = dryUntilMs(world, pool);
  if (untilMs === null) return true;
  return world.nowMs >= untilMs && world.fleet.launches.dryPools.get(poolKey(pool))?.asked !== true;
}

/**
 * Chooses the pool of a slot's next launch. A pool is an instance type in a subnet; EC2 runs out of capacity pool by
 * pool. Which pools are dry follows from the rows of the instances, so it survives a restart. Pure.
 */
import { backoffMs } from '../../../shared/domain/backoff.ts';
import { LOSS_REASON } from '../model/loss-reason.ts';
import { perFleet } from '../per-fleet.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { Pool, Pools, World } from '../model/world.ts';

/**
 * `none`: no pool is left that this slot may use, or EC2 has refused all of them permanently. `wait`: all of them are
 * dry or being tried; the first is due at `untilMs`.
 */
export type NextPool = { kind: 'pool'; pool: Pool | null } | { kind: 'wait'; untilMs: number } | { kind: 'none' };

type PoolWorld = Pick<World, 'instances' | 'nowMs' | 'limits'> & Partial<Pick<World, 'pools' | 'loopStartedAtMs'>>;

/** Longest pause for a pool that stays dry, as a multiple of the first. */
const MAX_FACTOR = 4;

/**
 * The pool of the slot's next claim; a null pool while the pools are not known yet: then the claim itself takes the
 * first.
 */
export function nextPool(world: PoolWorld, slot: number): NextPool {
  const { pools } = world;
  if (!pools) return { kind: 'pool', pool: null };
  const epochs = world.instances.filter((r) => r.slot === slot);
  const inSubnets = (reason: string): Set<string> =>
    new Set(epochs.filter((r) => r.reason === reason).map((r) => r.request.subnetId));
  const shared = inSubnets(LOSS_REASON.sharedAddress);
  const unhealthy = inSubnets(LOSS_REASON.neverHealthy);
  const allowed = poolsFor(pools, slot).filter((p) => !shared.has(p.subnetId) && !isClosedPool(world, p));
  if (allowed.length === 0) return { kind: 'none' };
  // In a zone that the balancer does not reach, the next instance would be unhealthy too.
  const ordered = [
    ...allowed.filter((p) => !unhealthy.has(p.subnetId)),
    ...allowed.filter((p) => unhealthy.has(p.subnetId)),
  ];
  const free = ordered.find((p) => isOpen(world, p));
  if (free) return { kind: 'pool', pool: free };
  const due = ordered.map((p) => dryUntilMs(world, p) ?? world.nowMs);
  return { kind: 'wait', untilMs: Math.max(world.nowMs, Math.min(...due)) };
}

/**
 * All pools in the order a slot tries them: slots start in different subnets, each tries all of them before the next
 * type.
 */
export function poolsFor({ subnetIds, instanceTypes }: Pools, slot: number): Pool[] {
  const own = subnetIds.map((_, i) => subnetIds[(slot + i) % subnetIds.length]!);
  return instanceTypes.flatMap((instanceType) => own.map((subnetId) => ({ subnetId, instanceType })));
}

/** EC2 has refused this pool, or its type everywhere, for a reason that waiting does not fix. */
export function isClosedPool(world: ClosedWorld, pool: Pool): boolean {
  const closed = closedOf(world.instances);
  if (closed.size === 0) return false;
  const saidMs = Math.max(closed.get(pool.instanceType) ?? -Infinity, closed.get(poolKey(pool)) ?? -Infinity);
  // The cause may have been fixed before a resume: each main server tries for itself.
  return saidMs >= (world.loopStartedAtMs ?? -Infinity);
}

/** True when there is no pool left in which an instance could be launched. */
export function areAllPoolsClosed(world: ClosedWorld & Partial<Pick<World, 'pools'>>): boolean {
  const { pools } = world;
  if (!pools || closedOf(world.instances).size === 0) return false;
  return poolsFor(pools, 0).every((pool) => isClosedPool(world, pool));
}

type ClosedWorld = Pick<World, 'instances'> & Partial<Pick<World, 'loopStartedAtMs'>>;

/** Time of EC2's last such refusal, by instance type for types refused everywhere, else by pool. */
const closedOf = perFleet((instances): ReadonlyMap<string, number> => {
  const closed = new Map<string, number>();
  for (const { answer, request, launchedAtMs } of instances) {
    if (answer?.kind !== 'refused' || launchedAtMs === null) continue;
    const key =
      answer.cause === 'type'
        ? request.instanceType
        : answer.cause === 'zone' || answer.cause === 'invalid'
          ? poolKey(request)
          : null;
    if (key !== null) closed.set(key, Math.max(closed.get(key) ?? -Infinity, launchedAtMs));
  }
  return closed;
});

/** Until when the pool is not tried; null when its last answer was an instance, or it was never tried. */
export function dryUntilMs(world: Pick<World, 'instances' | 'limits'>, pool: Pool): number | null {
  const states = statesOf(world.instances);
  const state = states.size === 0 ? undefined : states.get(poolKey(pool));
  const last = state?.refusedMs.at(-1);
  if (last === undefined) return null;
  // Several slots refused at once count as one refusal.
  let rounds = 0;
  let roundMs = -Infinity;
  for (const atMs of state!.refusedMs) {
    if (atMs < roundMs + world.limits.dryPoolMs) continue;
    rounds++;
    roundMs = atMs;
  }
  const firstMs = world.limits.dryPoolMs;
  return last + backoffMs(rounds - 1, { firstMs, maxMs: firstMs * MAX_FACTOR });
}

/** True when the pool's last answer was a lack of capacity: the next launch there is a trial, one at a time. */
export function isTrial(world: Pick<World, 'instances'>, pool: Pool): boolean {
  return (statesOf(world.instances).get(poolKey(pool))?.refusedMs.length ?? 0) > 0;
}

export const poolKey = ({ subnetId, instanceType }: Pool): string => `${instanceType} in ${subnetId}`;

function isOpen(world: PoolWorld, pool: Pool): boolean {
  const untilMs = dryUntilMs(world, pool);
  if (untilMs === null) return true;
  return world.nowMs >= untilMs && !statesOf(world.instances).get(poolKey(pool))!.asked;
}

interface PoolState {
  /** Refusals since it last gave an instance, oldest first. */
  refusedMs: number[];
  /** A claim for it waits for EC2's answer. */
  asked: boolean;
}

const statesOf = perFleet((instances): ReadonlyMap<string, PoolState> => {
  const states = new Map<string, PoolState>();
  // Pools without a refusal are open. Most runs have none, and need not sort thousands of rows.
  if (!instances.some(isPoolRefusal)) return states;
  const calls = instances.filter((r) => r.launchedAtMs !== null || r.phase === 'claimed');
  for (const record of [...calls].sort((a, b) => askedAtMs(a) - askedAtMs(b))) {
    const key = poolKey(record.request);
    const state = states.get(key) ?? { refusedMs: [], asked: false };
    if (record.instanceId !== null) state.refusedMs = [];
    else if (isPoolRefusal(record)) state.refusedMs.push(askedAtMs(record));
    else if (record.phase === 'claimed') state.asked = true;
    states.set(key, state);
  }
  return states;
});

const askedAtMs = (record: InstanceRecord): number => record.launchedAtMs ?? record.claimedAtMs;

/** EC2 has reported a lack of capacity in the record's pool. */
const isPoolRefusal = ({ answer }: InstanceRecord): boolean => answer?.kind === 'refused' && answer.cause === 'pool';

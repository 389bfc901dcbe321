/** Whether a slot may be filled, and how often: bounds on launches, refusals and replacements. Pure. */
import { LOSS } from './loss.ts';
import { canAfford } from './money.ts';
import { perFleet } from './per-fleet.ts';
import { isPoolRefusal, nextPool } from './pools.ts';
import { quotaGate } from './quota-gate.ts';
import { drainAtMs, isDraining } from './schedule-of-run.ts';
import type { InstanceRecord } from './stores.ts';
import type { World } from './world.ts';
import { isClosed, isGivenUp, isLeaving } from './world.ts';

export { LOSS } from './loss.ts';

/** A slot is filled at most this often with an instance that EC2 really gave: the first and two replacements. */
const MAX_LAUNCHED = 3;
/** An instance that never came into service is replaced once: a second one would fail the same way. */
const MAX_DEAD_BOOTS = 2;
/** Launches per slot that EC2 neither carried out nor refused for want of machines or quota: those end by time alone. */
const MAX_FAILED_CALLS = 8;

type TryWorld = Pick<World, 'run' | 'instances' | 'nowMs' | 'limits'> & Partial<Pick<World, 'pools'>>;

/** True when time is left for another instance in the slot, and it has not failed too often. */
export function hasTriesLeft(world: TryWorld, slot: number): boolean {
  if (isDraining(world) || isHopeless(world)) return false;
  if (isTooLateToBoot(world)) return false;
  const epochs = world.instances.filter((r) => r.slot === slot);
  // One that made room for a fresh address has not failed, and may be followed by another as long as there is time.
  const launched = epochs.filter((r) => r.instanceId !== null && r.reason !== LOSS.renewed);
  if (launched.length >= MAX_LAUNCHED) return false;
  if (launched.filter((r) => r.reason === LOSS.noHello || r.reason === LOSS.neverHealthy).length >= MAX_DEAD_BOOTS)
    return false;
  return epochs.filter(isFailedCall).length < MAX_FAILED_CALLS && nextPool(world, slot).kind !== 'none';
}

/** True when an instance launched now would say hello only when everybody stops. */
export function isTooLateToBoot(world: Pick<World, 'run' | 'nowMs' | 'limits'>): boolean {
  return world.nowMs + world.limits.bootMs >= drainAtMs(world.run);
}

function isFailedCall(record: InstanceRecord): boolean {
  if (record.instanceId !== null || record.attempts === 0 || !isGivenUp(record)) return false;
  return !isPoolRefusal(record) && record.lastError?.startsWith('refused quota') !== true;
}

/** True when an empty slot may get an instance before the end, now or later, as far as tries and time go. */
export function mayFill(world: TryWorld, slot: number, record: InstanceRecord | undefined): boolean {
  if (record) return isGivenUp(record) && record.reason !== null && hasTriesLeft(world, slot);
  if (isDraining(world) || isHopeless(world)) return false;
  // The first launch of a short run goes out at once; only what EC2 has put off may come too late.
  return isOpenNow(world, slot) || !isTooLateToBoot(world);
}

/** `mayFill`, and the money is there. */
export function canFill(world: TryWorld, slot: number, record: InstanceRecord | undefined): boolean {
  return mayFill(world, slot, record) && canAfford(world);
}

/** True when a given-up slot may be filled again. */
export function canReplace(world: TryWorld, slot: number, record: InstanceRecord): boolean {
  return canFill(world, slot, record);
}

/** True when nothing keeps an empty slot from being launched now: products may wait for it. */
export function isFilledSoon(world: TryWorld, slot: number, record: InstanceRecord | undefined): boolean {
  return canFill(world, slot, record) && isOpenNow(world, slot, record?.reason === LOSS.renewed);
}

/** @param succeeds one of ours makes room for it, within the quota, too */
function isOpenNow(world: TryWorld, slot: number, succeeds = false): boolean {
  return isQuotaOpen(world, succeeds) && nextPool(world, slot).kind === 'pool';
}

const isQuotaOpen = (world: TryWorld, succeeds: boolean): boolean => {
  const gate = quotaGate(world);
  return gate === 'open' || (gate === 'one' && succeeds);
};

/** True when the slot has an instance, or EC2's answer is on its way: not one whose launch waits for the quota. */
export function isFilled(world: TryWorld, record: InstanceRecord): boolean {
  return record.phase !== 'claimed' || quotaGate(world) === 'open' || isQuotaOpen(world, isSuccessor(world, record));
}

/** The epoch before it ended to make room for it. */
const isSuccessor = ({ instances }: TryWorld, { slot, epoch }: InstanceRecord): boolean =>
  instances.some((r) => r.slot === slot && r.epoch === epoch - 1 && r.reason === LOSS.renewed);

/** True when the next epoch of the slot may be claimed now. A banned or renewed address makes room first: no more are up than planned. */
export function isVacated(record: InstanceRecord): boolean {
  const makesRoom = record.reason === LOSS.banned || record.reason === LOSS.renewed;
  return isClosed(record) && (!makesRoom || isLeaving(record));
}

/** EC2 has said something that no further try will change: no right, or a wrong parameter. */
export function isHopeless(world: Pick<World, 'instances'>): boolean {
  return hopeless(world.instances);
}

const hopeless = perFleet((instances) => instances.some((r) => /^refused (denied|invalid)/.test(r.lastError ?? '')));

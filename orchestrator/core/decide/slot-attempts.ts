/** Whether a slot may be filled, and how often: bounds on launches, refusals and replacements. Pure. */
import { deathAtLaunch } from '../model/launch-history.ts';
import { isDyingAtLaunch, launchGate } from './launches/launch-gate.ts';
import { LOSS_REASON } from '../model/loss-reason.ts';
import { canAfford } from './launches/budget.ts';
import { areAllPoolsClosed, nextPool } from './launches/pools.ts';
import { lostRights } from './launches/rights.ts';
import { hasRoomAtSite, isSlotResting } from './site-cap.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import { regionNamed } from '../model/regions.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { Observed } from '../model/world.ts';
import { isClosed, isGivenUp, isLeaving, isRefused } from '../model/instance-state.ts';

export { LOSS_REASON as LOSS } from '../model/loss-reason.ts';

/** Maximum instances that EC2 launches for a slot: the first and two replacements. */
const MAX_LAUNCHED = 3;
/** An instance that never came into service is replaced once: a second one would fail the same way. */
const MAX_DEAD_BOOTS = 2;
/** Maximum launches per slot that EC2 neither carried out nor refused for a reason that has a rule of its own. */
const MAX_FAILED_CALLS = 8;

/** True when time is left for another instance in the slot, and it has not failed too often. */
export function hasAttemptsLeft(world: Observed, slot: number): boolean {
  if (isDraining(world) || isHopeless(world)) return false;
  if (isTooLateToBoot(world)) return false;
  const epochs = world.fleet.epochs(slot);
  // A rotated instance has not failed, and may be followed by another as long as there is time.
  // A death at launch says nothing about the slot: `launch-gate.ts` bounds those.
  const launched = epochs.filter(
    (r) => r.instanceId !== null && r.reason !== LOSS_REASON.rotated && deathAtLaunch(r) === null,
  );
  if (launched.length >= MAX_LAUNCHED) return false;
  if (
    launched.filter((r) => r.reason === LOSS_REASON.noHello || r.reason === LOSS_REASON.neverHealthy).length >=
    MAX_DEAD_BOOTS
  )
    return false;
  return epochs.filter(isFailedCall).length < MAX_FAILED_CALLS && nextPool(world, slot).kind !== 'none';
}

/** True when an instance launched now would not say hello before crawling has to stop. */
export function isTooLateToBoot(world: Observed): boolean {
  return world.nowMs + world.limits.bootMs >= drainAtMs(world.run);
}

function isFailedCall(record: InstanceRecord): boolean {
  if (record.instanceId !== null || record.attempts === 0 || !isGivenUp(record)) return false;
  return record.answer?.kind !== 'refused' || record.answer.cause === 'throttled' || record.answer.cause === 'spent';
}

/** True when an empty slot may get an instance before the end, now or later, as far as tries and time go. */
export function mayFill(world: Observed, slot: number, record: InstanceRecord | undefined): boolean {
  if (record) return isGivenUp(record) && record.reason !== null && hasAttemptsLeft(world, slot);
  if (isDraining(world) || isHopeless(world)) return false;
  // The first launch of a short run goes out at once; only a delayed launch may come too late.
  return isOpenNow(world, slot) || (!isTooLateToBoot(world) && nextPool(world, slot).kind !== 'none');
}

/**
 * `mayFill`, and money and the site have room, or will have once EC2 has ended the machine that makes room: until then
 * both are counted.
 */
export function canFill(world: Observed, slot: number, record: InstanceRecord | undefined): boolean {
  const makesRoom = record?.reason === LOSS_REASON.rotated && record.phase !== 'terminated';
  return mayFill(world, slot, record) && hasRoomAtSite(world) && (makesRoom || canAfford(world, slot));
}

/** True when nothing keeps an empty slot from being launched now: products may wait for it. */
export function isFilledSoon(world: Observed, slot: number, record: InstanceRecord | undefined): boolean {
  if (isSlotResting(world, record)) return false;
  return canFill(world, slot, record) && isOpenNow(world, slot, record?.reason === LOSS_REASON.rotated);
}

/** @param succeeds it takes the place of a rotated instance, also within the quota */
function isOpenNow(world: Observed, slot: number, succeeds = false): boolean {
  const next = nextPool(world, slot);
  return next.kind === 'pool' && isGateOpen(world, next.pool?.region, succeeds);
}

const isGateOpen = (world: Observed, region: string | undefined, succeeds: boolean): boolean => {
  const gate = launchGate(world, regionNamed(world.regions, region));
  return gate === 'open' || (gate === 'one' && succeeds);
};

/** True when the slot has an instance, or its launch is under way; false while the launch is delayed. */
export function isFilled(world: Observed, record: InstanceRecord): boolean {
  return record.phase !== 'claimed' || isGateOpen(world, record.request.region, isSuccessor(world, record));
}

/** The epoch before it ended by an address rotation. */
const isSuccessor = ({ fleet }: Observed, { slot, epoch }: InstanceRecord): boolean =>
  fleet.find({ slot, epoch: epoch - 1 })?.reason === LOSS_REASON.rotated;

/** The next epoch may be claimed. A banned or rotated address must be gone first: no more are up than planned. */
export function isVacated(record: InstanceRecord): boolean {
  // No instance existed that could have uploaded anything, and the same keys may not open the bucket either.
  if (record.phase === 'terminated' && record.instanceId === null && isRefused(record)) return true;
  const makesRoom = record.reason === LOSS_REASON.banned || record.reason === LOSS_REASON.rotated;
  return isClosed(record) && (!makesRoom || isLeaving(record));
}

/** No launch will bring an instance: every pool is refused for good, rights are lost, or machines die at launch. */
export function isHopeless(world: Observed): boolean {
  return areAllPoolsClosed(world) || lostRights(world) !== null || isDyingAtLaunch(world);
}

/**
 * Address rotation during a run (`aws.recycle_every`): an instance stops, uploads and ends, and its slot gets another
 * one under the next epoch. A few at a time, and never where it would cost the run more than it gains. Pure.
 */
import { rotationCostMs, rotationDueMs, rotationWaves } from '../plan/address-rotation.ts';
import type { Action } from '../model/actions.ts';
import { isUnavailable, openIncident, recentBans } from './ban-policy.ts';
import { isResting } from './site-cap.ts';
import { canAffordRotation } from './launches/budget.ts';
import { nextPool } from './launches/pools.ts';
import { widestGate } from './launches/launch-gate.ts';
import { drainAtMs, isDraining, tailMs } from '../model/run-deadlines.ts';
import { canFill, isHopeless, isTooLateToBoot } from './slot-attempts.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { Forecast } from '../model/forecast.ts';
import type { World } from '../model/world.ts';
import { isGivenUp } from '../model/instance-state.ts';

/** Rotates the addresses that are old enough, as far as the fleet can spare their instances now. */
export function rotations(world: World): Action[] {
  const everyMs = world.run.settings.aws.recycleEveryMs ?? null;
  const { forecast } = world;
  if (everyMs === null || forecast === null || !isGoodTime(world, forecast)) return [];
  const latest = world.fleet.latest;
  const fleet = world.fleet.slotCount(world.run.plan);
  const { waves, atOnce } = rotationWaves(fleet);
  const dueMs = (r: InstanceRecord): number =>
    (r.launchedAtMs ?? r.claimedAtMs) + rotationDueMs(everyMs, waves, r.slot, isFirst(world, r));
  let missing = 0;
  const due: InstanceRecord[] = [];
  for (let slot = 0; slot < fleet; slot++) {
    const record = latest.get(slot);
    if (isMissing(world, slot, record)) missing++;
    else if (record && isRenewable(record) && dueMs(record) <= world.nowMs && isWorthwhile(world, forecast, record))
      due.push(record);
  }
  const gate = widestGate(world);
  if (gate === 'held') return due.length === 0 ? [] : [WAIT_NOTE];
  // After a refusal for the quota each launch waits for the answer to the one before it.
  const most = gate === 'one' ? 1 : atOnce;
  const room = Math.min(most - missing, canAffordRotation(world, missing));
  if (room <= 0) return [];
  return due
    .sort((a, b) => dueMs(a) - dueMs(b))
    .slice(0, room)
    .map(({ slot, epoch }): Action => ({ kind: 'rotate', slot, epoch }));
}

const WAIT_NOTE: Action = {
  kind: 'note',
  note: {
    key: 'rotations wait',
    event: 'decision',
    detail: `addresses due under aws.recycle_every are not rotated while launches are delayed, for example after a refusal for the account's quota`,
  },
  alarm: true,
};

/**
 * The run has time for it, EC2 has not refused permanently, and no address rests or has an open incident or a recent
 * ban: while the site bans, a fresh address would only be exposed to it. A run that would be late because of it does
 * not rotate.
 */
function isGoodTime(world: World, forecast: Forecast): boolean {
  if (isDraining(world) || isTooLateToBoot(world) || isHopeless(world)) return false;
  if (recentBans(world).banned.length > 0) return false;
  if (world.fleet.all.some((r) => !isGivenUp(r) && (openIncident(r) !== null || isResting(world, r)))) return false;
  const { p95Ms } = forecast.end;
  // Instances that are rotated together each lose the same minutes: their products wait for their successors.
  return p95Ms !== null && p95Ms + costMs(world) <= drainAtMs(world.run);
}

/** No instance crawls in the slot, but one will: a rotation is under way, a boot, or the replacement of a loss. */
function isMissing(world: World, slot: number, record: InstanceRecord | undefined): boolean {
  if (record === undefined || isGivenUp(record)) return world.work.waiting > 0 && canFill(world, slot, record);
  const { phase } = record;
  return record.rotateAtMs !== null || phase === 'claimed' || phase === 'pending' || phase === 'booting';
}

/** It crawls and has no order to stop. Without products it sends no requests: its address may grow old. */
const isRenewable = (record: InstanceRecord): boolean =>
  record.phase === 'crawling' && !record.sealed && !isUnavailable(record) && (record.progress?.pending ?? 0) > 0;

/**
 * The slot has more to do than a rotation takes, and a pool for its next machine, or will have one when launches go on.
 */
function isWorthwhile(world: World, forecast: Forecast, { slot, epoch }: InstanceRecord): boolean {
  const end = forecast.end.workers.find((p) => p.slot === slot && p.epoch === epoch);
  if (end === undefined || end.p50Ms - world.nowMs <= costMs(world)) return false;
  const { kind } = nextPool(world, slot);
  return kind === 'pool' || (kind === 'wait' && widestGate(world) === 'held');
}

/** True before the slot's first rotation: then the waves of the fleet determine its time. */
const isFirst = ({ fleet }: World, { slot, epoch }: InstanceRecord): boolean =>
  epoch === 1 || !fleet.epochs(slot).some((r) => r.epoch < epoch && r.instanceId !== null);

function costMs({ run }: World): number {
  return rotationCostMs(run.plan.bootP95Ms, tailMs(run.deadlineAtMs - run.startedAtMs));
}

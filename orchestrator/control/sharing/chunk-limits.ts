/** How many chunks each slot may own: equal shares, or shares by time where equal ones would leave an instance behind. Pure. */
import { dueChunks } from '../../../shared/domain/sharing.ts';
import { isRotatingAddress, isUnavailable } from '../decide/ban-policy.ts';
import { isFilled, isFilledSoon } from '../decide/slot-attempts.ts';
import type { ChunkLimits, Forecast } from '../model/forecast.ts';
import { isGivenUp } from '../model/instance-state.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { forecastEnd } from './end-forecast.ts';
import { balanceOf, isLeftBehind, limitsByTime } from './rebalance.ts';
import { shardsOf } from './workers.ts';

/** The limits until the next observation. They do not matter while no chunk waits. */
export function chunkLimits(world: World): ChunkLimits {
  if (world.work.waiting === 0) return { equal: 0, byTime: null };
  const equal = chunkLimit(world);
  return { equal, byTime: limitsByTime(world, equal) };
}

/** Maximum chunks this slot may own. */
export const slotLimit = ({ equal, byTime }: ChunkLimits, slot: number): number =>
  byTime === null ? equal : (byTime.maxChunks.get(slot) ?? 0);

/** The highest limit of a running slot; 0 when what waits is for instances to come. Each knows its own limit. */
export const offerLimit = ({ equal, byTime }: ChunkLimits): number => byTime?.maxOfServing ?? equal;

/** Maximum chunks one slot may hold now: even shares over the slots that can still take any. */
export function chunkLimit(world: World): number {
  const latest = world.fleet.latest;
  const shardOf = shardsOf(world.work);
  const bereft = world.fleet.slotsOfLost;
  const count = world.fleet.slotCount(world.run.plan);
  let slots = 0;
  let granted = 0;
  for (let slot = 0; slot < count; slot++) {
    const record = latest.get(slot);
    // Slots that cannot be launched for now (dry pools, quota, budget) must not keep products from running instances.
    const takes = record && !isGivenUp(record) ? isFilled(world, record) : isFilledSoon(world, slot, record);
    // Products of a lost instance go to running ones at once; its successor takes what those cannot finish in time.
    if (!takes || (isEmptyNow(record) && bereft.has(slot))) continue;
    // A banned address takes nothing; the share of one that is being replaced or rotated waits for its successor.
    const closed = record && !isGivenUp(record) && (record.sealed || isUnavailable(record));
    if (closed && !isRotatingAddress(world, record)) continue;
    slots++;
    if (record) granted += shardOf(slot, record.epoch)?.chunks ?? 0;
  }
  return dueChunks(granted + world.work.waiting, slots, granted);
}

/** No instance is up in the slot, or not yet. */
function isEmptyNow(record: InstanceRecord | undefined): boolean {
  if (record === undefined || isGivenUp(record)) return true;
  return record.phase === 'claimed' || record.phase === 'pending' || record.phase === 'booting';
}

/**
 * When the fleet will finish, and whether it is even. The observer computes it once a heartbeat, because it costs a
 * pass over all workers; in between `decide` and the heartbeats use the last one.
 */
export function forecastRun(world: World, nothingToGive: ReadonlySet<string>): Forecast {
  return {
    atMs: world.nowMs,
    end: forecastEnd(world),
    balance: balanceOf(world, nothingToGive),
    byTime: isLeftBehind(world, chunkLimit(world)),
  };
}

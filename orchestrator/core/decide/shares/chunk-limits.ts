/**
 * How many chunks each slot may own (equal shares, or shares by time where equal ones would leave an instance behind),
 * and which workers return chunks that others can crawl sooner. Pure; docs/decisions/0018-rebalancing.md has the
 * transfer.
 */
import { isAnyHost } from '../../../../shared/domain/domains.ts';
import { dueChunks, MAX_CHUNK } from '../../../../shared/domain/sharing.ts';
import { isRotatingAddress, isUnavailable } from '../ban-policy.ts';
import { isFilled, isFilledSoon } from '../slot-attempts.ts';
import type { ChunkLimits, Forecast, Balance, LimitsByTime } from '../../model/forecast.ts';
import { isGivenUp } from '../../model/instance-state.ts';
import type { InstanceRecord } from '../../model/stores.ts';
import type { Observed, World } from '../../model/world.ts';
import { forecastEnd, spreadMs } from './end-forecast.ts';
import { shardsOf, waterFillLevel, type Worker, type Workers, workersOf } from './workers.ts';
import { epochKey } from '../../../../shared/domain/epoch-id.ts';
import { drainAtMs, isDraining } from '../../model/run-deadlines.ts';

/** The forecast tells whether equal shares would leave a worker behind. */
type Forecasted = Observed & Pick<World, 'forecast'>;

/** The limits until the next observation. They do not matter while no chunk waits. */
export function chunkLimits(world: Forecasted): ChunkLimits {
  if (world.work.waiting === 0) return { equal: 0, byTime: null, maxProducts: null };
  if (isAnyHost(world.run.settings.site.productUrl))
    return { equal: 0, byTime: null, maxProducts: limitsOfHosts(world) };
  const equal = chunkLimit(world);
  return { equal, byTime: limitsByTime(world, equal), maxProducts: null };
}

/** Maximum chunks this slot may own; with many hosts any number, within `productLimit`. */
export function slotLimit({ equal, byTime, maxProducts }: ChunkLimits, slot: number): number {
  if (maxProducts !== null) return maxProducts.has(slot) ? Infinity : 0;
  return byTime === null ? equal : (byTime.maxChunks.get(slot) ?? 0);
}

/** Maximum products this slot may own, by order; null: the share in the offers. */
export function productLimit(limits: ChunkLimits, slot: number, chunkSize: number): number | null {
  if (limits.maxProducts !== null) return limits.maxProducts.get(slot) ?? 0;
  return limits.byTime === null ? null : slotLimit(limits, slot) * chunkSize;
}

/**
 * The share in the offers, in products: the highest limit of a running slot; 0 when what waits is for instances to
 * come. Each knows its own limit.
 */
export function offerShare({ equal, byTime, maxProducts }: ChunkLimits, chunkSize: number): number {
  if (maxProducts !== null) return Math.max(0, ...maxProducts.values());
  return (byTime?.maxOfServing ?? equal) * chunkSize;
}

/** The most work that an instance holds of many hosts: the rest waits for whichever has time. */
const MOST_HELD_MS = 30 * 60_000;
/** The same as a share of the run. */
const HELD_OF_RUN = 1 / 8;

/**
 * Maximum products of each slot in a run of many hosts: what it has had, and what it has time for until all end, but
 * for no longer than it may hold. At least a chunk, where there is time for any.
 */
function limitsOfHosts(world: Observed): ReadonlyMap<number, number> {
  const { workers, unassigned } = workersOf(world);
  const { startedAtMs, deadlineAtMs } = world.run;
  const heldMs = Math.min(MOST_HELD_MS, (deadlineAtMs - startedAtMs) * HELD_OF_RUN);
  const takers = workers.filter((p) => p.canTake && p.isUp);
  const shardOf = shardsOf(world.work);
  const untilMs = Math.min(waterFillLevel(takers, unassigned), world.nowMs + heldMs);
  return new Map(
    takers.map(({ slot, epoch, endMs, paceMs }) => {
      const had = shardOf(slot, epoch)?.products ?? 0;
      const room = Math.ceil((untilMs - endMs) / paceMs);
      return [slot, room <= 0 ? had : had + Math.max(MAX_CHUNK, room)];
    }),
  );
}

/** Maximum chunks one slot may hold now: even shares over the slots that can still take any. */
export function chunkLimit(world: Observed): number {
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
export function forecastRun(world: Observed, nothingToGive: ReadonlySet<string>): Forecast {
  const workers = workersOf(world);
  return {
    atMs: world.nowMs,
    end: forecastEnd(world, workers),
    balance: balanceOf(world, nothingToGive, workers),
    byTime:
      !isAnyHost(world.run.settings.site.productUrl) &&
      world.work.waiting > 0 &&
      isLeftBehind(world, chunkLimit(world), workers),
  };
}

const NOTHING: ReadonlyMap<number, number> = new Map();
const NO_EPOCHS: ReadonlySet<string> = new Set();
/** Maximum chunk moves per observation; the next one finds the rest. */
const MAX_MOVES = 500;

/**
 * The transfers that would even out the fleet now. None while all workers end in time and the gain is small, so that
 * shards stay even by number.
 */
export function balanceOf(
  world: Observed,
  nothingToGive: ReadonlySet<string> = NO_EPOCHS,
  { workers, unassigned, chunkSize }: Workers = workersOf(world),
): Balance {
  const takers = workers.filter((p) => p.canTake);
  const calm = { give: NOTHING, get: NOTHING, endMs: world.nowMs, evenEndMs: world.nowMs };
  if (isDraining(world) || takers.length < 2 || !workers.some((p) => p.canGive && p.pending > chunkSize)) return calm;
  // Waiting chunks go to the workers that finish first.
  const poolMs = unassigned > 0 ? waterFillLevel(takers, unassigned) : 0;
  const loads = workers.map((worker) => ({
    worker,
    endMs: worker.canTake ? Math.max(worker.endMs, poolMs) : worker.endMs,
    movable: worker.canGive && !nothingToGive.has(epochKey(worker)) ? Math.floor(worker.pending / chunkSize) : 0,
    given: 0,
    got: 0,
  }));
  const endMs = latestEnd(loads);
  const gain = leastGainMs(world, takers, chunkSize);
  const isLate = endMs + marginMs(workers, endMs - world.nowMs) > drainAtMs(world.run);
  const idealMs = waterFillLevel(
    takers.map((p) => ({ endMs: p.startMs, paceMs: p.paceMs })),
    unassigned + takers.reduce((sum, p) => sum + p.pending, 0),
  );
  if (!isLate && endMs - idealMs <= gain) return { ...calm, endMs, evenEndMs: endMs };
  moveChunks(loads, chunkSize, 2 * world.limits.heartbeatMs, drainAtMs(world.run));
  const evenEndMs = latestEnd(loads);
  const saved = endMs - evenEndMs;
  if (saved <= 0 || (!isLate && saved <= gain)) return { ...calm, endMs, evenEndMs: endMs };
  const counts = (of: 'given' | 'got'): Map<number, number> =>
    new Map(loads.filter((s) => s[of] > 0).map((s) => [s.worker.slot, s[of]]));
  return { give: counts('given'), get: counts('got'), endMs, evenEndMs };
}

interface WorkerLoad {
  worker: Worker;
  endMs: number;
  movable: number;
  given: number;
  got: number;
}

const latestEnd = (loads: readonly WorkerLoad[]): number =>
  loads.reduce((most, s) => Math.max(most, s.endMs), -Infinity);

/**
 * Moves chunks one at a time from the worker that ends last to the one that would finish the chunk first, as long as
 * that is sooner. No worker both gives and takes, and each move must save more time than the transfer takes. No worker
 * gets a chunk that it cannot crawl by `lastMs`: it would refuse it, and the giver would get it again. So no chunk
 * bounces, now or at the next observation.
 * @param lastMs the last moment for crawling
 */
function moveChunks(loads: readonly WorkerLoad[], chunkSize: number, transferMs: number, lastMs: number): void {
  for (let moves = 0; moves < MAX_MOVES; moves++) {
    let from: WorkerLoad | null = null;
    let to: WorkerLoad | null = null;
    for (const load of loads) {
      if (load.movable > 0 && load.got === 0 && (from === null || load.endMs > from.endMs)) from = load;
    }
    for (const load of loads) {
      if (load === from || !load.worker.canTake || load.given > 0) continue;
      if (to === null || throughMs(load, chunkSize) < throughMs(to, chunkSize)) to = load;
    }
    if (from === null || to === null) return;
    const endMs = throughMs(to, chunkSize);
    if (endMs + transferMs >= from.endMs || endMs > lastMs) return;
    from.endMs -= chunkSize * from.worker.paceMs;
    from.movable--;
    from.given++;
    to.endMs = endMs;
    to.got++;
  }
}

const throughMs = (load: WorkerLoad, chunkSize: number): number => load.endMs + chunkSize * load.worker.paceMs;

/**
 * The least gain for which a chunk moves: while all end in time, a smaller one is not worth an uneven fleet. Boot times
 * usually differ by this much.
 */
function leastGainMs(world: Observed, takers: readonly Worker[], chunkSize: number): number {
  const paceMs = takers.reduce((least, p) => Math.min(least, p.paceMs), Infinity);
  return Math.max(2 * chunkSize * paceMs, 2 * world.limits.heartbeatMs, world.limits.bootMs);
}

const marginMs = (workers: readonly Worker[], workMs: number): number =>
  workers.reduce((most, p) => Math.max(most, spreadMs(p, workMs)), 0);

/** How long returned chunks are shared by time: by number, the giver would be the first to get them again. */
const HAND_OVER_HEARTBEATS = 6;

/**
 * Maximum chunks of each slot when equal shares would leave one of them far behind the others, or when chunks were
 * returned just now; null while equal shares are fine.
 * @param dueChunks the current equal share
 */
export function limitsByTime(world: Forecasted, dueChunks: number): LimitsByTime | null {
  const { waiting } = world.work;
  if (waiting === 0 || isDraining(world)) return null;
  const transferMs = HAND_OVER_HEARTBEATS * world.limits.heartbeatMs;
  const isHandingOver = world.lastTransferAtMs !== null && world.nowMs - world.lastTransferAtMs < transferMs;
  if (world.forecast?.byTime !== true && !isHandingOver) return null;
  const shares = sharesOf(workersOf(world));
  // By number again as soon as that leaves no worker behind: the forecast is up to a heartbeat old.
  if (shares === null || (!isHandingOver && !leavesBehind(world, shares, dueChunks))) return null;
  const { takers, levelMs, chunkSize } = shares;
  const most = new Map<number, number>();
  let mostOfThoseUp = 0;
  for (const { slot, chunks, endMs, paceMs, isUp } of takers) {
    const room = Math.max(0, Math.ceil((levelMs - endMs) / (chunkSize * paceMs) - 1e-6));
    most.set(slot, chunks + Math.min(waiting, room));
    if (isUp && room > 0) mostOfThoseUp = Math.max(mostOfThoseUp, chunks + Math.min(waiting, room));
  }
  return { maxChunks: most, maxOfServing: mostOfThoseUp };
}

/** True when a worker with an equal share of what waits would end well after the others, or too late because of it. */
export function isLeftBehind(world: Observed, dueChunks: number, workers = workersOf(world)): boolean {
  if (world.work.waiting === 0 || isDraining(world)) return false;
  const shares = sharesOf(workers);
  return shares !== null && leavesBehind(world, shares, dueChunks);
}

interface Shares {
  takers: readonly Worker[];
  /** When all would finish if the waiting chunks were shared by time. */
  levelMs: number;
  chunkSize: number;
}

/** The shares of the takers; null with fewer than two. */
function sharesOf({ workers, unassigned, chunkSize }: Workers): Shares | null {
  const takers = workers.filter((p) => p.canTake);
  return takers.length < 2 ? null : { takers, levelMs: waterFillLevel(takers, unassigned), chunkSize };
}

function leavesBehind(world: Observed, { takers, levelMs, chunkSize }: Shares, dueChunks: number): boolean {
  const { waiting } = world.work;
  const allowedMs = levelMs + leastGainMs(world, takers, chunkSize);
  const drainMs = drainAtMs(world.run);
  return takers.some((p) => {
    const due = Math.min(waiting, dueChunks - p.chunks);
    if (due <= 0) return false;
    const endMs = p.endMs + due * chunkSize * p.paceMs;
    // Whole chunks cost a difference of one; beyond that no worker may be late because of its share.
    return endMs > allowedMs || (endMs > drainMs && levelMs + chunkSize * p.paceMs < endMs);
  });
}

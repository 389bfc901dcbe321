/**
 * Who is to give chunks back because others can crawl them sooner, and who may take what waits once shares are no longer a
 * matter of number but of time. Pure; the transfer itself is described in docs/decisions/rebalancing.md.
 */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import type { Worker, WorkerWorld } from './workers.ts';
import type { World } from '../model/world.ts';
import { workersOf, waterFillLevel } from './workers.ts';
import { spreadMs } from './end-forecast.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import type { Balance } from '../model/forecast.ts';

const NOTHING: ReadonlyMap<number, number> = new Map();
const NOBODY: ReadonlySet<string> = new Set();
/** In one look at the world: what is left is found by the next one. */
const MAX_MOVES = 500;

/**
 * What evening out would move now. Nothing while everybody ends in time and little is gained: a shard that is begun stays
 * where it is, so that shards stay even by number.
 */
export function balanceOf(world: WorkerWorld, nothingToGive: ReadonlySet<string> = NOBODY): Balance {
  const { workers, unassigned, chunkSize } = workersOf(world);
  const takers = workers.filter((p) => p.canTake);
  const calm = { give: NOTHING, get: NOTHING, endMs: world.nowMs, evenEndMs: world.nowMs };
  if (isDraining(world) || takers.length < 2 || !workers.some((p) => p.canGive && p.pending > chunkSize)) return calm;
  // What waits goes to those who are through first.
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
 * One chunk after the other, from whoever ends last to whoever would be through with it first, as long as that is sooner.
 * Who has taken never gives and the other way round, and each move must save more than the transfer takes. Nobody is given
 * what it cannot crawl by the last moment: it would refuse that, and the giver would get it again. So nothing bounces, now or
 * at the next look.
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

/** While all end in time: less than this is not worth an uneven fleet. Boots differ by that much on a calm day. */
function leastGainMs(world: WorkerWorld, takers: readonly Worker[], chunkSize: number): number {
  const paceMs = takers.reduce((least, p) => Math.min(least, p.paceMs), Infinity);
  return Math.max(2 * chunkSize * paceMs, 2 * world.limits.heartbeatMs, world.limits.bootMs);
}

const marginMs = (workers: readonly Worker[], workMs: number): number =>
  workers.reduce((most, p) => Math.max(most, spreadMs(p, workMs)), 0);

/** What was just given back goes by time: by number, whoever gave it would be the first to get it again. */
const HAND_OVER_HEARTBEATS = 6;

export interface LimitsByTime {
  /** Chunks that each slot may own; who is not in it may take none. */
  maxChunks: ReadonlyMap<number, number>;
  /** The most of those that are up and have room; 0 when what waits is for instances that are to come. */
  maxOfServing: number;
}

/**
 * How many chunks each slot may own when equal numbers would leave one of them behind the others for long, or when chunks
 * were given back just now; null while equal numbers are fine.
 * @param dueChunks the equal share of now
 */
export function limitsByTime(
  world: WorkerWorld & Pick<World, 'lastTransferAtMs' | 'forecast'>,
  dueChunks: () => number,
): LimitsByTime | null {
  const { waiting } = world.work;
  if (waiting === 0 || isDraining(world)) return null;
  const transferMs = HAND_OVER_HEARTBEATS * world.limits.heartbeatMs;
  const isHandingOver = world.lastTransferAtMs !== null && world.nowMs - world.lastTransferAtMs < transferMs;
  if (world.forecast?.byTime !== true && !isHandingOver) return null;
  const shares = sharesOf(world);
  // By number again as soon as that leaves nobody behind: the outlook is up to a heartbeat old.
  if (shares === null || (!isHandingOver && !leavesBehind(world, shares, dueChunks()))) return null;
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

/** True when somebody with an equal share of what waits would end well after the others, or too late because of it. */
export function isLeftBehind(world: WorkerWorld, dueChunks: number): boolean {
  if (world.work.waiting === 0 || isDraining(world)) return false;
  const shares = sharesOf(world);
  return shares !== null && leavesBehind(world, shares, dueChunks);
}

interface Shares {
  takers: readonly Worker[];
  /** When all would be through if what waits went by time. */
  levelMs: number;
  chunkSize: number;
}

/** Null when there is nobody to share with. */
function sharesOf(world: WorkerWorld): Shares | null {
  const { workers, unassigned, chunkSize } = workersOf(world);
  const takers = workers.filter((p) => p.canTake);
  return takers.length < 2 ? null : { takers, levelMs: waterFillLevel(takers, unassigned), chunkSize };
}

function leavesBehind(world: WorkerWorld, { takers, levelMs, chunkSize }: Shares, dueChunks: number): boolean {
  const { waiting } = world.work;
  const allowedMs = levelMs + leastGainMs(world, takers, chunkSize);
  const drainMs = drainAtMs(world.run);
  return takers.some((p) => {
    const due = Math.min(waiting, dueChunks - p.chunks);
    if (due <= 0) return false;
    const endMs = p.endMs + due * chunkSize * p.paceMs;
    // A chunk more or less is what whole chunks cost; beyond that nobody is to be late because of its share.
    return endMs > allowedMs || (endMs > drainMs && levelMs + chunkSize * p.paceMs < endMs);
  });
}

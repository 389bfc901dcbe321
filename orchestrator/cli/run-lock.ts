/**
 * The lock that keeps two main servers off one database: a lease in a row with a fence that every write carries, and on
 * MySQL a named lock on a connection of its own. What each is for stands in docs/decisions/locks.md.
 */
import { AppError, describeError } from '../../shared/domain/errors.ts';
import { formatDuration } from '../../shared/domain/quantity.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { ConnectionLock, LockGuard, LockHolder, RunStore } from '../control/model/stores.ts';
import { isDeadHere, ownName } from './process-name.ts';

/** How long things take around the lock. Every main server of a database must have the same. */
export interface LockTimes {
  leaseMs: number;
  renewMs: number;
  /** A lease that has run out is watched for so long: a holder that lives renews it twice in that time. */
  watchMs: number;
  /** Between the named lock and the lease another main server needs some milliseconds; on a busy machine more. */
  settleMs: number;
  /** For so long a database file may refuse every write. A server is waited for without end: it is somebody's to restart. */
  giveUpMs: number;
}

const TIMES: LockTimes = { leaseMs: 20_000, renewMs: 4_000, watchMs: 10_000, settleMs: 2_000, giveUpMs: 30_000 };

export interface RunLock {
  fence: number;
  /** Names the run the lock is held for. */
  setRun(runId: string): void;
  /** Aborts with an AppError when this main server must not or cannot go on: its lock is another one's, or `giveUp` was called. */
  lost: AbortSignal;
  /** Ends the work under this lock for a reason of this machine. The first call counts. */
  giveUp(error: AppError): void;
  release(): Promise<void>;
}

/**
 * Takes the lock or throws `lock-held` with the holder's name. A holder that has died on this host is replaced at once;
 * one that is frozen or cut off when its lease has run out and it did not renew it within ten seconds.
 */
export async function takeLock(runs: RunStore, clock: Clock, times: LockTimes = TIMES): Promise<RunLock> {
  const owner = ownName();
  const { guard } = runs;
  const steal = guard ? await waitForHolder(guard, clock, times) : undefined;
  const connection = guard?.connection ?? null;
  if (guard && connection) await takeConnection(connection, guard, clock, times);
  try {
    const now = async (): Promise<number> => (guard ? guard.nowMs() : clock.now());
    let result = await runs.acquireLock(owner, await now(), times.leaseMs, steal);
    if ('heldBy' in result && isDeadHere(result.heldBy.owner))
      result = await runs.acquireLock(owner, await now(), times.leaseMs, result.heldBy);
    if ('heldBy' in result) throw held(result.heldBy);
    return keepLock({ runs, clock, times, now, connection, fence: result.fence });
  } catch (error) {
    await connection?.release();
    throw error;
  }
}

export type Holder = 'nobody' | 'dead' | 'expired' | 'alive';

/** What is to be thought of the holder of the lease now. */
export async function lookAtHolder(guard: LockGuard): Promise<{ state: Holder; holder: LockHolder | null }> {
  const [holder, nowMs] = await Promise.all([guard.holder(), guard.nowMs()]);
  if (!holder) return { state: 'nobody', holder };
  if (isDeadHere(holder.owner)) return { state: 'dead', holder };
  return { state: holder.expiresAtMs <= nowMs ? 'expired' : 'alive', holder };
}

/** Throws `lock-held` for a holder that lives. Gives back the lease of a dead one, to be stolen. */
async function waitForHolder(guard: LockGuard, clock: Clock, times: LockTimes): Promise<LockHolder | undefined> {
  const { state, holder } = await lookAtHolder(guard);
  if (state === 'nobody' || holder === null) return undefined;
  if (state === 'dead') return holder;
  if (state === 'alive') throw held(holder);
  // By the clock it is over. But a clock may have jumped, and a database that was down could not be told of a renewal.
  await clock.sleep(times.watchMs);
  const later = await lookAtHolder(guard);
  if (later.holder && later.holder.expiresAtMs !== holder.expiresAtMs && later.state !== 'dead')
    throw held(later.holder);
  return undefined;
}

/** Takes the named lock. The lease is free, over or a dead one's here, so whoever still has the lock is frozen, or quick. */
async function takeConnection(
  connection: ConnectionLock,
  guard: LockGuard,
  clock: Clock,
  times: LockTimes,
): Promise<void> {
  if ((await connection.acquire()) === 'ours') return;
  await clock.sleep(times.settleMs);
  const { state, holder } = await lookAtHolder(guard);
  if (state === 'alive') {
    await connection.release();
    throw held(holder);
  }
  if ((await connection.acquire()) === 'ours') return;
  if (state !== 'nobody' && (await connection.evict()) === 'ours') return;
  await connection.release();
  throw held(holder);
}

function held(holder: LockHolder | null): AppError {
  const who = holder ? ` (${holder.owner})` : '';
  const what = holder?.runId ? `is running ${holder.runId}` : 'is starting a run';
  return new AppError('lock-held', `another main server${who} ${what} on this database`, {
    hint: 'Wait for it, or look at it with: orchestrator status',
  });
}

interface Keeping {
  runs: RunStore;
  clock: Clock;
  times: LockTimes;
  now: () => Promise<number>;
  connection: ConnectionLock | null;
  fence: number;
}

function keepLock({ runs, clock, times, now, connection, fence }: Keeping): RunLock {
  const lost = new AbortController();
  const stop = new AbortController();
  let runId: string | null = null;
  let oursAtMs = clock.monotonic();
  let writtenAtMs = oursAtMs;
  let isUnwritable = false;
  const lose = (): void => lost.abort(new AppError('lock-held', 'this main server has lost its lock on the database'));
  /** A renewal is a write like any other: a file that refuses it takes nothing of the run either. */
  const onUnwritten = (error: unknown): void => {
    const ms = clock.monotonic() - writtenAtMs;
    // One that is locked by another program is writable.
    const isBusy = error instanceof AppError && error.code === 'database-busy';
    if (runs.guard?.isFile !== true || isBusy || ms < times.giveUpMs) return;
    isUnwritable = true;
    lost.abort(unwritable('the database', error, ms));
  };
  const renew = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await clock.sleep(times.renewMs, stop.signal);
      if (stop.signal.aborted) return;
      // No answer is not a lost lock: nobody else can have it from a database that is down, and whoever takes it when
      // it is back raises the fence, which the next answer tells.
      const kept = await now()
        .then((nowMs) => runs.renewLock(fence, nowMs, times.leaseMs, runId))
        .catch((error: unknown) => {
          onUnwritten(error);
          return null;
        });
      if (kept === false) return lose();
      if (kept === true) writtenAtMs = clock.monotonic();
      const named = connection === null ? 'ours' : await connection.acquire().catch(() => null);
      // Another one may have it for the moment it needs to find our lease alive; not for the time of a whole lease.
      if (named !== 'others') oursAtMs = clock.monotonic();
      else if (clock.monotonic() - oursAtMs > times.leaseMs) return lose();
    }
  };
  const renewing = renew();
  return {
    fence,
    setRun(id) {
      runId = id;
    },
    lost: lost.signal,
    giveUp: (error) => lost.abort(error),
    async release() {
      stop.abort();
      await renewing;
      // It would only be tried for a long time; the next main server on this host finds that its holder is dead.
      if (!isUnwritable) await runs.releaseLock(fence).catch(() => undefined);
      await connection?.release();
    },
  };
}

/** What a run stands on cannot be written on this machine: it is left as it is, for a person to make room. */
export function unwritable(what: string, error: unknown, forMs: number): AppError {
  return new AppError(
    'platform',
    `${what} could not be written for ${formatDuration(forMs)}, the run is left as it is: ${describeError(error)}`,
    { hint: 'Make room on the disk, or bring the folder back; then: orchestrator resume', cause: error },
  );
}

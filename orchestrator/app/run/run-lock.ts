/**
 * The lock that allows only one main server per database: a lease in a row with a fence that every write carries, and
 * on MySQL a named lock on its own connection. docs/decisions/0008-locks.md explains the purpose of each.
 */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ConnectionLock, LockHolder, RunStore } from '../../control/model/stores.ts';
import { isDeadHere, ownName } from './process-name.ts';

/** Timing of the lock. Every main server of a database must use the same. */
export interface LockTimes {
  leaseMs: number;
  renewMs: number;
  /** How long an expired lease is watched: a living holder renews it twice in that time. */
  watchMs: number;
  /** Another main server needs some milliseconds between the named lock and the lease; more on a busy machine. */
  settleMs: number;
  /** How long a database file may refuse every write; a server may as long as its operator needs. */
  giveUpMs: number;
}

const TIMES: LockTimes = { leaseMs: 20_000, renewMs: 4_000, watchMs: 10_000, settleMs: 2_000, giveUpMs: 30_000 };

export interface RunLock {
  fence: number;
  /** Names the run the lock is held for. */
  setRun(runId: string): void;
  /** Aborts with an AppError when another main server has the lock, or `giveUp` was called. */
  lost: AbortSignal;
  /** Ends the work under this lock for a reason local to this machine. Only the first call counts. */
  giveUp(error: AppError): void;
  release(): Promise<void>;
}

/** Throws `lock-held` with the holder's name. One that died here is replaced at once, others once expired. */
export async function takeLock(runs: RunStore, clock: Clock, times: LockTimes = TIMES): Promise<RunLock> {
  const owner = ownName();
  const { guard } = runs;
  const steal = await waitForHolder(runs, clock, times);
  const connection = guard?.connection ?? null;
  if (connection) await takeConnection(connection, runs, clock, times);
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

/** Takes the lock for `work`, and releases it afterwards. */
export async function underLock<T>(runs: RunStore, work: (lock: RunLock) => Promise<T>): Promise<T> {
  const lock = await takeLock(runs, systemClock);
  try {
    return await work(lock);
  } finally {
    await lock.release();
  }
}

type Holder = 'none' | 'dead' | 'expired' | 'alive';

/** The state of the lease's current holder. */
export async function lookAtHolder({
  guard,
}: Pick<RunStore, 'guard'>): Promise<{ state: Holder; holder: LockHolder | null }> {
  if (!guard) return { state: 'none', holder: null };
  const [holder, nowMs] = await Promise.all([guard.holder(), guard.nowMs()]);
  if (!holder) return { state: 'none', holder };
  if (isDeadHere(holder.owner)) return { state: 'dead', holder };
  return { state: holder.expiresAtMs <= nowMs ? 'expired' : 'alive', holder };
}

/** Throws `lock-held` for a living holder. Returns the lease of a dead one, to be stolen. */
async function waitForHolder(runs: RunStore, clock: Clock, times: LockTimes): Promise<LockHolder | undefined> {
  const { state, holder } = await lookAtHolder(runs);
  if (state === 'none' || holder === null) return undefined;
  if (state === 'dead') return holder;
  if (state === 'alive') throw held(holder);
  // It has expired by the clock, but a clock may jump, and a database that was down stored no renewal.
  await clock.sleep(times.watchMs);
  const later = await lookAtHolder(runs);
  if (later.holder && later.holder.expiresAtMs !== holder.expiresAtMs && later.state !== 'dead')
    throw held(later.holder);
  return undefined;
}

/** The lease is free, expired or of a dead process, so a holder of the named lock is frozen, or was quicker. */
async function takeConnection(
  connection: ConnectionLock,
  runs: RunStore,
  clock: Clock,
  times: LockTimes,
): Promise<void> {
  if ((await connection.acquire()) === 'ours') return;
  await clock.sleep(times.settleMs);
  const { state, holder } = await lookAtHolder(runs);
  if (state === 'alive') {
    await connection.release();
    throw held(holder);
  }
  if ((await connection.acquire()) === 'ours') return;
  if (state !== 'none' && (await connection.evict()) === 'ours') return;
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
  /** A renewal is a write like any other: a file that refuses it refuses every write of the run. */
  const onUnwritten = (error: unknown): void => {
    const ms = clock.monotonic() - writtenAtMs;
    // A file locked by another program is writable.
    const isBusy = error instanceof AppError && error.code === 'database-busy';
    if (runs.guard?.isFile !== true || isBusy || ms < times.giveUpMs) return;
    isUnwritable = true;
    lost.abort(unwritable('the database', error, ms));
  };
  const renew = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await clock.sleep(times.renewMs, stop.signal);
      if (stop.signal.aborted) return;
      // No answer does not mean a lost lock: no other process can take it while the database is down, and one that
      // takes it later raises the fence, which the next answer shows.
      const kept = await now()
        .then((nowMs) => runs.renewLock(fence, nowMs, times.leaseMs, runId))
        .catch((error: unknown) => {
          onUnwritten(error);
          return null;
        });
      if (kept === false) return lose();
      if (kept === true) writtenAtMs = clock.monotonic();
      const named = connection === null ? 'ours' : await connection.acquire().catch(() => null);
      // Another main server may hold it for the moment it needs to find our lease alive; not for a whole lease.
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
      // It would only be retried for long; the next main server here finds that its holder is dead.
      if (!isUnwritable) await runs.releaseLock(fence).catch(() => undefined);
      await connection?.release();
    },
  };
}

/** The run's files or database cannot be written on this machine: the run stays as it is until the user makes room. */
export function unwritable(what: string, error: unknown, forMs: number): AppError {
  return new AppError(
    'platform',
    `${what} could not be written for ${formatDuration(forMs)}, the run is left as it is: ${describeError(error)}`,
    { hint: 'Make room on the disk, or bring the folder back; then: orchestrator resume', cause: error },
  );
}

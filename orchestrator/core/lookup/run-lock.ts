/**
 * The lock that allows only one main server per host of a site and per result table: leases in rows with a fence that
 * every write carries, and on MySQL named locks on a connection. docs/decisions/0008-locks.md explains the purpose of
 * each.
 */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { siteHostOf } from '../../../shared/domain/same-site.ts';
import { type ProductUrl, templatesOf } from '../../../shared/domain/domains.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ConnectionLock, LockHolder, RunRecord, RunStore } from '../model/stores.ts';
import type { Config } from '../config/load-config.ts';
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

/** Disposal releases it. */
export interface RunLock extends AsyncDisposable {
  names: readonly string[];
  fence: number;
  /** Names the run the lock is held for, and stores it: from then on the gc of another site spares what the run has. */
  setRun(runId: string): Promise<void>;
  /** Aborts with an AppError when another main server has the lock, or `giveUp` was called. */
  lost: AbortSignal;
  /** Ends the work under this lock for a reason local to this machine. Only the first call counts. */
  giveUp(error: AppError): void;
}

/**
 * Names of the locks that a run needs: the hosts of its site and its further ones, whose pace two runs would break, and
 * its result table, whose name some databases read in any case.
 */
export function lockNamesOf({
  productUrl,
  further = [],
  table,
}: {
  productUrl: ProductUrl;
  further?: readonly string[] | undefined;
  table: string;
}): string[] {
  const hosts = [...templatesOf(productUrl), ...further].map((url) => `host:${siteHostOf(new URL(url))}`);
  return [...new Set([...hosts, `table:${table.toLowerCase()}`])];
}

export const lockNamesOfRun = ({ settings }: Pick<RunRecord, 'settings'>): string[] =>
  lockNamesOf({
    productUrl: settings.site.productUrl,
    further: settings.site.follow?.hosts,
    table: settings.results.table,
  });

export const lockNamesOfConfig = ({ values: { site, results } }: Config): string[] =>
  lockNamesOf({ productUrl: site.product_url, further: site.follow.hosts, table: results.table });

/** True when the run needs a lock of these names, so it cannot be at work beside their holder. */
export const competesWith = (run: Pick<RunRecord, 'settings'>, names: readonly string[]): boolean =>
  lockNamesOfRun(run).some((name) => names.includes(name));

/** A lock to be taken. */
export interface Locking {
  runs: RunStore;
  names: readonly string[];
  clock: Clock;
  times?: LockTimes;
  /**
   * Called when no living main server holds the lock, before it is taken: what throws leaves it with its holder, who
   * may only be frozen.
   */
  check?: () => Promise<unknown>;
}

/** Throws `lock-held` with the holder's name. One that died here is replaced at once, others once expired. */
export async function takeLock(locking: Locking): Promise<RunLock> {
  const { runs, names, clock, times = TIMES, check = () => Promise.resolve() } = locking;
  const request = { owner: ownName(), names, leaseMs: times.leaseMs };
  const { guard } = runs;
  const waiting = { runs, names, clock, times };
  const steal = await waitForHolders(waiting);
  await check();
  const connection = guard?.connection?.(names) ?? null;
  if (connection) await takeConnection(connection, waiting);
  try {
    const now = async (): Promise<number> => (guard ? guard.nowMs() : clock.now());
    let result = await runs.acquireLock({ ...request, nowMs: await now(), steal });
    if ('heldBy' in result && isDeadHere(result.heldBy.owner))
      result = await runs.acquireLock({ ...request, nowMs: await now(), steal: [...steal, result.heldBy] });
    if ('heldBy' in result) throw held(result.heldBy);
    return keepLock({ ...waiting, now, connection, fence: result.fence });
  } catch (error) {
    await connection?.release();
    throw error;
  }
}

type Waiting = Required<Omit<Locking, 'check'>>;

type Holder = 'none' | 'dead' | 'expired' | 'alive';

/** The holder of a lock of these names: of several a living one, else one whose lease has expired, else a dead one. */
export async function lookAtHolder(
  runs: Pick<RunStore, 'guard'>,
  names: readonly string[],
): Promise<{ state: Holder; holder: LockHolder | null }> {
  const holders = await lookAtHolders(runs, names);
  const states: Holder[] = ['alive', 'expired', 'dead'];
  const first = states.flatMap((state) => holders.filter((each) => each.state === state))[0];
  return first ?? { state: 'none', holder: null };
}

/** The living main server that holds a lock of these names; null without one. */
export async function livingHolder(
  runs: Pick<RunStore, 'guard'>,
  names: readonly string[],
): Promise<LockHolder | null> {
  const { state, holder } = await lookAtHolder(runs, names);
  return state === 'alive' ? holder : null;
}

/** The living main server that works on this run, or is about to; null without one. */
export async function holderAtWork(runs: Pick<RunStore, 'guard'>, run: RunRecord): Promise<LockHolder | null> {
  const holder = await livingHolder(runs, lockNamesOfRun(run));
  return holder !== null && (holder.runId ?? run.id) === run.id ? holder : null;
}

/** The runs of all living main servers of this database. One that is starting has launched nothing. */
export async function runsAtWork(runs: Pick<RunStore, 'guard'>): Promise<Set<string>> {
  const alive = (await lookAtHolders(runs)).filter(({ state }) => state === 'alive');
  return new Set(alive.map(({ holder }) => holder.runId).filter((id) => id !== null));
}

async function lookAtHolders(
  { guard }: Pick<RunStore, 'guard'>,
  names?: readonly string[],
): Promise<{ state: Exclude<Holder, 'none'>; holder: LockHolder }[]> {
  if (!guard) return [];
  const [holders, nowMs] = await Promise.all([guard.holders(names), guard.nowMs()]);
  const stateOf = ({ owner, expiresAtMs }: LockHolder) =>
    isDeadHere(owner) ? 'dead' : expiresAtMs <= nowMs ? 'expired' : 'alive';
  return holders.map((holder) => ({ state: stateOf(holder), holder }));
}

/** Throws `lock-held` for a living holder. Returns the dead ones, whose leases are to be taken over. */
async function waitForHolders({ runs, names, clock, times }: Waiting): Promise<LockHolder[]> {
  const holders = await lookAtHolders(runs, names);
  const inState = (wanted: Holder) => holders.filter(({ state }) => state === wanted).map(({ holder }) => holder);
  const [alive] = inState('alive');
  if (alive) throw held(alive);
  const expired = inState('expired');
  if (expired.length > 0) {
    // They have expired by the clock, but a clock may jump, and a database that was down stored no renewal.
    await clock.sleep(times.watchMs);
    const isRenewed = ({ owner, expiresAtMs }: LockHolder): boolean =>
      !expired.some((before) => before.owner === owner && before.expiresAtMs === expiresAtMs);
    const later = await lookAtHolders(runs, names);
    const living = later.find(({ state, holder }) => state !== 'dead' && isRenewed(holder));
    if (living) throw held(living.holder);
  }
  return inState('dead');
}

/** The leases are free, expired or of a dead process, so a holder of the named lock is frozen, or was quicker. */
async function takeConnection(connection: ConnectionLock, locking: Waiting): Promise<void> {
  const { runs, names, clock, times } = locking;
  if ((await connection.acquire()) === 'ours') return;
  await clock.sleep(times.settleMs);
  const { state, holder } = await lookAtHolder(runs, names);
  if (state === 'alive') {
    await connection.release();
    throw held(holder);
  }
  if ((await connection.acquire()) === 'ours') return;
  if (state !== 'none' && (await connection.evict()) === 'ours') return;
  await connection.release();
  throw held(holder);
}

/** Who holds a lock that this process needs; null when its holder was too quick to be seen. */
export function holderText(holder: LockHolder | null): string {
  if (holder === null) return 'another main server is starting a run';
  const { owner, runId, name } = holder;
  const what = runId === null ? 'is starting a run' : `is running ${runId}`;
  return `another main server (${owner}) ${what} and has the lock of ${name.replace(':', ' ')}`;
}

function held(holder: LockHolder | null): AppError {
  return new AppError('lock-held', holderText(holder), {
    hint: 'Wait for it, or look at it with: orchestrator status',
  });
}

interface Keeping extends Waiting {
  now: () => Promise<number>;
  connection: ConnectionLock | null;
  fence: number;
}

function keepLock({ runs, names, clock, times, now, connection, fence }: Keeping): RunLock {
  const lost = new AbortController();
  const stop = new AbortController();
  let runId: string | null = null;
  /** Since when renewals fail, and another has the named lock; null while neither is so. */
  let unwrittenMs: number | null = null;
  let othersMs: number | null = null;
  let isUnwritable = false;
  const lose = (): void => lost.abort(new AppError('lock-held', 'this main server has lost its lock'));
  /** A renewal is a write like any other: a file that refuses it refuses every write of the run. */
  const onUnwritten = (error: unknown): void => {
    const failedMs = clock.monotonic();
    const ms = failedMs - (unwrittenMs ??= failedMs);
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
      // takes it later deletes our fence, which the next answer shows.
      const kept = await now()
        .then((nowMs) => runs.renewLock(fence, nowMs, times.leaseMs, runId))
        .catch((error: unknown) => {
          onUnwritten(error);
          return null;
        });
      if (kept === false) return lose();
      if (kept === true) unwrittenMs = null;
      const named = connection === null ? 'ours' : await connection.acquire().catch(() => null);
      // Another main server may hold it for the moment it needs to find our lease alive; not for a whole lease.
      const seenMs = clock.monotonic();
      if (named !== 'others') othersMs = null;
      else if (seenMs - (othersMs ??= seenMs) > times.leaseMs) return lose();
    }
  };
  const renewing = renew();
  return {
    names,
    fence,
    async setRun(id) {
      runId = id;
      // The next renewal repeats what fails here.
      await now()
        .then((nowMs) => runs.renewLock(fence, nowMs, times.leaseMs, id))
        .catch(() => undefined);
    },
    lost: lost.signal,
    giveUp: (error) => lost.abort(error),
    async [Symbol.asyncDispose]() {
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

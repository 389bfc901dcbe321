/** The lock that keeps two main servers off one database: a lease in a row, with a fence that every write carries. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { AppError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { LockHolder, RunStore } from '../control/stores.ts';

const LEASE_MS = 20_000;
const RENEW_MS = 4_000;

export interface RunLock {
  fence: number;
  /** Names the run the lock is held for. */
  setRun(runId: string): void;
  /** Aborts when the lock has been lost: somebody else may be running by now. */
  lost: AbortSignal;
  release(): Promise<void>;
}

/** Takes the lock or throws `lock-held` with the holder's name. A dead holder on this host is replaced at once. */
export async function takeLock(runs: RunStore, clock: Clock): Promise<RunLock> {
  const owner = ownName();
  let result = await runs.acquireLock(owner, clock.now(), LEASE_MS);
  if ('heldBy' in result && isDeadHere(result.heldBy))
    result = await runs.acquireLock(owner, clock.now(), LEASE_MS, result.heldBy);
  if ('heldBy' in result) {
    const { owner: holder, runId } = result.heldBy;
    throw new AppError(
      'lock-held',
      `another main server (${holder}) ${runId ? `is running ${runId}` : 'is starting a run'} on this database`,
      {
        hint: 'Wait for it, or look at it with: orchestrator status',
      },
    );
  }
  return keepLock(runs, clock, result.fence);
}

function keepLock(runs: RunStore, clock: Clock, fence: number): RunLock {
  const lost = new AbortController();
  const stop = new AbortController();
  let runId: string | null = null;
  const renew = async (): Promise<void> => {
    let renewedMs = clock.monotonic();
    while (!stop.signal.aborted) {
      await clock.sleep(RENEW_MS, stop.signal);
      if (stop.signal.aborted) return;
      const kept = await runs.renewLock(fence, clock.now(), LEASE_MS, runId).catch(() => null);
      if (kept) renewedMs = clock.monotonic();
      // A database that does not answer is not a lost lock until the lease has run out.
      if (kept === false || clock.monotonic() - renewedMs > LEASE_MS) {
        lost.abort(new AppError('lock-held', 'this main server has lost its lock on the database'));
        return;
      }
    }
  };
  const renewing = renew();
  return {
    fence,
    setRun(id) {
      runId = id;
    },
    lost: lost.signal,
    async release() {
      stop.abort();
      await renewing;
      await runs.releaseLock(fence).catch(() => undefined);
    },
  };
}

/** `host:pid:start`: the start time tells a process from a later one with the same pid. */
function ownName(): string {
  return `${hostname()}:${process.pid}:${startOf(process.pid) ?? 0}`;
}

function isDeadHere(holder: LockHolder): boolean {
  const match = /^(.*):(\d+):(\d+)$/.exec(holder.owner);
  if (!match || match[1] !== hostname()) return false;
  const start = startOf(Number(match[2]));
  return start === null || start !== Number(match[3]);
}

/** Start time of a process in clock ticks since boot (field 22 of /proc/pid/stat); null when there is none. */
function startOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in brackets, which may contain spaces.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
  } catch {
    return null;
  }
}

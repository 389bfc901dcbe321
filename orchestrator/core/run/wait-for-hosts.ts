/** A run of one site waits until no run of many hosts asks its hosts. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Caller } from '../caller.ts';
import { hostGroupsOf } from '../db/host-use.ts';
import type { RunLock } from '../lookup/run-lock.ts';
import type { HostAsker, HostInUse, RunStore } from '../model/stores.ts';

const LOOK_MS = 1_000;

interface Waiting extends Pick<Caller, 'output' | 'interrupts'> {
  runs: Pick<RunStore, 'hostsInUse'>;
  /** Already stored: from then on no grant takes these hosts. */
  lock: Pick<RunLock, 'names' | 'lost'>;
  clock?: Clock;
}

/**
 * Returns when the hosts that the lock names are free. Waits as long as a host needs whose owner ends now: its lease
 * and a gap. Then, and at once where the user interrupts it, it throws; `lock-held` says who has the host.
 */
export async function waitForHosts(waiting: Waiting, asker: Omit<HostAsker, 'nowMs'>): Promise<void> {
  const { output, interrupts, runs, lock, clock = systemClock } = waiting;
  const hosts = hostGroupsOf(lock.names);
  if (hosts.length === 0 || runs.hostsInUse === undefined) return;
  const stop = AbortSignal.any([interrupts.leave, lock.lost]);
  const startedMs = clock.monotonic();
  let limitMs: number | null = null;
  for (;;) {
    const inUse = await runs.hostsInUse(hosts, { ...asker, nowMs: clock.now() });
    const [first] = inUse;
    if (first === undefined) return;
    if (limitMs === null) {
      limitMs = Math.max(...inUse.map(({ restMs }) => restMs));
      for (const use of inUse)
        output.line(`${inWords(use)}. This run waits for it, ${formatDuration(limitMs)} at most.`);
    }
    const leftMs = startedMs + limitMs - clock.monotonic();
    if (leftMs <= 0) throw notFree(first);
    await clock.sleep(Math.min(LOOK_MS, leftMs), stop);
    if (lock.lost.aborted) throw lock.lost.reason;
    if (stop.aborted) throw new AppError('interrupted', 'interrupted before anything was launched');
  }
}

function inWords({ host, runId, untilMs, isResting }: HostInUse): string {
  const until = new Date(untilMs).toISOString();
  if (isResting)
    return `${host} rests until ${until}, because ${runId === null ? 'it asked for that' : `run ${runId} has asked it`}`;
  return `Run ${runId ?? ''} asks ${host}, until ${until} at most`;
}

function notFree(use: HostInUse): AppError {
  const hint = use.isResting
    ? 'Start again then.'
    : `Wait for that run, or end it with: orchestrator stop ${use.runId ?? ''}`;
  return new AppError('lock-held', `${inWords(use)}; no two runs ask a host at the same time`, { hint });
}

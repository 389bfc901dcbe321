/**
 * Before a new run: handles runs that have lost their main server. We hold the lock, so no other process works on them.
 */
import type { Caller } from '../caller.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { RunRecord, Stores } from '../../control/model/stores.ts';
import { isRebuilt } from '../../control/results/recover.ts';
import type { Config } from '../config/load-config.ts';
import { resumeRun } from './resume.ts';
import { isUnfinished } from './find-run.ts';
import type { RunLock } from './run-lock.ts';

export interface UnfinishedOptions extends Caller {
  stores: Stores;
  lock: RunLock;
  config: Config;
}

const LOOKED_AT = 20;

/**
 * Ends every unfinished run whose deadline is past, and every ended run without a report: loads and publishes what its
 * instances have left in the bucket, terminates its remaining resources, writes its report. Throws `run-unfinished`
 * when a deadline is still ahead: two crawls at a time would double the load on the site. A run that cannot be ended is
 * reported; it does not block the new run.
 */
export async function takeUpUnfinished(options: UnfinishedOptions): Promise<void> {
  const unfinished = (await options.stores.runs.list(LOOKED_AT)).filter(isUnfinished);
  const ahead = unfinished.find(
    (run) => !isRunEnd(run.phase) && systemClock.now() <= run.deadlineAtMs && !isRebuilt(run),
  );
  if (ahead) throw stillAhead(ahead);
  // The oldest first: of two that crawled the same product the later one wins, and must be there to win.
  for (const run of unfinished.reverse()) await endOne(options, run);
}

async function endOne(options: UnfinishedOptions, run: RunRecord): Promise<void> {
  const { output, lock, interrupts } = options;
  if (isRebuilt(run)) {
    output.line(`! run ${run.id} was being rebuilt from the bucket; go on with: orchestrator load ${run.id}`);
    return;
  }
  output.line(
    isRunEnd(run.phase)
      ? `Run ${run.id} is ${run.phase}, but what it has left is not gone, or its report is missing: it is finished first.`
      : `Run ${run.id} has lost its main server, and its deadline is past: it is ended first.`,
  );
  try {
    lock.setRun(run.id);
    // A command prints one JSON document: that of the new run.
    const quiet = { ...output, document: () => undefined };
    // Ctrl-C leaves at once: it was meant for the new run, and must not end the old one as stopped by the user.
    const leaving = { ...interrupts, onFirst: () => undefined };
    await resumeRun({ ...options, run, interrupts: leaving, output: quiet });
  } catch (error) {
    if (error instanceof AppError && error.code === 'lock-held') throw error;
    output.line(`! run ${run.id} could not be ended: ${describeError(error)}; try: orchestrator resume ${run.id}`);
  }
  if (interrupts.leave.aborted) throw new AppError('interrupted', 'interrupted before anything was launched');
  output.line();
}

function stillAhead(run: RunRecord): AppError {
  return new AppError(
    'run-unfinished',
    `run ${run.id} (${run.phase}) has lost its main server, and its deadline is ahead: ${new Date(run.deadlineAtMs).toISOString()}`,
    { hint: `Take it up with: orchestrator resume ${run.id}, or give it up with: orchestrator cancel ${run.id}` },
  );
}

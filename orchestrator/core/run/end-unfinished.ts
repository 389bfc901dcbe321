/** The runs that a new one of the same site or result table has to end first: they have lost their main server. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { isRebuilt } from '../model/rebuilt-run.ts';
import type { Config } from '../config/load-config.ts';
import { unfinishedRuns } from '../lookup/find-run.ts';
import { livingHolder, lockNamesOfConfig, lockNamesOfRun } from '../lookup/run-lock.ts';
import type { RunRecord, RunStore } from '../model/stores.ts';
import { carryOut } from './carry-out.ts';
import { resumeRun } from './resume.ts';
import type { RunContext } from './run-context.ts';

/**
 * The locks of a new run, and those of the unfinished runs that it has to end first: a discovery of the same host has
 * another table. Without the latter if another main server has one of them.
 */
export async function namesToLock(runs: RunStore, names: readonly string[]): Promise<readonly string[]> {
  const others = (await unfinishedRuns(runs, names)).flatMap(lockNamesOfRun).filter((name) => !names.includes(name));
  return others.length > 0 && (await livingHolder(runs, others)) === null ? [...new Set([...names, ...others])] : names;
}

/**
 * Unfinished runs of this site or result table. Throws `run-unfinished` when the deadline of one is still ahead: two
 * crawls at a time would double the load on the site.
 */
export async function unfinishedToEnd(runs: RunStore, config: Config): Promise<RunRecord[]> {
  const unfinished = await unfinishedRuns(runs, lockNamesOfConfig(config));
  const ahead = unfinished.find(
    (run) => !isRunEnd(run.phase) && systemClock.now() <= run.deadlineAtMs && !isRebuilt(run),
  );
  if (ahead)
    throw new AppError(
      'run-unfinished',
      `run ${ahead.id} (${ahead.phase}) has lost its main server, and its deadline is ahead: ${new Date(ahead.deadlineAtMs).toISOString()}`,
      {
        hint: `Take it up with: orchestrator resume ${ahead.id}, or give it up with: orchestrator cancel ${ahead.id}`,
      },
    );
  return unfinished;
}

/**
 * Ends every unfinished run of this site or result table whose deadline is past, and every ended run without a report:
 * loads and publishes what its instances have left in the bucket, terminates its remaining resources, writes its
 * report. A run that cannot be ended is reported; it does not block the new run.
 */
export async function endUnfinished(context: RunContext): Promise<void> {
  const unfinished = await unfinishedToEnd(context.stores.runs, context.config);
  // The oldest first: of two that crawled the same product the later one wins, and must be there to win.
  for (const run of unfinished.reverse()) {
    const others = lockNamesOfRun(run).filter((name) => !context.lock.names.includes(name));
    if (others.length === 0) await endOne(context, run);
    else
      context.output.line(
        `! run ${run.id} is not ended: another main server has the lock of ${others.join(', ').replaceAll(':', ' ')}. End it later with: orchestrator resume ${run.id}`,
      );
  }
}

async function endOne(context: RunContext, run: RunRecord): Promise<void> {
  const { output, lock, interrupts } = context;
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
    await lock.setRun(run.id);
    // A command prints one JSON document: that of the new run.
    const quiet = { ...output, document: () => undefined };
    // Ctrl-C leaves at once: it was meant for the new run, and must not end the old one as stopped by the user.
    const leaving = { ...interrupts, onFirst: () => undefined };
    const own = { ...context, interrupts: leaving, output: quiet };
    await carryOut(own, await resumeRun(own, run));
  } catch (error) {
    if (error instanceof AppError && error.code === 'lock-held') throw error;
    output.line(`! run ${run.id} could not be ended: ${describeError(error)}; try: orchestrator resume ${run.id}`);
  }
  if (interrupts.leave.aborted) throw new AppError('interrupted', 'interrupted before anything was launched');
  output.line();
}

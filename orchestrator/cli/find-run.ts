/** Finds the run that a command is about. */
import { AppError } from '../../shared/domain/errors.ts';
import { isRunEnd } from '../../shared/domain/states.ts';
import type { RunRecord, RunStore } from '../control/stores.ts';

/** The named run. Throws `run-unknown`. */
export async function getRun(runs: RunStore, id: string): Promise<RunRecord> {
  const run = await runs.get(id);
  if (run) return run;
  throw new AppError('run-unknown', `there is no run ${id} in this database`, {
    hint: 'List them with: orchestrator status',
  });
}

/** The named run; without a name the newest one that is wanted. `kind` says in a word what is wanted. Throws `run-unknown`. */
export async function findRun(
  runs: RunStore,
  id: string | undefined,
  kind: string,
  wanted: (run: RunRecord) => boolean,
): Promise<RunRecord> {
  if (id !== undefined) return getRun(runs, id);
  const known = await runs.list(50);
  const run = known.find(wanted);
  if (run) return run;
  if (known.length > 0) {
    throw new AppError('run-unknown', `no run in this database is ${kind}`, {
      hint: 'Look at them with: orchestrator status',
    });
  }
  throw new AppError('run-unknown', 'there is no run in this database', { hint: 'Start one with: orchestrator run' });
}

export const isUnfinished = (run: RunRecord): boolean => !isRunEnd(run.phase) || run.report === null;

/** `orchestrator stop`: ends a run early and keeps its results. */
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { endEarly } from '../../app/run/end-early.ts';
import { findRun, storesOf, withDatabase } from '../../app/run/find-run.ts';
import type { Output } from '../output.ts';
import { resumeInTerminal } from './run.ts';
import type { StatusOptions } from './status.ts';

export async function stopCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, async (database) => {
    const { runs } = await storesOf(database);
    const run = await findRun(runs, options.runId, 'unfinished', (r) => !isRunEnd(r.phase));
    if (isRunEnd(run.phase)) throw new AppError('run-ended', `run ${run.id} has ended already: ${run.phase}`);
    const promise = `Run ${run.id} will stop: its instances upload what they have, and that is published.`;
    const takeOver = async () => {
      await database.close();
      return resumeInTerminal({ ...options, runId: run.id }, output);
    };
    const end = { run, request: 'stop' as const, promise, takeOver };
    return await endEarly(runs, end, output);
  });
}

/** `orchestrator stop`: ends a run early and keeps its results. */
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { openDatabase } from '../../db/connect.ts';
import { loadConfig } from '../../app/config/load-config.ts';
import { endEarly } from '../../app/run/end-early.ts';
import { findRun, storesOf } from '../../app/run/find-run.ts';
import type { Output } from '../output.ts';
import { resumeInTerminal } from './resume.ts';
import type { StatusOptions } from './status.ts';

export async function stopCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  const { configPath, environment } = options;
  const config = loadConfig(configPath, environment);
  const database = await openDatabase(config.values.database.url);
  try {
    const { runs } = await storesOf(database);
    const run = await findRun(runs, options.runId, 'unfinished', (r) => !isRunEnd(r.phase));
    if (isRunEnd(run.phase)) throw new AppError('run-ended', `run ${run.id} has ended already: ${run.phase}`);
    const promise = `Run ${run.id} will stop: its instances upload what they have, and that is published.`;
    const takeOver = async () => {
      await database.close();
      return resumeInTerminal({ configPath, runId: run.id, environment }, output);
    };
    const end = { run, request: 'stop' as const, promise, takeOver };
    return await endEarly(runs, end, output);
  } finally {
    await database.close();
  }
}

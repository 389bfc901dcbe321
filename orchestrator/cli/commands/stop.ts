/** `orchestrator stop`: asks the main server of a run to end it early and keep what it has. */
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { loadConfig } from '../config/load-config.ts';
import { findRun } from '../find-run.ts';
import type { Output } from '../output.ts';
import type { StatusOptions } from './status.ts';

export async function stopCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  const config = loadConfig(options.configPath, options.environment);
  const database = await openDatabase(config.values.database.url);
  try {
    const { runs } = createStores(database);
    const run = await findRun(runs, options.runId, 'unfinished', (r) => !isRunEnd(r.phase));
    if (isRunEnd(run.phase)) throw new AppError('run-ended', `run ${run.id} has ended already: ${run.phase}`);
    await runs.setRequest(run.id, 'stop');
    output.line(`Run ${run.id} will stop: its instances upload what they have, and that is published.`);
    output.document({ run: run.id, requested: 'stop' });
    return EXIT.complete;
  } finally {
    await database.close();
  }
}

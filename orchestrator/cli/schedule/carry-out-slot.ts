/**
 * One due time, in a process of its own: signs in under the fence of the daemon that started it, then does what `orchestrator run
 * --yes --json` does. A process that was frozen before it signed in finds the due time given to another one, and does nothing.
 */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { KnexScheduleStore } from '../../db/schedule-store.ts';
import type { RunResult } from '../../schedule/slots.ts';
import { runCommand } from '../commands/run.ts';
import { loadConfig } from '../../app/config/load-config.ts';
import type { Output } from '../output.ts';
import { ownName } from '../../app/run/process-name.ts';
import { createRunViews, hintOf } from './run-views.ts';
import { scheduleName } from './schedule-name.ts';

export interface SlotOptions {
  configPath: string;
  environment: Readonly<Record<string, string | undefined>>;
  dryRun: boolean;
  dueAtMs: number;
  fence: number;
  /** Name of the schedule as its daemon knows it: by now the configuration may say another one. */
  name: string | null;
}

/** The exit code of the run. Throws `lock-held` when the due time is another one's. */
export async function carryOutSlot(options: SlotOptions, output: Output): Promise<ExitCode> {
  const { configPath, environment, dryRun, dueAtMs, fence, name } = options;
  const config = loadConfig(configPath, environment);
  const database = await openDatabase(config.values.database.url);
  try {
    const store = new KnexScheduleStore(database, name ?? scheduleName(config));
    const runner = ownName();
    if (!(await store.signIn(dueAtMs, fence, runner))) throw givenToAnother(dueAtMs);
    const views = createRunViews(createStores(database).runs, config.values.results.table);
    let runId: string | null = null;
    /** Before the run is stored: no run of this due time can be overlooked. */
    const bindRun = async (id: string): Promise<void> => {
      if (!(await store.bindRun(dueAtMs, runner, id))) throw givenToAnother(dueAtMs);
      runId = id;
    };
    const signOut = async (exitCode: ExitCode, reason: string | null, hint: string): Promise<void> => {
      const run = runId === null ? null : await views.get(runId);
      // Left on the way: the daemon takes it up, and only then the due time is done.
      if (run && !run.ended) return;
      // Told to leave before there was a run: the daemon, or the next one, starts it again.
      if (run === null && exitCode === EXIT.interrupted) return;
      const nothing = { run: null, state: null, onTime: null, products: null, cost: null };
      const result: RunResult = run?.result ?? { ...nothing, exitCode, reason, hint };
      await store.signOut(dueAtMs, runner, result);
    };
    try {
      const exitCode = await runCommand({ configPath, flags: [], dryRun, yes: true, environment, bindRun }, output);
      await signOut(exitCode, null, hintOf(exitCode, null));
      return exitCode;
    } catch (error) {
      const known = error instanceof AppError ? error : null;
      const exitCode = known?.exitCode ?? EXIT.internal;
      // A database that fails now may be what the run failed of: the daemon writes it down when it is back.
      await signOut(exitCode, describeError(error), known?.hint ?? hintOf(exitCode, null)).catch(() => undefined);
      throw error;
    }
  } finally {
    await database.close();
  }
}

const givenToAnother = (dueAtMs: number): AppError =>
  new AppError('lock-held', `the due time ${new Date(dueAtMs).toISOString()} is given to another process`);

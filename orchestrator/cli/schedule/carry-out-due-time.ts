/**
 * One due time, in a process of its own: signs in to its row, then does what `orchestrator run --yes --json`, or `resume`,
 * does. Does nothing when the row has been given to another daemon: the one that started this process was frozen.
 */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { ScheduleStore } from '../../db/schedule-store.ts';
import type { RunResult } from '../../notify/notice.ts';
import { NO_RESULT } from '../../notify/notice.ts';
import { hintOf } from '../../app/run/announce.ts';
import { resumeCommand } from '../commands/resume.ts';
import { runCommand } from '../commands/run.ts';
import { loadConfig } from '../../app/config/load-config.ts';
import type { Output } from '../output.ts';
import { ownName } from '../../app/run/process-name.ts';
import { createRunViews } from './daemon.ts';

export interface DueTimeOptions {
  configPath: string;
  environment: Readonly<Record<string, string | undefined>>;
  dryRun: boolean;
  dueAtMs: number;
  /** The daemon that the row must belong to. */
  owner: string;
  /** Name of the schedule. */
  name: string;
}

/** The exit code of the run. Throws `lock-held` when the due time is another daemon's. */
export async function carryOutDueTime(options: DueTimeOptions, output: Output): Promise<ExitCode> {
  const { configPath, environment, dryRun, dueAtMs, owner, name } = options;
  const config = loadConfig(configPath, environment);
  const database = await openDatabase(config.values.database.url);
  const runner = ownName();
  const store = new ScheduleStore(database, name);
  const { runs } = createStores(database);
  const own = { state: 'started', owner, runner } as const;
  const claim = async (from: object, change: object): Promise<void> => {
    if (await store.write(dueAtMs, from, change)) return;
    throw new AppError('lock-held', `the due time ${new Date(dueAtMs).toISOString()} is given to another process`);
  };
  try {
    await claim({ state: 'started', owner }, { runner, startedAtMs: systemClock.now() });
    const row = (await store.read()).find((r) => r.dueAtMs === dueAtMs);
    let runId = row?.runId ?? null;
    /** Before the run is stored: no run of this due time can be overlooked. */
    const bindRun = async (id: string): Promise<void> => {
      await claim({ state: 'started', runner }, { runId: id });
      runId = id;
    };
    const signOut = async (exitCode: ExitCode, reason: string | null, hint: string): Promise<void> => {
      const run = runId === null ? null : await createRunViews(runs, config).get(runId);
      // Left on the way, or before there was a run: the daemon takes it up, and only then the due time is done.
      if (run ? run.result === null : exitCode === EXIT.interrupted) return;
      const result: RunResult = run?.result ?? { ...NO_RESULT, exitCode, reason, hint };
      const change = { state: 'done', result, reason: result.reason, endedAtMs: systemClock.now() } as const;
      // A run that has ended has been announced by its main server.
      await store.write(dueAtMs, own, { ...change, told: result.run !== null });
    };
    try {
      const due = { atMs: dueAtMs, bindRun };
      const exitCode =
        runId === null
          ? await runCommand({ configPath, flags: [], dryRun, yes: true, environment, due }, output)
          : await resumeCommand({ configPath, runId, environment }, output);
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

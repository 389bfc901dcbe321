/**
 * One due time, in a process of its own: signs in to its row, then does what `orchestrator run --yes --json`, or `resume`,
 * does. Does nothing when the row has been given to another daemon: the one that started this process was frozen.
 */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { RunRecord } from '../../control/model/stores.ts';
import { reportOf } from '../../control/results/report.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { ScheduleStore } from '../../db/schedule-store.ts';
import { NO_RESULT } from '../../notify/notice.ts';
import { type DueTime, NO_PROCESS } from '../../schedule/due-times.ts';
import { hintOf, resultOf } from '../../app/run/announce.ts';
import { resumeCommand, runCommand } from '../commands/run.ts';
import { type ConfigPlace, loadConfig } from '../../app/config/load-config.ts';
import { isUnfinished } from '../../app/run/find-run.ts';
import type { Output } from '../output.ts';
import { ownName } from '../../app/run/process-name.ts';
import { deadlineOf } from '../../app/plan/settings-of.ts';

export interface DueTimeOptions extends ConfigPlace {
  dryRun: boolean;
  dueAtMs: number;
  /** The daemon that the row must belong to. */
  owner: string;
  name: string;
}

/** The exit code of the run. Throws `lock-held` when the due time is another daemon's. */
export async function carryOutDueTime(options: DueTimeOptions, output: Output): Promise<ExitCode> {
  const { configPath, environment, dryRun, dueAtMs, owner, name } = options;
  const config = loadConfig(configPath, environment);
  const database = await openDatabase(config.values.database.url);
  const store = new ScheduleStore(database, name);
  const runner = ownName();
  const claim = async (from: Partial<DueTime>, change: Partial<DueTime>): Promise<void> => {
    if (await store.write(dueAtMs, { state: 'started', ...from }, change)) return;
    throw new AppError('lock-held', `the due time ${new Date(dueAtMs).toISOString()} is given to another process`);
  };
  const { runs } = createStores(database);
  let [exitCode, reason, hint]: [ExitCode, string | null, string | undefined] = [EXIT.internal, null, undefined];
  let run: RunRecord | null = null;
  let runId: string | null = null;
  try {
    await claim({ owner }, { runner, startedAtMs: systemClock.now() });
    runId = (await store.read()).find((row) => row.dueAtMs === dueAtMs)?.runId ?? null;
    run = runId === null ? null : await runs.get(runId);
    /** Before the run is stored: no run of this due time can be overlooked. */
    const bindRun = (id: string): Promise<void> => {
      const deadlineAtMs = systemClock.now() + deadlineOf(config);
      return claim({ runner }, { runId: (runId = id), deadlineAtMs });
    };
    const due = { atMs: dueAtMs, bindRun };
    if (runId !== null && !run) {
      // Its process died just before the run was stored: the daemon decides anew whether it is not too late.
      await claim({ runner }, { runId: (runId = null) });
      exitCode = EXIT.interrupted;
    } else if (!run)
      exitCode = await runCommand({ configPath, flags: [], dryRun, yes: true, environment, due }, output);
    else if (isUnfinished(run)) exitCode = await resumeCommand({ configPath, runId: run.id, environment }, output);
    else exitCode = run.exitCode ?? EXIT.internal;
    return exitCode;
  } catch (error) {
    if (error instanceof AppError) ({ exitCode, hint } = error);
    reason = describeError(error);
    throw error;
  } finally {
    const signOut = async (): Promise<void> => {
      run = runId === null ? null : await runs.get(runId);
      const own = { state: 'started', owner, runner } as const;
      if (run && isUnfinished(run)) return;
      // Left before there was a run: the daemon takes it up, and only then the due time is done.
      if (!run && exitCode === EXIT.interrupted) return;
      if (!run && exitCode === EXIT.locked) {
        const state = config.values.schedule.if_running === 'queue' ? 'queued' : 'skipped';
        await store.write(dueAtMs, own, { state, ...NO_PROCESS, runId: null, reason });
        return;
      }
      const nothing = { ...NO_RESULT, exitCode, reason, hint: hint ?? hintOf(exitCode, null) };
      const result = run ? resultOf(reportOf(run)!) : nothing;
      const end = { state: 'done', result, reason: result.reason, endedAtMs: systemClock.now() } as const;
      // A run that has ended has been announced by its main server.
      await store.write(dueAtMs, own, { ...end, told: run !== null });
    };
    // A database that fails now may be what the run failed of: the daemon writes it down when it is back.
    await signOut().catch(() => undefined);
    await database.close();
  }
}

/** The daemon put together: record, processes, listener, webhooks. Runs until a signal. */
import type { DaemonOptions } from '../../core/feature.ts';
import { join } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isRebuilt } from '../../core/model/rebuilt-run.ts';
import { reportOf } from '../../core/decide/end/report.ts';
import { openDatabase } from '../../core/db/connect.ts';
import { createReaders } from '../../core/db/create-stores.ts';
import { migrate } from '../../core/db/migrate.ts';
import { ScheduleStore } from './schedule-store.ts';
import type { StoredDueTime } from './due-times.ts';
import { createTimetable } from '../../core/config/timetable.ts';
import { createHealthApp } from '../../core/server/health-app.ts';
import { listen } from '../../core/server/listen.ts';
import { resultOf } from '../../core/read/run-result.ts';
import { timedLines } from '../../cli/closed-output.ts';
import { loadConfig } from '../../core/config/load-config.ts';
import type { Output } from '../../core/caller.ts';
import { ownName } from '../../core/lookup/process-name.ts';
import { isUnfinished, unfinishedRuns } from '../../core/lookup/find-run.ts';
import { livingHolder, lockNamesOfConfig } from '../../core/lookup/run-lock.ts';
import { deadlineOf, scheduleNameOf } from '../../core/prepare/settings-of.ts';
import { chooseTarget } from '../../core/config/target.ts';
import { createProcesses, outputFolder } from '../../cli/processes.ts';
import { Scheduler } from './scheduler.ts';

/** Exit code 0 after a signal. Refuses at once what would make every run fail, and an operator's port in use. */
export async function runDaemon(options: DaemonOptions, output: Output): Promise<ExitCode> {
  const { configPath, environment, features, dryRun, signal } = options;
  const config = loadConfig(options);
  const { schedule, server, database: place } = config.values;
  deadlineOf(config);
  chooseTarget(config, dryRun, environment);
  const [name, folder] = [scheduleNameOf(config), outputFolder(configPath)];
  const say = timedLines(output, join(folder, 'daemon.log'));
  const atWork = { config, dryRun, signal, say };
  await using database = await openDatabase(place.url);
  await migrate(database);
  const store = new ScheduleStore(database, name);
  const { runs } = createReaders(database);
  /** One due time, or several that were missed together. Resolves when every target has taken it. */
  const notify = async (rows: readonly StoredDueTime[]): Promise<void> => {
    await Promise.all(features.map(async ({ runEvents }) => runEvents?.decided?.(atWork, rows)));
    // What was cut off is sent by the next daemon: twice rather than never.
    if (!signal.aborted) for (const { dueAtMs, state } of rows) await store.write(dueAtMs, { state }, { told: true });
  };
  const processes = createProcesses(options, name);
  const names = lockNamesOfConfig(config);
  const scheduler = new Scheduler({
    me: ownName(),
    timetable: createTimetable(schedule.cron, schedule.timezone),
    ifRunning: schedule.if_running,
    catchUpMs: schedule.catch_up,
    graceMs: config.values.run.grace,
    store,
    runs: {
      busy: () => livingHolder(runs, names),
      async left(started) {
        const { table } = config.values.results;
        const left = (await unfinishedRuns(runs, names)).filter((run) => !isRebuilt(run));
        return left.find(({ id, settings }) => settings.results.table === table && !started.includes(id))?.id ?? null;
      },
      async end(runId) {
        const run = await runs.get(runId);
        if (run === null) return undefined;
        const report = reportOf(run);
        return isUnfinished(run) || report === null ? 'unfinished' : resultOf(report, run);
      },
    },
    processes,
    clock: systemClock,
    say,
    notify,
    onStuck: (run) => features.forEach(({ runEvents }) => void runEvents?.stuck?.(atWork, run)),
  });
  const host = server.operator.slice(0, server.operator.lastIndexOf(':'));
  const health = () => scheduler.health();
  await using listener = await (options.listenWith?.(health) ??
    listen(createHealthApp(health, host), server.operator, 'server.operator'));
  say(`schedule ${name}: ${schedule.cron} in ${schedule.timezone}; runs are ${dryRun ? 'dry runs' : 'real'}`);
  say(`health: http://${host}:${listener.port}/healthz; output of the runs: ${folder}`);
  // A dry run must not look at the user's account.
  if (!dryRun) void processes.start('gc', 'gc').ended.then(({ code }) => say(`gc has ended with exit code ${code}`));
  await scheduler.run(signal);
  say('the schedule has ended');
  output.document({ schedule: name, ...scheduler.health() });
  return EXIT.complete;
}

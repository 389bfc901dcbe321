/** The daemon put together: record, processes, listener, webhook. Runs until a signal. */
import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { migrate } from '../../db/migrate.ts';
import { KnexScheduleStore } from '../../db/schedule-store.ts';
import { stuckNotice } from '../../schedule/notice.ts';
import { Scheduler } from '../../schedule/scheduler.ts';
import { createNotifier } from '../../schedule/notifier.ts';
import { createTimetable } from '../../schedule/timetable.ts';
import { Webhook } from '../../schedule/webhook.ts';
import { createHealthApp } from '../../server/health-app.ts';
import { listen } from '../../server/listen.ts';
import { onLostOutput } from '../closed-output.ts';
import type { Config } from '../../app/config/load-config.ts';
import type { Output } from '../output.ts';
import { deadlineOf } from '../../app/plan/settings-of.ts';
import { chooseTarget } from '../../app/plan/target.ts';
import { isDeadHere, ownName } from '../../app/run/process-name.ts';
import { createProcesses, outputFolder } from './processes.ts';
import { createRunViews } from './run-views.ts';
import { scheduleName } from './schedule-name.ts';

export interface DaemonOptions {
  config: Config;
  environment: Readonly<Record<string, string | undefined>>;
  /** Handed to the processes as it is; with the settings of above and what else the machine has. */
  processEnvironment: Readonly<Record<string, string | undefined>>;
  dryRun: boolean;
  launcher: string;
  signal: AbortSignal;
}

/**
 * Exit code 0 after a signal. What would make every run fail is refused at once: no deadline, settings that a run on AWS needs,
 * a database that cannot be opened, an operator's port that is taken.
 */
export async function runDaemon(options: DaemonOptions, output: Output): Promise<ExitCode> {
  const { config, environment, dryRun, launcher, signal } = options;
  const { schedule, server, database: place } = config.values;
  deadlineOf(config);
  chooseTarget(config, dryRun, environment);
  const name = scheduleName(config);
  const say = createVoice(output, join(outputFolder(config.file), 'daemon.log'));
  const alarm = (text: string): void => say(`! ${text}`);
  const database = await openDatabase(place.url);
  try {
    await migrate(database);
    const store = new KnexScheduleStore(database, name);
    const { url, on } = { url: schedule.webhook, on: schedule.webhook_on };
    const webhook = url ? new Webhook({ url, on, secret: schedule.webhook_secret, clock: systemClock, alarm }) : null;
    const named = { name, timezone: schedule.timezone };
    const scheduler = new Scheduler({
      store,
      runs: createRunViews(createStores(database).runs, config.values.results.table),
      processes: createProcesses({
        node: process.execPath,
        launcher,
        configFile: config.file,
        environment: options.processEnvironment,
        dryRun,
        name,
        clock: systemClock,
      }),
      clock: systemClock,
      timetable: createTimetable(schedule.cron, schedule.timezone),
      ifRunning: schedule.if_running,
      catchUpMs: schedule.catch_up,
      // A dry run must not look at the user's account.
      collectGarbage: !dryRun,
      owner: ownName(),
      isDead: isDeadHere,
      say,
      alarm,
      tell: webhook ? createNotifier(webhook, store, named, systemClock) : () => undefined,
      onStuck: ({ kind, dueAtMs, run }) =>
        void webhook?.tell(stuckNotice(run ? `run ${run.id}` : kind, dueAtMs, run?.id ?? null, named)),
    });
    const host = server.operator.slice(0, server.operator.lastIndexOf(':'));
    const listener = await listen(
      createHealthApp(() => scheduler.health(), host),
      server.operator,
      'server.operator',
    );
    say(`schedule ${name}: ${schedule.cron} in ${schedule.timezone}; runs are ${dryRun ? 'dry runs' : 'real'}`);
    say(`health: http://${host}:${listener.port}/healthz; output of the runs: ${outputFolder(config.file)}`);
    try {
      await scheduler.run(signal);
    } finally {
      webhook?.close();
      await listener.close();
    }
    say('the schedule has ended');
    output.document({ schedule: name, ...scheduler.health() });
    return EXIT.complete;
  } finally {
    await database.close();
  }
}

/** What the daemon says has its time; where its output is lost, it goes to this file from then on. */
function createVoice(output: Output, file: string): (text: string) => void {
  let isLost = false;
  const stamped = (text: string): string => `${new Date(systemClock.now()).toISOString()} ${text}`;
  onLostOutput((text) => {
    isLost = true;
    append(file, stamped(`! ${text}`));
  });
  return (text) => {
    const line = stamped(text);
    output.line(line);
    if (isLost) append(file, line);
  };
}

/** A file that cannot be written either costs the line: the schedule's record is in the database. */
function append(file: string, line: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, `${line}\n`, { mode: 0o600 });
  } catch {
    // Nobody is left who could be told.
  }
}

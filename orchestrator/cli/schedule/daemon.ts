/** The daemon put together: record, processes, listener, webhooks. Runs until a signal. */
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import type { RunRecord, RunStore } from '../../control/model/stores.ts';
import { isRebuilt } from '../../control/results/recover.ts';
import { reportOf } from '../../control/results/report.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { migrate } from '../../db/migrate.ts';
import { ScheduleStore } from '../../db/schedule-store.ts';
import type { Named, Notice } from '../../notify/notice.ts';
import { NO_RESULT, endedNotice, stuckNotice, unstartedNotice } from '../../notify/notice.ts';
import { notifyPatiently } from '../../notify/webhook.ts';
import type { Stop } from '../../schedule/decide.ts';
import type { RunView, StoredDueTime } from '../../schedule/due-times.ts';
import { createTimetable } from '../../schedule/timetable.ts';
import { createHealthApp } from '../../server/health-app.ts';
import { listen } from '../../server/listen.ts';
import { namedOf, resultOf, targetsOf } from '../../app/run/announce.ts';
import { onLostOutput } from '../closed-output.ts';
import type { Config } from '../../app/config/load-config.ts';
import { isUnfinished } from '../../app/run/find-run.ts';
import type { Output } from '../output.ts';
import { ownName } from '../../app/run/process-name.ts';
import { lookAtHolder } from '../../app/run/run-lock.ts';
import { deadlineOf } from '../../app/plan/settings-of.ts';
import { chooseTarget } from '../../app/plan/target.ts';
import type { ProcessOptions } from './processes.ts';
import { createProcesses, outputFolder } from './processes.ts';
import type { SchedulerOptions } from './scheduler.ts';
import { Scheduler } from './scheduler.ts';

export interface DaemonOptions extends Omit<ProcessOptions, 'configFile'> {
  config: Config;
  environment: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
}

/**
 * Exit code 0 after a signal. What would make every run fail is refused at once: no deadline, settings that a run on AWS
 * needs, a database that cannot be opened, an operator's port that is taken.
 */
export async function runDaemon(options: DaemonOptions, output: Output): Promise<ExitCode> {
  const { config, environment, dryRun, signal } = options;
  const { schedule, server, database: place } = config.values;
  deadlineOf(config);
  chooseTarget(config, dryRun, environment);
  const named = namedOf(config);
  const say = createVoice(output, outputFolder(config.file));
  const alarm = (text: string): void => say(`! ${text}`);
  const database = await openDatabase(place.url);
  try {
    await migrate(database);
    const store = new ScheduleStore(database, named.name);
    const scheduler = new Scheduler({
      me: ownName(),
      timetable: createTimetable(schedule.cron, schedule.timezone),
      ifRunning: schedule.if_running,
      catchUpMs: schedule.catch_up,
      store,
      runs: createRunViews(createStores(database).runs, config),
      processes: createProcesses(
        {
          ...options,
          configFile: config.file,
        },
        named.name,
      ),
      clock: systemClock,
      collectGarbage: !dryRun,
      say,
      alarm,
      ...createTeller(store, config, signal, alarm),
    });
    const host = server.operator.slice(0, server.operator.lastIndexOf(':'));
    const app = createHealthApp(() => scheduler.health(), host);
    const listener = await listen(app, server.operator, 'server.operator');
    say(`schedule ${named.name}: ${schedule.cron} in ${schedule.timezone}; runs are ${dryRun ? 'dry runs' : 'real'}`);
    say(`health: http://${host}:${listener.port}/healthz; output of the runs: ${outputFolder(config.file)}`);
    try {
      await scheduler.run(signal);
    } finally {
      await listener.close();
    }
    say('the schedule has ended');
    output.document({ schedule: named.name, ...scheduler.health() });
    return EXIT.complete;
  } finally {
    await database.close();
  }
}

/** Runs as the schedule sees them; its own are those that fill its result table, also those by hand. */
export function createRunViews(runs: RunStore, { values }: Config): SchedulerOptions['runs'] {
  const viewOf = (run: RunRecord): RunView => {
    const { id, startedAtMs, deadlineAtMs, settings } = run;
    const report = isUnfinished(run) ? null : reportOf(run);
    const ours = settings.results.table === values.results.table;
    return { id, startedAtMs, deadlineAtMs, graceMs: settings.run.graceMs, ours, result: report && resultOf(report) };
  };
  return {
    async look() {
      const { state, holder } = runs.guard ? await lookAtHolder(runs.guard) : { state: 'nobody', holder: null };
      const busy = state === 'alive' && holder ? { owner: holder.owner, runId: holder.runId } : null;
      const unfinished = (await runs.list(20)).filter((run) => isUnfinished(run) && !isRebuilt(run));
      return { busy, unfinished: unfinished.map(viewOf) };
    },
    async get(id) {
      const run = await runs.get(id);
      return run ? viewOf(run) : null;
    },
  };
}

/** Tells the webhooks what became of due times that have no run of their own to tell it. */
function createTeller(store: ScheduleStore, config: Config, signal: AbortSignal, alarm: (text: string) => void) {
  const [targets, named, telling] = [targetsOf(config), namedOf(config), new Set<string>()];
  const delivery = { clock: systemClock, signal };
  return {
    tell(rows: StoredDueTime[]): void {
      // By state too: a due time that was missed under a wrong clock may have a run after all.
      const fresh = rows.filter(({ dueAtMs, state }) => !telling.has(`${dueAtMs} ${state}`));
      for (const { dueAtMs, state } of fresh) telling.add(`${dueAtMs} ${state}`);
      const [missed, others] = [fresh.filter((r) => r.state === 'missed'), fresh.filter((r) => r.state !== 'missed')];
      for (const group of [...(missed.length > 0 ? [missed] : []), ...others.map((row) => [row])]) {
        const mark = async (): Promise<void> => {
          // A notice that was cut off is told by the next daemon: twice rather than never.
          for (const { dueAtMs, state } of signal.aborted ? [] : group)
            await store.write(dueAtMs, { state }, { told: true });
        };
        void notifyPatiently(targets, noticeOf(group, named), delivery, alarm)
          .then(mark)
          .catch(() => undefined);
      }
    },
    onStuck({ name, runId, dueAtMs }: Stop): void {
      void notifyPatiently(targets, stuckNotice(name, runId, dueAtMs, named), delivery, alarm);
    },
  };
}

/** Of one due time, or of several that were missed together. */
function noticeOf(rows: readonly StoredDueTime[], named: Named): Notice {
  const row = rows.at(-1)!;
  if (row.state === 'done') return endedNotice(row.result ?? { ...NO_RESULT, reason: row.reason }, row, named);
  const times = rows.map(({ dueAtMs }) => dueAtMs);
  return unstartedNotice(row.state === 'missed' ? 'missed' : 'skipped', times, row.reason, named);
}

/** What the daemon says has its time; where its output is lost, it goes to a file from then on. */
function createVoice(output: Output, folder: string): (text: string) => void {
  let isLost = false;
  const say = (text: string): void => {
    const line = `${new Date(systemClock.now()).toISOString()} ${text}`;
    output.line(line);
    if (!isLost) return;
    try {
      mkdirSync(folder, { recursive: true });
      appendFileSync(join(folder, 'daemon.log'), `${line}\n`, { mode: 0o600 });
    } catch {
      // The schedule's record is in the database.
    }
  };
  onLostOutput((text) => {
    isLost = true;
    say(`! ${text}`);
  });
  return say;
}

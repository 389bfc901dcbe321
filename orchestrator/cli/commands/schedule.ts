/** `orchestrator schedule`: the daemon on the main server, its unit file, crontab lines, and the next due times. */
import { dirname, resolve } from 'node:path';
import { userInfo } from 'node:os';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { showLocal } from '../../../shared/domain/local-time.ts';
import { createTimetable } from '../../schedule/timetable.ts';
import { namedOf } from '../../app/run/announce.ts';
import type { Config } from '../../app/config/load-config.ts';
import { loadConfig } from '../../app/config/load-config.ts';
import { isUnderNohup } from '../interrupts.ts';
import type { Output } from '../output.ts';
import { renderTable } from '../../app/text-table.ts';
import { crontabLines } from '../schedule/crontab.ts';
import { findPrograms } from '../schedule/programs.ts';
import { systemdUnit, unitName } from '../schedule/systemd-unit.ts';

export interface ScheduleOptions {
  configPath: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** For the processes that the daemon starts; what is printed names the npm that is found on its PATH. */
  processEnvironment: Readonly<Record<string, string | undefined>>;
  /** The program that this process runs. */
  launcher: string;
  dryRun: boolean;
  /** Prints so many due times and does nothing else. */
  next: number | null;
  printSystemd: boolean;
  printCrontab: boolean;
  /** Set in the process of one due time. */
  carryOut: { dueAtMs: number; owner: string; name: string } | null;
}

export async function scheduleCommand(options: ScheduleOptions, output: Output): Promise<ExitCode> {
  const { configPath, environment, dryRun, carryOut } = options;
  const modes = [options.next !== null, options.printSystemd, options.printCrontab].filter(Boolean).length;
  if (modes > 1)
    throw new AppError('usage', 'schedule takes one of --next, --print-systemd and --print-crontab at a time');
  if (carryOut) {
    // A daemon that waits all day does without what a run needs.
    const { carryOutDueTime } = await import('../schedule/carry-out-due-time.ts');
    return carryOutDueTime({ configPath, environment, dryRun, ...carryOut }, output);
  }
  const config = loadConfig(configPath, environment);
  if (options.next !== null) return showNext(config, options.next, output);
  if (options.printSystemd || options.printCrontab) return print(config, options, output);
  const { runDaemon } = await import('../schedule/daemon.ts');
  const leave = new AbortController();
  const onSignal = (): void => leave.abort();
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', ...(isUnderNohup() ? [] : (['SIGHUP'] as const))];
  for (const signal of signals) process.on(signal, onSignal);
  try {
    return await runDaemon({ ...options, launcher: resolve(options.launcher), config, signal: leave.signal }, output);
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
  }
}

function showNext(config: Config, count: number, output: Output): ExitCode {
  const { cron, timezone } = config.values.schedule;
  const timetable = createTimetable(cron, timezone);
  const times: number[] = [];
  for (let ms = timetable.next(systemClock.now()); ms !== null && times.length < count; ms = timetable.next(ms))
    times.push(ms);
  const rows = times.map((ms) => [showLocal(ms, timezone), new Date(ms).toISOString()]);
  output.line(renderTable([`${cron} is due`, 'UTC'], rows));
  output.document({ cron, timezone, next: times.map((ms) => new Date(ms).toISOString()) });
  return EXIT.complete;
}

function print(config: Config, options: ScheduleOptions, output: Output): ExitCode {
  const { cron, timezone } = config.values.schedule;
  const { dryRun } = options;
  const workingDirectory = dirname(config.file);
  const program = {
    node: process.execPath,
    launcher: resolve(options.launcher),
    configFile: config.file,
    programs: findPrograms(process.execPath, options.processEnvironment.PATH),
  };
  if (options.printCrontab) {
    const crontab = crontabLines({ ...program, workingDirectory, cron, timezone, dryRun });
    output.line(crontab.trimEnd());
    output.document({ crontab });
    return EXIT.complete;
  }
  const name = namedOf(config).name;
  const sqlite = /^sqlite:(\/.+)$/.exec(config.values.database.url)?.[1];
  const folders = [...new Set([workingDirectory, ...(sqlite ? [dirname(sqlite)] : [])])];
  const user = userInfo().username;
  const unit = systemdUnit({ ...program, workingDirectory, folders, user, name, dryRun });
  output.line(unit.trimEnd());
  output.document({ name: unitName(name), unit });
  return EXIT.complete;
}

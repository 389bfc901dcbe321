/** `orchestrator schedule`: the daemon on the main server, its unit file, crontab lines, and the next due times. */
import { dirname, resolve } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { showLocal } from '../../../shared/domain/local-time.ts';
import { createTimetable } from '../../core/config/timetable.ts';
import { scheduleNameOf } from '../../core/prepare/settings-of.ts';
import { type Environment, loadConfig } from '../../core/config/load-config.ts';
import type { ConfigSource } from '../../core/feature.ts';
import { watchInterrupts } from '../../cli/interrupts.ts';
import type { Output } from '../../cli/output.ts';
import { userName } from '../../cli/passwd-entry.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { crontabLines, systemdUnit, unitName } from './print.ts';

export interface ScheduleOptions extends ConfigSource {
  /**
   * The environment for the processes that the daemon starts; what is printed names the npm that is found on its PATH.
   */
  processEnvironment: Environment;
  /** The program that this process runs. */
  launcher: string;
  dryRun: boolean;
  /** Prints this many due times and does nothing else. */
  next: number | null;
  printSystemd?: boolean;
  printCrontab?: boolean;
}

export async function scheduleCommand(options: ScheduleOptions, output: Output): Promise<ExitCode> {
  const { next, printSystemd, printCrontab } = options;
  if ([next !== null, printSystemd, printCrontab].filter(Boolean).length > 1)
    throw new AppError('usage', 'schedule takes one of --next, --print-systemd and --print-crontab at a time');
  if (next !== null || printSystemd || printCrontab) return print(options, output);
  // What only prints loads none of it.
  const { runDaemon } = await import('./daemon.ts');
  using interrupts = watchInterrupts();
  return await runDaemon({ ...options, launcher: resolve(options.launcher), signal: interrupts.leave }, output);
}

function print(options: ScheduleOptions, output: Output): ExitCode {
  const config = loadConfig(options);
  const { cron, timezone } = config.values.schedule;
  if (options.next !== null) {
    const timetable = createTimetable(cron, timezone);
    const next: string[] = [];
    for (let ms = timetable.next(systemClock.now()); ms !== null && next.length < options.next; ms = timetable.next(ms))
      next.push(new Date(ms).toISOString());
    const rows = next.map((iso) => [showLocal(Date.parse(iso), timezone), iso]);
    output.line(renderTable([`${cron} is due`, 'UTC'], rows));
    output.document({ cron, timezone, next });
    return EXIT.complete;
  }
  const workingDirectory = dirname(config.file);
  const program = {
    node: process.execPath,
    launcher: resolve(options.launcher),
    configFile: config.file,
    workingDirectory,
    dryRun: options.dryRun,
    userPath: options.processEnvironment.PATH,
  };
  if (options.printCrontab) {
    const crontab = crontabLines(program, cron, timezone);
    output.line(crontab.trimEnd());
    output.document({ crontab });
    return EXIT.complete;
  }
  const name = scheduleNameOf(config);
  const sqlite = /^sqlite:(\/.+)$/.exec(config.values.database.url)?.[1];
  const folders = [...new Set([workingDirectory, ...(sqlite ? [dirname(sqlite)] : [])])];
  const unit = systemdUnit(program, name, userName(), folders);
  output.line(unit.trimEnd());
  output.document({ name: unitName(name), unit });
  return EXIT.complete;
}

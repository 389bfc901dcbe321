/** `orchestrator schedule`: runs at due times. */
import { scheduleNameOf } from '../../core/prepare/settings-of.ts';
import type { Output } from '../../cli/output.ts';
import type { ScheduleOptions } from './command.ts';
import type { Given, FeatureDeclaration } from '../../cli/program/feature.ts';
import { configFlag, dryRunFlag, flag } from '../../cli/program/flags.ts';
import { readFewCount } from '../../cli/program/readers.ts';

export const SCHEDULE: FeatureDeclaration = {
  commands: [
    {
      name: 'schedule',
      help: ['docs/schedule.md', 'schedule --next 5', 'schedule --print-systemd', 'schedule'],
      description: 'a daemon that starts a run whenever schedule.cron is due, and takes up what a crash has left',
      options: [
        configFlag,
        flag('--next <number>', 'print this many due times and change nothing', readFewCount),
        flag('--print-systemd', 'print a unit file for the daemon'),
        flag('--print-crontab', 'print crontab lines to use instead of the daemon'),
        dryRunFlag,
      ],
      async load() {
        const { scheduleCommand } = await import('./command.ts');
        return ({ next = null, ...given }: Given & Partial<ScheduleOptions>, output: Output) =>
          scheduleCommand({ ...given, processEnvironment: process.env, launcher: process.argv[1]!, next }, output);
      },
    },
  ],
  async load() {
    const { dueTimesOfRuns } = await import('./run-events.ts');
    return {
      runEvents: dueTimesOfRuns,
      async nextDue(database, config) {
        const { ScheduleStore } = await import('./schedule-store.ts');
        return new ScheduleStore(database, scheduleNameOf(config)).nextDue();
      },
      runDaemon: async (options, output) => (await import('./daemon.ts')).runDaemon(options, output),
    };
  },
};

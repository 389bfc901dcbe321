/** Commands that start a run, end it, or load its results. */
import { FAILURE_REASONS, type FailureReason } from '../../../shared/domain/outcome.ts';
import type { ScheduleOptions } from '../commands/schedule.ts';
import type { Output } from '../output.ts';
import type { CommandDeclaration, Given } from './add-command.ts';
import {
  acceptDropFlag,
  configFlag,
  deadlineFlag,
  dryRunFlag,
  flag,
  maxCostFlag,
  quietFlag,
  verboseFlag,
  yesFlag,
} from './flags.ts';
import { readCount, readFewCount, readReasons } from './readers.ts';

export const RUN_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: 'plan',
    description: 'show instances, end, probability and price of a run; changes nothing',
    options: [configFlag, deadlineFlag, maxCostFlag, acceptDropFlag, dryRunFlag],
    load: async () => (await import('../commands/run.ts')).planCommand,
  },
  {
    name: 'run',
    description: 'plan, launch, crawl, publish and report',
    options: [
      configFlag,
      deadlineFlag,
      maxCostFlag,
      acceptDropFlag,
      dryRunFlag,
      flag('--ids <file>', 'crawl the product IDs in this file, one a line, or - for stdin'),
      flag('--limit <number>', 'crawl only the first products of products.query, as a trial', readCount).conflicts(
        'ids',
      ),
      flag('--metrics <address>', 'serve metrics for Prometheus on this address and port while the run works'),
      yesFlag('before launching'),
      quietFlag,
      verboseFlag,
    ],
    load: async () => (await import('../commands/run.ts')).runCommand,
  },
  {
    name: 'discover',
    description: 'find the pages of a site by its links, sitemaps or search, and crawl them',
    options: [
      configFlag,
      deadlineFlag,
      maxCostFlag,
      dryRunFlag,
      flag('--metrics <address>', 'serve metrics for Prometheus on this address and port while the run works'),
      yesFlag('before launching'),
      quietFlag,
      verboseFlag,
    ],
    load: async () => (await import('../commands/run.ts')).discoverCommand,
  },
  {
    name: 'resume',
    description: 'take up a run whose main server died or left',
    argument: ['[run]', 'default: the newest unfinished run'],
    options: [configFlag, quietFlag, verboseFlag],
    load: async () => (await import('../commands/run.ts')).resumeCommand,
  },
  {
    name: 'retry',
    description: 'a run of the products that failed in another one',
    argument: ['[run]', 'default: the newest ended run'],
    options: [
      configFlag,
      deadlineFlag,
      maxCostFlag,
      dryRunFlag,
      flag(
        '--reason <reasons>',
        `only products that failed for one of these, separated by commas: ${FAILURE_REASONS.join(', ')}`,
        readReasons,
      ),
      yesFlag('before launching'),
      quietFlag,
      verboseFlag,
    ],
    async load() {
      const { retryCommand } = await import('../commands/run.ts');
      return (given: Given & { reason?: FailureReason[] }, output: Output) =>
        retryCommand({ ...given, reasons: given.reason }, output);
    },
  },
  {
    name: 'stop',
    description: 'end a run early and keep what it has',
    argument: ['[run]', 'default: the newest unfinished run'],
    options: [configFlag],
    load: async () => (await import('../commands/end.ts')).stopCommand,
  },
  {
    name: 'cancel',
    description: 'end a run and discard its results; also those of a held run',
    argument: ['<run>', 'its name, as `status` lists it'],
    options: [configFlag, yesFlag('before discarding')],
    load: async () => (await import('../commands/end.ts')).cancelCommand,
  },
  {
    name: 'publish',
    description: 'publish the rows of a held run',
    argument: ['[run]', 'default: the newest held run'],
    options: [flag('--force', 'also over the rows of a run that began later'), configFlag],
    load: async () => (await import('../commands/end.ts')).publishCommand,
  },
  {
    name: 'load',
    description: 'bring results from the bucket into the database, also of a run that it has lost',
    argument: ['<run>', 'its name, as `status` or the folders under runs/ in the bucket give it'],
    options: [configFlag],
    load: async () => (await import('../commands/run.ts')).loadCommand,
  },
  {
    name: 'schedule',
    description: 'a daemon that starts a run whenever schedule.cron is due, and takes up what a crash has left',
    options: [
      configFlag,
      flag('--next <number>', 'print this many due times and change nothing', readFewCount),
      flag('--print-systemd', 'print a unit file for the daemon'),
      flag('--print-crontab', 'print crontab lines to use instead of the daemon'),
      dryRunFlag,
      flag('--carry-out <ms>', 'the due time of this process', Number).hideHelp(),
      flag('--owner <name>', 'the daemon that has started it').hideHelp(),
      flag('--record <name>', 'name of its schedule').hideHelp(),
    ],
    async load() {
      const { scheduleCommand } = await import('../commands/schedule.ts');
      type Flags = Given & Partial<ScheduleOptions> & { carryOut?: number; owner?: string; record?: string };
      return ({ next = null, carryOut, owner = '', record = '', ...given }: Flags, output: Output) =>
        scheduleCommand(
          {
            ...given,
            processEnvironment: process.env,
            launcher: process.argv[1]!,
            next,
            carryOut: carryOut === undefined ? null : { dueAtMs: carryOut, owner, name: record },
          },
          output,
        );
    },
  },
  {
    name: 'serve',
    description: "the operator's page: every run, live; it starts nothing by itself",
    options: [
      configFlag,
      flag('--listen <address>', 'address and port; default: server.operator, 127.0.0.1:8701'),
      flag('--schedule', 'run the schedule too: one service for the main server'),
      dryRunFlag,
    ],
    async load() {
      const { serveCommand } = await import('../commands/serve.ts');
      return (given: Given & { listen?: string; schedule?: boolean }, output: Output) =>
        serveCommand({ ...given, processEnvironment: process.env, launcher: process.argv[1]! }, output);
    },
  },
  {
    name: 'notify',
    description: 'try the webhooks that are told of the end of runs',
    options: [
      flag('--test', 'send a test notice to every one of them, and print what each answers').makeOptionMandatory(),
      configFlag,
    ],
    load: async () => (await import('../commands/notify.ts')).notifyCommand,
  },
];

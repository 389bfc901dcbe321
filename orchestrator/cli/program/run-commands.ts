/** Commands that start a run, end it, or load its results. */
import { parseDuration } from '../../../shared/domain/quantity.ts';
import { FAILURE_REASONS, type FailureReason } from '../../../shared/domain/outcome.ts';
import type { ScheduleOptions } from '../../features/schedule/command.ts';
import type { Output } from '../output.ts';
import type { CommandDeclaration, Given } from './add-command.ts';
import {
  acceptDropFlag,
  configFlag,
  detailFlags,
  dryRunFlag,
  flag,
  launchFlags,
  metricsFlag,
  planFlags,
  yesFlag,
} from './flags.ts';
import { readCount, readDueStart, readDuration, readFewCount, readReasons, readSlots } from './readers.ts';

export const RUN_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: 'plan',
    help: [
      'docs/decisions/0001-planning.md',
      'plan --deadline 4h',
      'plan --deadline 4h --dry-run --json',
      'plan --retry RUN --deadline 1h',
    ],
    description: 'show instances, end, probability and price of a run; changes nothing',
    options: [
      ...planFlags,
      acceptDropFlag,
      dryRunFlag,
      flag('--retry <run>', 'plan what `retry` of this run would crawl').conflicts('acceptDrop'),
    ],
    load: async () => (await import('../commands/run.ts')).planCommand,
  },
  {
    name: 'run',
    help: [
      'docs/what-happens-when.md',
      'run --deadline 4h --dry-run',
      'run --deadline 4h --max-cost 5 --yes',
      'run --deadline 10m --dry-run --limit 20',
      'run --deadline 1h --ids ids.txt',
    ],
    description: 'plan, launch, crawl, publish and report',
    options: [
      ...planFlags,
      acceptDropFlag,
      dryRunFlag,
      flag('--ids <file>', 'crawl the product IDs in this file, one a line, or - for stdin'),
      flag('--limit <number>', 'crawl only the first products of products.query, as a trial', readCount).conflicts(
        'ids',
      ),
      metricsFlag,
      ...launchFlags,
      flag('--due <start>', 'the due time of a schedule that it is started for', readDueStart).hideHelp(),
    ],
    load: async () => (await import('../commands/run.ts')).runCommand,
  },
  {
    name: 'discover',
    help: ['docs/discovery.md', 'discover --deadline 2h --dry-run', 'discover --deadline 4h --yes'],
    description: 'find the pages of a site by its links, sitemaps or search, and crawl them',
    options: [...planFlags, dryRunFlag, metricsFlag, ...launchFlags],
    load: async () => (await import('../commands/run.ts')).discoverCommand,
  },
  {
    name: 'resume',
    help: ['docs/what-happens-when.md', 'resume'],
    description: 'take up a run whose main server died or left',
    argument: ['[run]', 'default: the newest unfinished run'],
    options: [configFlag, ...detailFlags],
    load: async () => (await import('../commands/run.ts')).resumeCommand,
  },
  {
    name: 'retry',
    help: ['docs/exit-codes.md', 'retry --deadline 1h', 'retry --reason timeout,network'],
    description: 'a run of the products that failed in another one: a dry run if that was one, else on AWS',
    argument: ['[run]', 'default: the newest ended run'],
    options: [
      ...planFlags,
      dryRunFlag,
      flag(
        '--reason <reasons>',
        `only products that failed for one of these, separated by commas: ${FAILURE_REASONS.join(', ')}`,
        readReasons,
      ),
      ...launchFlags,
    ],
    async load() {
      const { retryCommand } = await import('../commands/run.ts');
      return (given: Given & { reason?: FailureReason[] }, output: Output) =>
        retryCommand({ ...given, reasons: given.reason }, output);
    },
  },
  {
    name: 'stop',
    help: ['docs/what-happens-when.md', 'stop'],
    description: 'end a run early and keep what it has',
    argument: ['[run]', 'default: the newest unfinished run'],
    options: [configFlag],
    load: async () => (await import('../commands/end.ts')).stopCommand,
  },
  {
    name: 'cancel',
    help: ['docs/what-happens-when.md', 'cancel RUN'],
    description: 'end a run and discard its results; also those of a held run',
    argument: ['<run>', 'its name, as `status` lists it'],
    options: [configFlag, yesFlag('before discarding')],
    load: async () => (await import('../commands/end.ts')).cancelCommand,
  },
  {
    name: 'publish',
    help: ['docs/decisions/0009-results.md', 'publish', 'publish RUN --force'],
    description: 'publish the rows of a held run',
    argument: ['[run]', 'default: the newest held run'],
    options: [flag('--force', 'also over the rows of a run that began later'), configFlag],
    load: async () => (await import('../commands/end.ts')).publishCommand,
  },
  {
    name: 'exec',
    help: [
      'docs/operations.md',
      'exec RUN -- uptime',
      "exec RUN --slot 0 --slot 3 -- 'df -h / | tail -1'",
      'exec RUN --update',
    ],
    description: 'run a shell command on the instances of a run, or bring them to the bundle of this version',
    argument: ['<run>', 'its name, as `status` lists it'],
    rest: ['[command...]', 'after --: its words, joined by blanks, are one line for the shell'],
    options: [
      flag('--slot <number>', 'only this slot; may be repeated', readSlots),
      flag('--timeout <duration>', 'time limit on each instance', readDuration).default('60s'),
      flag('--update', 'replace the bundle, one instance after another').conflicts('slot'),
      configFlag,
    ],
    async load() {
      const { execCommand, updateCommand } = await import('../../features/exec/command.ts');
      type Flags = Given & { slot?: number[]; timeout: string; update?: boolean };
      return ({ slot: slots = [], timeout, update, runId, ...given }: Flags, output: Output) => {
        const options = { ...given, runId: runId!, words: given.rest, slots, timeoutMs: parseDuration(timeout)! };
        return update ? updateCommand(options, output) : execCommand(options, output);
      };
    },
  },
  {
    name: 'load',
    help: ['docs/what-happens-when.md', 'load RUN'],
    description: 'bring results from the bucket into the database, also of a run that it has lost',
    argument: ['<run>', 'its name, as `status` or the folders under runs/ in the bucket give it'],
    options: [configFlag],
    load: async () => (await import('../commands/run.ts')).loadCommand,
  },
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
      const { scheduleCommand } = await import('../../features/schedule/command.ts');
      return ({ next = null, ...given }: Given & Partial<ScheduleOptions>, output: Output) =>
        scheduleCommand({ ...given, processEnvironment: process.env, launcher: process.argv[1]!, next }, output);
    },
  },
  {
    name: 'serve',
    help: ['docs/dashboard.md', 'serve', 'serve --schedule', 'serve --listen 127.0.0.1:0'],
    description: "the operator's page: every run, live; it starts nothing by itself",
    options: [
      configFlag,
      flag('--listen <address>', 'address and port; default: server.operator, 127.0.0.1:8701'),
      flag('--schedule', 'run the schedule too: one service for the main server'),
      dryRunFlag,
    ],
    async load() {
      const { serveCommand } = await import('../../features/serve/command.ts');
      return (given: Given & { listen?: string; schedule?: boolean }, output: Output) =>
        serveCommand({ ...given, processEnvironment: process.env, launcher: process.argv[1]! }, output);
    },
  },
  {
    name: 'notify',
    help: ['docs/notify.md', 'notify --test'],
    description: 'send a test notice to every target of notify',
    options: [flag('--test', 'send the notice, and print what each target answers').makeOptionMandatory(), configFlag],
    load: async () => (await import('../../features/notify/command.ts')).notifyCommand,
  },
];

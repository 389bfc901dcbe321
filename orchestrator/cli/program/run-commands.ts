/** Commands that start a run, end it, or load its results. */
import { FAILURE_REASONS, type FailureReason } from '../../../shared/domain/outcome.ts';
import type { Output } from '../output.ts';
import type { CommandDeclaration, Given } from './feature.ts';
import {
  acceptDropFlag,
  addColumnsFlag,
  configFlag,
  detailFlags,
  dryRunFlag,
  flag,
  launchFlags,
  metricsFlag,
  planFlags,
  yesFlag,
} from './flags.ts';
import { readCount, readDuration, readDueStart, readReasons } from './readers.ts';

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
      flag(
        '--ids <file>',
        'crawl the product IDs in this file, one a line (with site.hosts each with its URL after a tab), or - for stdin',
      ),
      flag('--limit <number>', 'crawl only the first products of products.query, as a trial', readCount).conflicts(
        'ids',
      ),
      metricsFlag,
      addColumnsFlag,
      ...launchFlags,
      flag('--due <start>', 'the due time of a schedule that it is started for', readDueStart).hideHelp(),
    ],
    load: async () => (await import('../commands/run.ts')).runCommand,
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
      addColumnsFlag,
      ...launchFlags,
    ],
    async load() {
      const { retryCommand } = await import('../commands/run.ts');
      return (given: Given & { reason?: FailureReason[] }, output: Output) =>
        retryCommand({ ...given, reasons: given.reason }, output);
    },
  },
  {
    name: 'pace',
    help: ['docs/slower.md', 'pace RUN --interval 20s', 'pace RUN --pause 30m', 'pace RUN --reset'],
    description: 'slow a run down, or pause it: the site asks for less',
    argument: ['[run]', 'default: the newest unfinished run'],
    options: [
      flag('--interval <duration>', 'between two requests of one address; only longer than configured', readDuration),
      flag('--pause <duration>', 'no request from any address for so long', readDuration),
      flag('--next-plan', 'the plan after this run keeps the interval and the number of addresses, too'),
      flag('--reset', 'go back to what is configured').conflicts(['interval', 'pause', 'nextPlan']),
      configFlag,
    ],
    load: async () => (await import('../commands/pace.ts')).paceCommand,
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
    name: 'load',
    help: ['docs/what-happens-when.md', 'load RUN'],
    description: 'bring results from the bucket into the database, also of a run that it has lost',
    argument: ['<run>', 'its name, as `status` or the folders under runs/ in the bucket give it'],
    options: [configFlag],
    load: async () => (await import('../commands/run.ts')).loadCommand,
  },
];

/** Commands that inspect runs. */
import { LEVELS } from '../log-lines.ts';
import type { Output } from '../output.ts';
import type { CommandDeclaration, Given } from './feature.ts';
import { configFlag, flag, toFlag } from './flags.ts';
import { readSlot } from './readers.ts';

export const READING_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: 'status',
    help: ['docs/states.md', 'status', 'status RUN', 'status RUN --failed', 'status --hosts'],
    kind: 'shows',
    description: 'the last runs, or one run with its instances',
    argument: ['[run]', 'default: the last ten runs'],
    options: [
      flag('--failed', 'list the products of the run that failed, with reason, detail and URL'),
      flag('--hosts', 'of a run of many hosts, by default the newest: what has become of them, and which take longest'),
      configFlag,
    ],
    load: async () => (await import('../commands/status.ts')).statusCommand,
  },
  {
    name: 'watch',
    help: ['docs/states.md', 'watch'],
    kind: 'shows',
    description: 'the progress of a run that another process works on; Ctrl-C ends only the watcher',
    argument: ['[run]', 'default: the newest unfinished run, or the next one'],
    options: [configFlag],
    load: async () => (await import('../commands/watch.ts')).watchCommand,
  },
  {
    name: 'product',
    help: ['docs/dashboard.md', 'product P1', 'product https://shop.example/item/P1 --json'],
    kind: 'shows',
    description: 'one product: its row, and every attempt of the last runs with its evidence',
    argument: ['<product>', 'its ID, or the URL of its page'],
    options: [configFlag],
    async load() {
      const { productCommand } = await import('../commands/product.ts');
      return ({ runId: product, ...given }: Given, output: Output) =>
        productCommand({ ...given, product: product! }, output);
    },
  },
  {
    name: 'report',
    help: ['docs/dashboard.md', 'report', 'report RUN --html --to run.html'],
    kind: 'shows',
    description: 'the report of a run as text, or with --html as one file to mail',
    argument: ['[run]', 'default: the newest ended run'],
    options: [flag('--html', 'the page of the run, with its charts, in one file'), toFlag, configFlag],
    load: async () => (await import('../commands/report.ts')).reportCommand,
  },
  {
    name: 'logs',
    help: ['docs/what-happens-when.md', 'logs --follow', 'logs RUN --slot 3 --level warn'],
    kind: 'shows',
    description: "a run's log in words, from the files beside the configuration",
    argument: ['[run]', 'default: the newest run that has a log here'],
    options: [
      configFlag,
      flag('-f, --follow', 'go on as it grows, until Ctrl-C'),
      flag('--slot <slot>', 'what concerns this slot only', readSlot),
      flag('--level <level>', 'this level and above').choices(LEVELS).default('info'),
    ],
    load: async () => (await import('../commands/logs.ts')).logsCommand,
  },
  {
    name: 'cost',
    help: ['docs/decisions/0016-prices.md', 'cost', 'cost RUN'],
    kind: 'shows',
    description: 'what a run was planned to cost and has cost, by instance',
    argument: ['[run]', 'default: the last ten runs, a line each'],
    options: [configFlag],
    load: async () => (await import('../commands/report.ts')).costCommand,
  },
  {
    name: 'verify',
    help: ['docs/exit-codes.md', 'verify', 'verify RUN --json'],
    description: 'prove that planned = stored + gone + failed, from ledger, manifests and result table',
    argument: ['[run]', 'default: the newest ended run'],
    options: [configFlag],
    load: async () => (await import('../commands/report.ts')).verifyCommand,
  },
];

/** The command line as a whole: its commands in the order of its help. */
import { Command } from 'commander';
import { VERSION } from '../../app/version.ts';
import { ACCOUNT_COMMANDS } from './account-commands.ts';
import { addCommand } from './add-command.ts';
import { addCompletion } from './completion.ts';
import { READING_COMMANDS } from './reading-commands.ts';
import { RUN_COMMANDS } from './run-commands.ts';
import { TRIAL_COMMANDS } from './trial-commands.ts';

/** Parsing runs the command and sets the exit code; usage errors and --help throw commander's CommanderError. */
export function createProgram(): Command {
  const program = new Command('orchestrator')
    .description('Plans, boots and watches a polite crawl fleet, and has the rows in the database before the deadline.')
    .version(VERSION)
    .showHelpAfterError('(orchestrator --help lists the commands)')
    // Commands created after this call inherit it.
    .exitOverride();
  for (const [heading, commands] of Object.entries({
    'Getting ready, and clearing up:': ACCOUNT_COMMANDS,
    'Trying things out:': TRIAL_COMMANDS,
    'Runs:': RUN_COMMANDS,
    'Inspecting runs:': READING_COMMANDS,
  })) {
    program.commandsGroup(heading);
    for (const command of commands) addCommand(program, command);
  }
  addCompletion(program.commandsGroup('Help:'));
  addHelpNotes(program);
  return program.helpCommand(true);
}

interface HelpNote {
  /** Arguments after `orchestrator`, as a user would type them. */
  examples: readonly string[];
  /** Page with more, relative to the package. */
  docs: string;
}

/** By command. A test parses every example and opens every page. */
export const HELP_NOTES: Readonly<Record<string, HelpNote>> = {
  init: {
    examples: ['init', 'init my-shop --url https://shop.example/item/P1 https://shop.example/item/P2'],
    docs: 'docs/configuration.md',
  },
  setup: { examples: ['setup > crawlfleet.tf', 'setup --format aws-cli --bucket my-bucket'], docs: 'docs/aws.md' },
  doctor: { examples: ['doctor', 'doctor --dry-run', 'doctor --deadline 4h --max-cost 5'], docs: 'docs/doctor.md' },
  bundle: { examples: ['bundle --upload'], docs: 'docs/decisions/0006-boot.md' },
  image: { examples: ['image', 'image --print packer', 'image --list'], docs: 'docs/browser-image.md' },
  gc: { examples: ['gc --dry-run', 'gc'], docs: 'docs/decisions/0019-gc.md' },
  discover: { examples: ['discover --deadline 2h --dry-run', 'discover --deadline 4h --yes'], docs: 'docs/discovery.md' },
  prune: { examples: ['prune', 'prune --older-than 90d --yes'], docs: 'docs/operations.md' },
  extract: {
    examples: [
      'extract --url https://shop.example/item/P1',
      'extract --mapping mapping.yaml --file page.html --field price',
    ],
    docs: 'docs/mapping.md',
  },
  simulate: {
    examples: ['simulate --deadline 4h --losses 5%', 'simulate --products 30000 --interval 10s --deadline 4h'],
    docs: 'docs/simulate.md',
  },
  sandbox: { examples: ['sandbox', 'sandbox --port 0'], docs: 'docs/sandbox.md' },
  plan: {
    examples: ['plan --deadline 4h', 'plan --deadline 4h --dry-run --json'],
    docs: 'docs/decisions/0001-planning.md',
  },
  run: {
    examples: [
      'run --deadline 4h --dry-run',
      'run --deadline 4h --max-cost 5 --yes',
      'run --deadline 10m --dry-run --limit 20',
      'run --deadline 1h --ids ids.txt',
    ],
    docs: 'docs/what-happens-when.md',
  },
  resume: { examples: ['resume'], docs: 'docs/what-happens-when.md' },
  retry: { examples: ['retry --deadline 1h', 'retry --reason timeout,network'], docs: 'docs/exit-codes.md' },
  stop: { examples: ['stop'], docs: 'docs/what-happens-when.md' },
  cancel: { examples: ['cancel RUN'], docs: 'docs/what-happens-when.md' },
  publish: { examples: ['publish', 'publish RUN --force'], docs: 'docs/decisions/0009-results.md' },
  load: { examples: ['load RUN'], docs: 'docs/what-happens-when.md' },
  schedule: { examples: ['schedule --next 5', 'schedule --print-systemd', 'schedule'], docs: 'docs/schedule.md' },
  serve: { examples: ['serve', 'serve --schedule', 'serve --listen 127.0.0.1:0'], docs: 'docs/dashboard.md' },
  notify: { examples: ['notify --test'], docs: 'docs/schedule.md' },
  status: { examples: ['status', 'status RUN', 'status RUN --failed'], docs: 'docs/states.md' },
  watch: { examples: ['watch'], docs: 'docs/states.md' },
  explain: { examples: ['explain', 'explain RUN'], docs: 'docs/what-happens-when.md' },
  logs: { examples: ['logs --follow', 'logs RUN --slot 3 --level warn'], docs: 'docs/what-happens-when.md' },
  cost: { examples: ['cost', 'cost RUN'], docs: 'docs/decisions/0016-prices.md' },
  product: { examples: ['product P1', 'product https://shop.example/item/P1 --json'], docs: 'docs/dashboard.md' },
  export: {
    examples: ['export > rows.csv', 'export RUN --format parquet --to rows.parquet'],
    docs: 'docs/dashboard.md',
  },
  report: { examples: ['report', 'report RUN --html --to run.html'], docs: 'docs/dashboard.md' },
  completion: {
    examples: ['completion bash > /etc/bash_completion.d/orchestrator', 'completion zsh', 'completion fish'],
    docs: 'docs/README.md',
  },
  verify: { examples: ['verify', 'verify RUN --json'], docs: 'docs/exit-codes.md' },
};

/** Adds the notes to every command, and makes a usage error name the help of the command that was called. */
function addHelpNotes(program: Command): void {
  for (const command of program.commands) {
    command.showHelpAfterError(`(orchestrator ${command.name()} --help lists its flags)`);
    const note = HELP_NOTES[command.name()];
    if (!note) continue;
    const examples = note.examples.map((example) => `  orchestrator ${example}`).join('\n');
    command.addHelpText('after', `\nExamples:\n${examples}\n\nMore in ${note.docs}`);
  }
}

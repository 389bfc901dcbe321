/** The command line: parses arguments, calls the command, turns its result into an exit code. */
import './cli/small-process.ts';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { EXIT } from '../shared/domain/exit-codes.ts';
import type { ExitCode } from '../shared/domain/exit-codes.ts';
import { parseDuration } from '../shared/domain/quantity.ts';
import type { FlagValue } from './cli/config/load-config.ts';
import type { Output } from './cli/output.ts';
import { createOutput, printError } from './cli/output.ts';
import { VERSION } from './cli/version.ts';

interface CommonFlags {
  config: string;
  json?: boolean;
  deadline?: string;
  maxCost?: number;
  dryRun?: boolean;
  yes?: boolean;
}

const configFlag = () =>
  new Option('-c, --config <file>', 'configuration file').default('fleet.yaml').env('FLEET_CONFIG');
const jsonFlag = () => new Option('--json', 'print exactly one JSON document on stdout');
const deadlineFlag = () =>
  new Option('-d, --deadline <duration>', 'from now to the rows in the result table, such as 4h').argParser(
    readDuration,
  );
const maxCostFlag = () => new Option('--max-cost <usd>', 'most that the run may cost').argParser(readAmount);
const dryRunFlag = () => new Option('--dry-run', 'on this machine, without a cloud account');

function readDuration(text: string): string {
  const ms = parseDuration(text);
  if (ms === null || ms <= 0) throw new InvalidArgumentError('It must be a duration such as 45s, 4h or 1h30m.');
  return text;
}

function readAmount(text: string): number {
  const amount = Number(text);
  if (!(amount > 0)) throw new InvalidArgumentError('It must be an amount in USD, such as 5 or 0.80.');
  return amount;
}

function readPort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidArgumentError('It must be a port from 0 to 65535.');
  return port;
}

function flagValues(flags: CommonFlags): FlagValue[] {
  return [
    ...(flags.deadline === undefined ? [] : [{ path: ['run', 'deadline'], flag: '--deadline', value: flags.deadline }]),
    ...(flags.maxCost === undefined ? [] : [{ path: ['run', 'max_cost'], flag: '--max-cost', value: flags.maxCost }]),
  ];
}

/** Settings for runs; our own variables that are not settings stay out. */
function fleetEnvironment(): Record<string, string | undefined> {
  const { FLEET_CONFIG: _, ...rest } = process.env;
  return rest;
}

/** Runs a command; whatever it throws becomes a message and an exit code. */
async function execute(
  flags: { json?: boolean },
  command: (output: Output) => Promise<ExitCode> | ExitCode,
): Promise<void> {
  const output = createOutput(flags.json === true);
  try {
    process.exitCode = await command(output);
  } catch (error) {
    process.exitCode = printError(error, flags.json === true);
  }
}

const program = new Command('orchestrator')
  .description('Plans, boots and watches a polite crawl fleet, and has the rows in the database before the deadline.')
  .version(VERSION)
  .exitOverride()
  .showHelpAfterError('(orchestrator --help lists the commands)');

program
  .command('init')
  .description('write a commented fleet.yaml and mapping.yaml')
  .argument('[folder]', 'where to write them', '.')
  .addOption(jsonFlag())
  .action((folder: string, flags: CommonFlags) =>
    execute(flags, async (output) => (await import('./cli/commands/init.ts')).initCommand(folder, output)),
  );

program
  .command('plan')
  .description('show instances, end, probability and price of a run; changes nothing')
  .addOption(configFlag())
  .addOption(deadlineFlag())
  .addOption(maxCostFlag())
  .addOption(dryRunFlag())
  .addOption(jsonFlag())
  .action((flags: CommonFlags) =>
    execute(flags, async (output) => {
      const { planCommand } = await import('./cli/commands/plan.ts');
      return planCommand(
        {
          configPath: flags.config,
          flags: flagValues(flags),
          dryRun: flags.dryRun === true,
          environment: fleetEnvironment(),
        },
        output,
      );
    }),
  );

program
  .command('run')
  .description('plan, launch, crawl, publish and report')
  .addOption(configFlag())
  .addOption(deadlineFlag())
  .addOption(maxCostFlag())
  .addOption(dryRunFlag())
  .option('-y, --yes', 'do not ask before launching')
  .addOption(jsonFlag())
  .action((flags: CommonFlags) =>
    execute(flags, async (output) => {
      const { runCommand } = await import('./cli/commands/run.ts');
      const { yes, dryRun } = flags;
      const options = {
        configPath: flags.config,
        flags: flagValues(flags),
        dryRun: dryRun === true,
        yes: yes === true,
        environment: fleetEnvironment(),
      };
      return runCommand(options, output);
    }),
  );

program
  .command('resume')
  .description('take up a run whose main server died or left')
  .argument('[run]', 'the newest unfinished run without it')
  .addOption(configFlag())
  .addOption(jsonFlag())
  .action((runId: string | undefined, flags: CommonFlags) =>
    execute(flags, async (output) => {
      const { resumeCommand } = await import('./cli/commands/resume.ts');
      return resumeCommand({ configPath: flags.config, runId, environment: fleetEnvironment() }, output);
    }),
  );

program
  .command('status')
  .description('the last runs, or one run with its instances')
  .argument('[run]')
  .addOption(configFlag())
  .addOption(jsonFlag())
  .action((runId: string | undefined, flags: CommonFlags) =>
    execute(flags, async (output) => {
      const { statusCommand } = await import('./cli/commands/status.ts');
      return statusCommand({ configPath: flags.config, runId, environment: fleetEnvironment() }, output);
    }),
  );

program
  .command('stop')
  .description('end a run early and keep what it has')
  .argument('[run]', 'the newest unfinished run without it')
  .addOption(configFlag())
  .addOption(jsonFlag())
  .action((runId: string | undefined, flags: CommonFlags) =>
    execute(flags, async (output) => {
      const { stopCommand } = await import('./cli/commands/stop.ts');
      return stopCommand({ configPath: flags.config, runId, environment: fleetEnvironment() }, output);
    }),
  );

program
  .command('verify')
  .description('prove that planned = stored + gone + failed, from ledger, manifests and result table')
  .argument('[run]', 'the newest ended run without it')
  .addOption(configFlag())
  .addOption(jsonFlag())
  .action((runId: string | undefined, flags: CommonFlags) =>
    execute(flags, async (output) => {
      const { verifyCommand } = await import('./cli/commands/verify.ts');
      return verifyCommand({ configPath: flags.config, runId, environment: fleetEnvironment() }, output);
    }),
  );

program
  .command('sandbox')
  .description('an AWS endpoint (EC2, ELBv2, S3) on this machine, until Ctrl-C')
  .option('-p, --port <port>', 'port of the endpoint; 0 for any free one', readPort, 4566)
  .option('--data <folder>', 'where it keeps its state', '.crawlfleet/sandbox/standalone')
  .addOption(jsonFlag())
  .action((flags: { port: number; data: string; json?: boolean }) =>
    execute(flags, async (output) => {
      const { sandboxCommand } = await import('./cli/commands/sandbox.ts');
      return sandboxCommand({ port: flags.port, dataDir: flags.data }, output);
    }),
  );

try {
  await program.parseAsync();
} catch (error) {
  // commander has printed its message; help and --version are not errors.
  if (!(error instanceof CommanderError)) throw error;
  if (error.exitCode !== 0 && process.argv.includes('--json')) {
    createOutput(true).document({
      error: { code: 'usage', message: error.message, hint: 'orchestrator --help' },
      exitCode: EXIT.usage,
    });
  }
  process.exitCode = error.exitCode === 0 ? EXIT.complete : EXIT.usage;
}

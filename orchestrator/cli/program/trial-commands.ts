/** Commands to test things before a run: a page, a run on a virtual clock, an AWS endpoint on this machine. */
import type { Command } from 'commander';
import { Option } from 'commander';
import { parseDuration } from '../../../shared/domain/quantity.ts';
import { execute, fleetEnvironment } from './execute.ts';
import type { CommonFlags } from './flags.ts';
import { deadlineFlag, dryRunFlag, jsonFlag, maxCostFlag, settingsIn } from './flags.ts';
import { readCount, readDuration, readPort, readSeed, readShare } from './readers.ts';

interface ExtractFlags extends Partial<
  Record<'mapping' | 'url' | 'file' | 'urlOf' | 'field' | 'userAgent' | 'config', string>
> {
  render?: 'http' | 'browser';
  json?: boolean;
}

interface SimulateFlags extends Pick<CommonFlags, 'json' | 'maxCost' | 'dryRun' | 'deadline'> {
  config?: string;
  products?: number;
  interval?: string;
  instances?: number;
  losses?: number;
  bans?: number;
  slow?: number;
  bootFailures?: number;
  runs: number;
  seed: number;
}

export function addTrialCommands(program: Command): void {
  addExtract(program);
  addSimulate(program);
  addSandbox(program);
}

/** These two work without a configuration. */
const optionalConfigFlag = (what: string): Option => new Option('-c, --config <file>', what).env('FLEET_CONFIG');

function addExtract(program: Command): void {
  program
    .command('extract')
    .description('read one page with a mapping and show what each field gives, step by step')
    .option('-m, --mapping <file>', 'mapping file (default: the one of the configuration)')
    .option('--url <url>', 'get this page: one request, from this machine')
    .option('--file <file>', 'read a saved page')
    .option('--url-of <url>', 'with --file: the address the page was saved from')
    .option('--field <name>', 'show this field only')
    .addOption(new Option('--render <how>', 'how to get the page').choices(['http', 'browser']))
    .option('--user-agent <text>', 'who you say you are, with a link')
    .addOption(optionalConfigFlag('take mapping and site settings from here'))
    .addOption(jsonFlag())
    .action((flags: ExtractFlags) =>
      execute(flags, async (output) => {
        const { extractCommand } = await import('../commands/extract.ts');
        const { mapping, url, file, urlOf, field, render, userAgent, config: configPath } = flags;
        const environment = fleetEnvironment();
        const chromiumPath = process.env.CRAWLFLEET_CHROMIUM;
        return extractCommand(
          { configPath, mapping, url, file, urlOf, field, render, userAgent, chromiumPath, environment },
          output,
        );
      }),
    );
}

function addSimulate(program: Command): void {
  program
    .command('simulate')
    .description('simulate a run on a virtual clock, with failures; touches nothing')
    .addOption(optionalConfigFlag('configuration file; fleet.yaml if it is there'))
    .option('-n, --products <number>', 'number of products, instead of those of the configuration', readCount)
    .addOption(deadlineFlag())
    .option('--interval <duration>', 'start to start of two requests from one address', readDuration)
    .option('--instances <number>', 'number of instances, whatever the plan says', readCount)
    .addOption(maxCostFlag())
    .option('--losses <share>', 'share of instances that die under way, such as 5%', readShare)
    .option('--bans <share>', 'share of addresses that the site bans', readShare)
    .option('--slow <share>', 'share of instances that keep a tenth of the pace', readShare)
    .option('--boot-failures <share>', 'share of launches that never say hello', readShare)
    .option('--runs <number>', 'number of runs; a single one prints its timeline', readCount, 20)
    .option('--seed <number>', 'the same seed gives the same runs', readSeed, 1)
    .addOption(dryRunFlag())
    .addOption(jsonFlag())
    .action((flags: SimulateFlags) =>
      execute(flags, async (output) => {
        const { simulateCommand } = await import('../commands/simulate.ts');
        const { config: configPath, deadline, maxCost, products, interval, instances, runs, seed, dryRun } = flags;
        const { losses: loss = 0, bans: ban = 0, slow = 0, bootFailures: bootFailure = 0 } = flags;
        const options = {
          configPath,
          flags: settingsIn(flags),
          deadlineMs: deadline === undefined ? undefined : parseDuration(deadline)!,
          maxCost,
          products,
          intervalMs: interval === undefined ? undefined : parseDuration(interval)!,
          instances,
          chances: { loss, ban, slow, bootFailure },
          runs,
          seed,
          dryRun: dryRun === true,
          environment: fleetEnvironment(),
        };
        return simulateCommand(options, output);
      }),
    );
}

function addSandbox(program: Command): void {
  program
    .command('sandbox')
    .description('an AWS endpoint (EC2, ELBv2, S3) on this machine, until Ctrl-C')
    .option('-p, --port <port>', 'port of the endpoint; 0 for any free one', readPort, 4566)
    .option('--data <folder>', 'where it keeps its state', '.crawlfleet/sandbox/standalone')
    .addOption(jsonFlag())
    .action((flags: { port: number; data: string; json?: boolean }) =>
      execute(flags, async (output) => {
        const { sandboxCommand } = await import('../commands/sandbox.ts');
        return sandboxCommand({ port: flags.port, dataDir: flags.data }, output);
      }),
    );
}

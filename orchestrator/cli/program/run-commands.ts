/** Commands that start a run, end it, or load its results. */
import type { Command } from 'commander';
import { Option } from 'commander';
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import { FAILURE_REASONS } from '../../../shared/domain/outcome.ts';
import type { FlagValue } from '../../app/config/load-config.ts';
import { addRunCommand } from './add-run-command.ts';
import { execute, fleetEnvironment } from './execute.ts';
import type { CommonFlags } from './flags.ts';
import {
  acceptDropFlag,
  configFlag,
  deadlineFlag,
  dryRunFlag,
  jsonFlag,
  maxCostFlag,
  settingsIn,
  yesFlag,
} from './flags.ts';
import { readFewCount, readReasons } from './readers.ts';

interface ScheduleFlags extends Pick<CommonFlags, 'config' | 'json' | 'dryRun'> {
  next?: number;
  printSystemd?: boolean;
  printCrontab?: boolean;
  carryOut?: number;
  owner?: string;
  record?: string;
}

export function addRunCommands(program: Command): void {
  addPlan(program);
  addRun(program);
  addRunCommand(
    program,
    {
      name: 'resume',
      description: 'take up a run whose main server died or left',
      run: 'default: the newest unfinished run',
    },
    async () => (await import('../commands/resume.ts')).resumeCommand,
  );
  addRetry(program);
  addRunCommand(
    program,
    {
      name: 'stop',
      description: 'end a run early and keep what it has',
      run: 'default: the newest unfinished run',
    },
    async () => (await import('../commands/stop.ts')).stopCommand,
  );
  addCancel(program);
  addPublish(program);
  addLoad(program);
  addSchedule(program);
  addNotify(program);
}

/** What `plan`, `run` and `retry` need to know of their run. */
function plannedRun(flags: CommonFlags): {
  configPath: string;
  flags: FlagValue[];
  dryRun: boolean;
  acceptDrop: boolean;
  environment: Record<string, string | undefined>;
} {
  const { config: configPath, dryRun, acceptDrop } = flags;
  return {
    configPath,
    flags: settingsIn(flags),
    dryRun: dryRun === true,
    acceptDrop: acceptDrop === true,
    environment: fleetEnvironment(),
  };
}

function addPlan(program: Command): void {
  program
    .command('plan')
    .description('show instances, end, probability and price of a run; changes nothing')
    .addOption(configFlag())
    .addOption(deadlineFlag())
    .addOption(maxCostFlag())
    .addOption(acceptDropFlag())
    .addOption(dryRunFlag())
    .addOption(jsonFlag())
    .action((flags: CommonFlags) =>
      execute(flags, async (output) => {
        const { planCommand } = await import('../commands/plan.ts');
        return planCommand(plannedRun(flags), output);
      }),
    );
}

function addRun(program: Command): void {
  program
    .command('run')
    .description('plan, launch, crawl, publish and report')
    .addOption(configFlag())
    .addOption(deadlineFlag())
    .addOption(maxCostFlag())
    .addOption(acceptDropFlag())
    .addOption(dryRunFlag())
    .addOption(yesFlag('before launching'))
    .addOption(jsonFlag())
    .action((flags: CommonFlags) =>
      execute(flags, async (output) => {
        const { runCommand } = await import('../commands/run.ts');
        return runCommand({ ...plannedRun(flags), yes: flags.yes === true }, output);
      }),
    );
}

function addRetry(program: Command): void {
  program
    .command('retry')
    .description('a run of the products that failed in another one')
    .argument('[run]', 'default: the newest ended run')
    .addOption(configFlag())
    .addOption(deadlineFlag())
    .addOption(maxCostFlag())
    .addOption(dryRunFlag())
    .option(
      '--reason <reasons>',
      `only products that failed for one of these, separated by commas: ${FAILURE_REASONS.join(', ')}`,
      readReasons,
    )
    .addOption(yesFlag('before launching'))
    .addOption(jsonFlag())
    .action((runId: string | undefined, flags: CommonFlags & { reason?: FailureReason[] }) =>
      execute(flags, async (output) => {
        const { retryCommand } = await import('../commands/retry.ts');
        const options = { ...plannedRun(flags), yes: flags.yes === true };
        return retryCommand({ ...options, runId, reasons: flags.reason }, output);
      }),
    );
}

function addCancel(program: Command): void {
  program
    .command('cancel')
    .description('end a run and discard its results; also those of a held run')
    .argument('<run>', 'its name, as `status` lists it')
    .addOption(configFlag())
    .addOption(yesFlag('before discarding'))
    .addOption(jsonFlag())
    .action((runId: string, flags: CommonFlags) =>
      execute(flags, async (output) => {
        const { cancelCommand } = await import('../commands/cancel.ts');
        const { config: configPath, yes } = flags;
        return cancelCommand({ configPath, runId, yes: yes === true, environment: fleetEnvironment() }, output);
      }),
    );
}

function addPublish(program: Command): void {
  program
    .command('publish')
    .description('publish the rows of a held run')
    .argument('[run]', 'default: the newest held run')
    .option('--force', 'also over the rows of a run that began later')
    .addOption(configFlag())
    .addOption(jsonFlag())
    .action((runId: string | undefined, flags: CommonFlags & { force?: boolean }) =>
      execute(flags, async (output) => {
        const { publishCommand } = await import('../commands/publish.ts');
        const { config: configPath, force } = flags;
        return publishCommand({ configPath, runId, force: force === true, environment: fleetEnvironment() }, output);
      }),
    );
}

function addLoad(program: Command): void {
  program
    .command('load')
    .description('bring results from the bucket into the database, also of a run that it has lost')
    .argument('<run>', 'its name, as `status` or the folders under runs/ in the bucket give it')
    .addOption(configFlag())
    .addOption(jsonFlag())
    .action((runId: string, flags: CommonFlags) =>
      execute(flags, async (output) => {
        const { loadCommand } = await import('../commands/load.ts');
        return loadCommand({ configPath: flags.config, runId, environment: fleetEnvironment() }, output);
      }),
    );
}

function addSchedule(program: Command): void {
  program
    .command('schedule')
    .description('a daemon that starts a run whenever schedule.cron is due, and takes up what a crash has left')
    .addOption(configFlag())
    .option('--next <number>', 'print this many due times and change nothing', readFewCount)
    .option('--print-systemd', 'print a unit file for the daemon')
    .option('--print-crontab', 'print crontab lines to use instead of the daemon')
    .addOption(dryRunFlag())
    .addOption(new Option('--carry-out <ms>', 'the due time of this process').argParser(Number).hideHelp())
    .addOption(new Option('--owner <name>', 'the daemon that has started it').hideHelp())
    .addOption(new Option('--record <name>', 'name of its schedule').hideHelp())
    .addOption(jsonFlag())
    .action((flags: ScheduleFlags) =>
      execute(flags, async (output) => {
        const { scheduleCommand } = await import('../commands/schedule.ts');
        const { config: configPath, next = null, dryRun, carryOut, owner = '', record = '' } = flags;
        const options = {
          configPath,
          environment: fleetEnvironment(),
          processEnvironment: process.env,
          launcher: process.argv[1]!,
          dryRun: dryRun === true,
          next,
          printSystemd: flags.printSystemd === true,
          printCrontab: flags.printCrontab === true,
          carryOut: carryOut === undefined ? null : { dueAtMs: carryOut, owner, name: record },
        };
        return scheduleCommand(options, output);
      }),
    );
}

function addNotify(program: Command): void {
  program
    .command('notify')
    .description('try the webhooks that are told of the end of runs')
    .requiredOption('--test', 'send a test notice to every one of them, and print what each answers')
    .addOption(configFlag())
    .addOption(jsonFlag())
    .action((flags: CommonFlags) =>
      execute(flags, async (output) => {
        const { notifyCommand } = await import('../commands/notify.ts');
        return notifyCommand({ configPath: flags.config, environment: fleetEnvironment() }, output);
      }),
    );
}

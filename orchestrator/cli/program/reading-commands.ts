/** Commands that inspect runs. */
import type { Command } from 'commander';
import { Option } from 'commander';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Level } from '../log-lines.ts';
import { LEVELS } from '../log-lines.ts';
import { addRunCommand } from './add-run-command.ts';
import { execute, fleetEnvironment } from './execute.ts';
import type { CommonFlags } from './flags.ts';
import { configFlag, jsonFlag } from './flags.ts';
import { readSlot } from './readers.ts';

export function addReadingCommands(program: Command): void {
  addStatus(program);
  addRunCommand(
    program,
    {
      name: 'watch',
      kind: 'shows',
      description: 'the progress of a run that another process works on; Ctrl-C ends only the watcher',
      run: 'default: the newest unfinished run',
    },
    async () => (await import('../commands/watch.ts')).watchCommand,
  );
  addRunCommand(
    program,
    {
      name: 'explain',
      kind: 'shows',
      description: 'what happened in a run and why, and what the next one would need',
      run: 'default: the newest run',
    },
    async () => (await import('../commands/explain.ts')).explainCommand,
  );
  addLogs(program);
  addRunCommand(
    program,
    {
      name: 'cost',
      description: 'what a run was planned to cost and has cost, by instance',
      run: 'default: the last ten runs, a line each',
      kind: 'shows',
    },
    async () => (await import('../commands/cost.ts')).costCommand,
  );
  addRunCommand(
    program,
    {
      name: 'verify',
      description: 'prove that planned = stored + gone + failed, from ledger, manifests and result table',
      run: 'default: the newest ended run',
    },
    async () => (await import('../commands/verify.ts')).verifyCommand,
  );
}

function addStatus(program: Command): void {
  program
    .command('status')
    .description('the last runs, or one run with its instances')
    .argument('[run]', 'default: the last ten runs')
    .option('--failed', 'list the products of the run that failed, with reason, detail and URL')
    .addOption(configFlag())
    .addOption(jsonFlag())
    .action((runId: string | undefined, flags: CommonFlags & { failed?: boolean }) =>
      execute(
        flags,
        async (output) => {
          const { statusCommand } = await import('../commands/status.ts');
          const { config: configPath, failed } = flags;
          if (failed === true && runId === undefined)
            throw new AppError('usage', 'status --failed needs the name of a run');
          return statusCommand({ configPath, runId, failed: failed === true, environment: fleetEnvironment() }, output);
        },
        'shows',
      ),
    );
}

function addLogs(program: Command): void {
  program
    .command('logs')
    .description("a run's log in words, from the files beside the configuration")
    .argument('[run]', 'default: the newest run that has a log here')
    .addOption(configFlag())
    .option('-f, --follow', 'go on as it grows, until Ctrl-C')
    .option('--slot <slot>', 'what concerns this slot only', readSlot)
    .addOption(new Option('--level <level>', 'this level and above').choices(LEVELS).default('info'))
    .addOption(jsonFlag())
    .action((runId: string | undefined, flags: CommonFlags & { follow?: boolean; slot?: number; level: Level }) =>
      execute(
        flags,
        async (output) => {
          const { logsCommand } = await import('../commands/logs.ts');
          const { follow, slot, level } = flags;
          const options = { configPath: flags.config, runId, environment: fleetEnvironment() };
          return logsCommand({ ...options, follow: follow === true, slot: slot ?? null, level }, output);
        },
        'shows',
      ),
    );
}

/** Commands that need only the name of a run. */
import type { Command } from 'commander';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Output } from '../output.ts';
import { execute, fleetEnvironment } from './execute.ts';
import type { CommonFlags } from './flags.ts';
import { configFlag, jsonFlag } from './flags.ts';

interface RunOptions {
  configPath: string;
  runId: string | undefined;
  environment: Record<string, string | undefined>;
}

/** A command on one run without further flags. Its code is loaded when it is called, to keep start-up fast. */
export function addRunCommand(
  program: Command,
  words: { name: string; description: string; run?: string; kind?: 'works' | 'shows' },
  load: () => Promise<(options: RunOptions, output: Output) => Promise<ExitCode>>,
): void {
  program
    .command(words.name)
    .description(words.description)
    .argument('[run]', words.run)
    .addOption(configFlag())
    .addOption(jsonFlag())
    .action((runId: string | undefined, flags: CommonFlags) =>
      execute(
        flags,
        async (output) => {
          const command = await load();
          return command({ configPath: flags.config, runId, environment: fleetEnvironment() }, output);
        },
        words.kind,
      ),
    );
}

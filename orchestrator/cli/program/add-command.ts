/** The way from a declared command to a running one, and from its end to an exit code. */
import type { Command } from 'commander';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { endWithOutput } from '../closed-output.ts';
import { createOutput, type Output, printError } from '../output.ts';
import { type CommandDeclaration, type FeatureDeclaration, type Given, loadFeatures } from './feature.ts';
import { jsonFlag } from './flags.ts';

/** The variables that commands read settings from; our other variables, which are no settings, are left out. */
function fleetEnvironment(): Record<string, string | undefined> {
  const { FLEET_CONFIG: _, ...rest } = process.env;
  return rest;
}

type Flags = Partial<Omit<Given, 'features'>> & { config: string; json?: boolean; quiet?: boolean; verbose?: boolean };

/** Adds the command; any error it ends with becomes a message and an exit code. */
export function addCommand(
  program: Command,
  declared: CommandDeclaration,
  features: readonly FeatureDeclaration[],
): void {
  const command = program.command(declared.name).description(declared.description);
  if (declared.argument) command.argument(...declared.argument);
  if (declared.rest) command.argument(...declared.rest);
  for (const option of [...declared.options, jsonFlag]) command.addOption(option);
  command.action(async (...args: unknown[]) => {
    const words = args.slice(0, command.registeredArguments.length) as [argument?: string, rest?: string[]];
    const flags = args[command.registeredArguments.length] as Flags;
    if (declared.kind === 'shows') endWithOutput();
    const output = createOutput(flags.json === true, flags.quiet ? 'quiet' : flags.verbose ? 'verbose' : 'normal');
    try {
      const run = (await declared.load()) as (given: Given, output: Output) => Promise<ExitCode>;
      process.exitCode = await run({ ...givenBy(flags, words), features: await loadFeatures(features) }, output);
    } catch (error) {
      process.exitCode = printError(error, flags.json === true);
    }
  });
}

function givenBy(flags: Flags, [runId, rest = []]: [argument?: string, rest?: string[]]): Omit<Given, 'features'> {
  const { deadline, maxCost, dryRun = false, yes = false, acceptDrop = false } = flags;
  const settings = [
    { path: ['run', 'deadline'], flag: '--deadline', value: deadline },
    { path: ['run', 'max_cost'], flag: '--max-cost', value: maxCost },
  ];
  return {
    ...flags,
    configPath: flags.config,
    environment: fleetEnvironment(),
    runId,
    rest,
    flags: settings.flatMap(({ value, ...where }) => (value === undefined ? [] : [{ ...where, value }])),
    dryRun,
    yes,
    acceptDrop,
  };
}

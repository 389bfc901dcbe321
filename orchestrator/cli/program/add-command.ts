/** From a declared command to a running one, and from its end to an exit code. */
import type { Command, Option } from 'commander';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { ConfigPlace, FlagValue } from '../../core/config/load-config.ts';
import { endWithOutput } from '../closed-output.ts';
import { createOutput, type Output, printError } from '../output.ts';
import { jsonFlag } from './flags.ts';

/** What every command is given, beside its own flags under commander's names; `--x` without a value may be missing. */
export interface Given extends ConfigPlace {
  /** Its argument: nearly always the name of a run. */
  runId: string | undefined;
  /** The words after it; empty for a command that takes none. */
  rest: string[];
  /** Flags that stand for settings, in the form the configuration takes: a flag wins over the file. */
  flags: FlagValue[];
  deadline?: string;
  maxCost?: number;
  dryRun: boolean;
  yes: boolean;
  acceptDrop: boolean;
}

export interface CommandDeclaration {
  name: string;
  description: string;
  /** A page with more, relative to the package, and examples, as they are typed after `orchestrator`. */
  help: readonly [page: string, ...examples: string[]];
  /** Name, description and default of its argument. */
  argument?: readonly [name: string, description: string, byDefault?: string];
  /** Name and description of the words after its argument. */
  rest?: readonly [name: string, description: string];
  /** In the order of its help; --json comes last. */
  options: readonly Option[];
  /** `shows`: it only prints, so it ends when its output cannot be written; `works`, the default: it goes on. */
  kind?: 'works' | 'shows';
  /** Loads its code when it is called, to keep start-up fast. What it calls must take `Given` and these flags. */
  load: () => Promise<(given: never, output: Output) => Promise<ExitCode> | ExitCode>;
}

/** The variables that commands read settings from; our other variables, which are no settings, are left out. */
function fleetEnvironment(): Record<string, string | undefined> {
  const { FLEET_CONFIG: _, ...rest } = process.env;
  return rest;
}

type Flags = Partial<Given> & { config: string; json?: boolean; quiet?: boolean; verbose?: boolean };

/** Adds the command; any error it ends with becomes a message and an exit code. */
export function addCommand(program: Command, declared: CommandDeclaration): void {
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
      process.exitCode = await run(givenBy(flags, words), output);
    } catch (error) {
      process.exitCode = printError(error, flags.json === true);
    }
  });
}

function givenBy(flags: Flags, [runId, rest = []]: [argument?: string, rest?: string[]]): Given {
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

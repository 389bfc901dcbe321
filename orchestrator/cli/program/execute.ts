/** From parsed flags to a command that runs, and from its end to an exit code. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Output } from '../output.ts';
import { createOutput, printError } from '../output.ts';

/** The variables that commands read settings from; our own that are none stay out. */
export function fleetEnvironment(): Record<string, string | undefined> {
  const { FLEET_CONFIG: _, ...rest } = process.env;
  return rest;
}

/** Runs a command; whatever it throws becomes a message and an exit code. */
export async function execute(
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

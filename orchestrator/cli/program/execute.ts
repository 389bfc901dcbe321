/** From parsed flags to a running command, and from its end to an exit code. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { endWithOutput } from '../closed-output.ts';
import type { Output } from '../output.ts';
import { createOutput, printError } from '../output.ts';

/** The variables that commands read settings from; our other variables, which are no settings, are left out. */
export function fleetEnvironment(): Record<string, string | undefined> {
  const { FLEET_CONFIG: _, ...rest } = process.env;
  return rest;
}

/**
 * Runs a command; any error becomes a message and an exit code.
 * @param kind `shows`: it only prints, so it ends when its output cannot be written; `works`: it goes on
 */
export async function execute(
  flags: { json?: boolean },
  command: (output: Output) => Promise<ExitCode> | ExitCode,
  kind: 'works' | 'shows' = 'works',
): Promise<void> {
  if (kind === 'shows') endWithOutput();
  const output = createOutput(flags.json === true);
  try {
    process.exitCode = await command(output);
  } catch (error) {
    process.exitCode = printError(error, flags.json === true);
  }
}

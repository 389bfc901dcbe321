/** The command line: parses arguments, calls the command, turns its result into an exit code. */
import { CommanderError } from 'commander';
import { EXIT } from '../shared/domain/exit-codes.ts';
import { outliveOutput } from './cli/closed-output.ts';
import { createOutput, printError } from './cli/output.ts';
import { provideHome } from './cli/passwd-entry.ts';
import { createProgram } from './cli/program/program.ts';
import { FEATURES } from './features.ts';

outliveOutput();
// Node would print the text of the error as it is.
process.on('uncaughtException', (error) => process.exit(printError(error, false)));
// Logs, reports and a SQLite database with private keys are created here: only their owner may read them.
process.umask(0o077);
provideHome(process.env);
// As every empty variable of ours it is unset.
if (process.env.FLEET_CONFIG === '') delete process.env.FLEET_CONFIG;

try {
  await createProgram(FEATURES).parseAsync();
} catch (error) {
  // commander has already printed its message; help and --version are not errors.
  if (!(error instanceof CommanderError)) throw error;
  if (error.exitCode !== 0 && process.argv.includes('--json')) {
    createOutput(true).document({
      error: { code: 'usage', message: error.message, hint: 'orchestrator --help' },
      exitCode: EXIT.usage,
    });
  }
  process.exitCode = error.exitCode === 0 ? EXIT.complete : EXIT.usage;
}
// Background retries against a failing disk or database must not keep a finished command alive.
setTimeout(() => process.exit(), 10_000).unref();

/** The command line: parses arguments, calls the command, turns its result into an exit code. */
import './cli/heap-limits.ts';
import { CommanderError } from 'commander';
import { EXIT } from '../shared/domain/exit-codes.ts';
import { outliveOutput } from './cli/closed-output.ts';
import { createOutput } from './cli/output.ts';
import { createProgram } from './cli/program/program.ts';

outliveOutput();
// Logs, reports and a SQLite database, which holds private keys, are their owner's alone; so is all else that is made here.
process.umask(0o077);

try {
  await createProgram().parseAsync();
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
// What is still being tried in the background, with a disk or a database that refuses it, must not keep a command that has ended.
setTimeout(() => process.exit(), 10_000).unref();

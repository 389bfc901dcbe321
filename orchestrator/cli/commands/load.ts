/** `orchestrator load`: loads the results of a run from the bucket into the database. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { LoadOptions } from '../../app/run/load-run.ts';
import { loadRun } from '../../app/run/load-run.ts';
import { inTerminal } from '../in-terminal.ts';
import type { Output } from '../output.ts';

export function loadCommand(options: LoadOptions, output: Output): Promise<ExitCode> {
  return inTerminal(output, (caller) => loadRun(options, caller), null);
}

/** `orchestrator discover`: a run that finds what it crawls. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { type RunOptions, startInTerminal } from '../../cli/commands/run.ts';
import type { Output } from '../../cli/output.ts';
import { discoverSource } from './discover-source.ts';

export const discoverCommand = (options: RunOptions, output: Output): Promise<ExitCode> =>
  startInTerminal(options, output, (caller) => discoverSource(caller.output, caller.interrupts.leave));

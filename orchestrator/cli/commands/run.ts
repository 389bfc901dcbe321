/** `orchestrator run`: checks, plans, asks for confirmation, then carries the run out. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Caller } from '../../app/caller.ts';
import type { StartOptions } from '../../app/run/start-run.ts';
import { startRun, wholeQuery } from '../../app/run/start-run.ts';
import { confirmRun } from '../confirm.ts';
import { inTerminal } from '../in-terminal.ts';
import type { Output } from '../output.ts';

export interface RunOptions extends Omit<StartOptions, 'confirm'> {
  yes: boolean;
  /** The user confirms that a shorter product list is right: it becomes the new baseline. */
  acceptDrop?: boolean;
}

export function runCommand(options: RunOptions, output: Output): Promise<ExitCode> {
  return inTerminal(output, (caller) =>
    startRun(confirmed(options, output, caller), caller, wholeQuery(options.acceptDrop === true)),
  );
}

/** The options with the question whether to launch. */
export const confirmed = <T extends RunOptions>(options: T, { json }: Output, { interrupts }: Caller) => ({
  ...options,
  confirm: () => confirmRun({ ...options, json, signal: interrupts.leave }),
});

/** `orchestrator run`, `retry`, `resume` and `load`: the use cases that work on a run, with this terminal as their caller. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Caller } from '../../app/caller.ts';
import type { CarriedOut } from '../../app/run/carry-out.ts';
import { type LoadOptions, loadRun } from '../../app/run/load-run.ts';
import { resume, type ResumeOptions } from '../../app/run/resume.ts';
import { type RetryOptions, retryRun } from '../../app/run/retry.ts';
import { type StartOptions, startRun, wholeQuery } from '../../app/run/start-run.ts';
import { onLostOutput } from '../closed-output.ts';
import { confirmRun } from '../confirm.ts';
import { LEAVE_WITHIN_MS, watchInterrupts } from '../interrupts.ts';
import type { Output } from '../output.ts';
import { createProgressPrinter } from '../progress.ts';

export interface RunOptions extends Omit<StartOptions, 'confirm'> {
  yes: boolean;
  /** The user confirms that a shorter product list is right: it becomes the new baseline. */
  acceptDrop?: boolean;
}

/** Checks, plans, asks for confirmation, then carries the run out. */
export function runCommand(options: RunOptions, output: Output): Promise<ExitCode> {
  return inTerminal(output, (caller) =>
    startRun(confirmed(options, output, caller), caller, wholeQuery(options.acceptDrop === true)),
  );
}

/** A child run of the products that failed in another one. */
export function retryCommand(options: RunOptions & Omit<RetryOptions, 'confirm'>, output: Output): Promise<ExitCode> {
  return inTerminal(output, (caller) => retryRun(confirmed(options, output, caller), caller));
}

/** Takes up a run whose main server died or left. */
export async function resumeCommand(options: ResumeOptions, output: Output): Promise<ExitCode> {
  return (await resumeInTerminal(options, output)).exitCode;
}

export const resumeInTerminal = (options: ResumeOptions, output: Output): Promise<CarriedOut> =>
  inTerminal(output, (caller) => resume(options, caller));

/** Loads the results of a run from the bucket into the database. A signal only aborts `leave`. */
export function loadCommand(options: LoadOptions, output: Output): Promise<ExitCode> {
  return inTerminal(output, (caller) => loadRun(options, caller), null);
}

/** The options with the question whether to launch. */
const confirmed = <T extends RunOptions>(options: T, { json }: Output, { interrupts }: Caller) => ({
  ...options,
  confirm: () => confirmRun({ ...options, json, signal: interrupts.leave }),
});

/** Runs `work` with signals, progress and output of this process; for `leaveWithinMs` see watchInterrupts. */
async function inTerminal<T>(
  output: Output,
  work: (caller: Caller) => Promise<T>,
  leaveWithinMs: number | null = LEAVE_WITHIN_MS,
): Promise<T> {
  const interrupts = watchInterrupts(leaveWithinMs);
  try {
    return await work({
      output: { ...output, onLost: onLostOutput },
      interrupts,
      progress: (plan) => createProgressPrinter(process.stderr, quietMs(plan)),
      env: process.env,
    });
  } finally {
    interrupts.dispose();
  }
}

/** Progress interval without a terminal: about twenty lines a run, at most one a minute. */
const quietMs = ({ deadlineMs }: { deadlineMs: number }): number => Math.min(60_000, Math.max(2_000, deadlineMs / 20));

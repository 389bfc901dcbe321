/** The command line as the caller of use cases. */
import type { Caller } from '../app/caller.ts';
import { onLostOutput } from './closed-output.ts';
import { LEAVE_WITHIN_MS, watchInterrupts } from './interrupts.ts';
import type { Output } from './output.ts';
import { createProgressPrinter } from './progress.ts';

/**
 * Runs `work` with signals, progress and output of this process.
 * @param leaveWithinMs see watchInterrupts; null: a signal only aborts `leave`
 */
export async function inTerminal<T>(
  output: Output,
  work: (caller: Caller) => Promise<T>,
  leaveWithinMs: number | null = LEAVE_WITHIN_MS,
): Promise<T> {
  const interrupts = leaveWithinMs === null ? watchInterrupts() : watchInterrupts(leaveWithinMs);
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

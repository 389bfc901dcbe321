/** Ctrl-C and SIGTERM: the first Ctrl-C makes the run stop and keep its results, the second leaves at once. */
import type { Interrupts } from '../core/caller.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { writeText } from './terminal.ts';

/**
 * The time to leave for work that can be cut off anywhere, as a run can: `resume` takes it up as if its main server had
 * been killed. A disk, database or cloud that does not answer must not keep a process alive after a signal to leave.
 */
export const LEAVE_WITHIN_MS = 15_000;

/**
 * Watches for signals to leave until it is disposed. `leaveWithinMs`: the process ends at most this long after the
 * first signal to leave; null: with its work.
 */
export function watchInterrupts(leaveWithinMs: number | null = null): Interrupts & Disposable {
  const leave = new AbortController();
  let handler: (() => void) | null = null;
  const leaveNow = (): void => {
    if (leaveWithinMs !== null) {
      if (leave.signal.aborted) exitNow('on a second signal');
      setTimeout(exitNow, leaveWithinMs, `pending work did not end within ${leaveWithinMs / 1_000} s`).unref();
    }
    leave.abort();
  };
  const onInterrupt = (): void => {
    if (handler === null) return leaveNow();
    const first = handler;
    handler = null;
    first();
  };
  // A hang-up and a SIGTERM may come together when a terminal or a service ends: they count as one signal.
  const onTerminate = (): void => {
    if (!leave.signal.aborted) leaveNow();
  };
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onTerminate);
  const onHangUp = isUnderNohup() ? (): void => undefined : onTerminate;
  process.on('SIGHUP', onHangUp);
  return {
    leave: leave.signal,
    onFirst(first) {
      handler = first;
    },
    [Symbol.dispose]() {
      process.off('SIGINT', onInterrupt);
      process.off('SIGTERM', onTerminate);
      process.off('SIGHUP', onHangUp);
    },
  };
}

/** Whether the process must survive its terminal: bin/orchestrator.js has found out. */
const isUnderNohup = (): boolean => process.env.CRAWLFLEET_NOHUP !== undefined;

function exitNow(why: string): never {
  writeText(
    process.stderr,
    `orchestrator: left at once, ${why}. A run that has begun goes on with: orchestrator resume`,
  );
  process.exit(EXIT.interrupted);
}

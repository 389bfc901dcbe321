/** Retries with exponential back-off what the main server or the disk has refused. */
import { backoffMs, type BackoffLimits } from '../../shared/domain/backoff.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Random } from '../../shared/ports/random.ts';

/** The few lines an instance writes to its console. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

export interface Retry {
  clock: Clock;
  random: Random;
  log: Log;
}

/** Repeats the step until it returns null or `stop` aborts; any other result, or an error, is the problem to log. */
export async function untilDone(
  { clock, random, log }: Retry,
  { what, ...limits }: BackoffLimits & { what: string },
  step: () => Promise<string | null>,
  stop: AbortSignal,
): Promise<void> {
  for (let failures = 0; !stop.aborted; failures++) {
    const problem = await step().catch((error: unknown) => describeError(error));
    if (problem === null) return;
    logDoubling(log, failures, problem, what);
    await clock.sleep(backoffMs(failures, limits, random.next()), stop);
  }
}

/** Logs only the first failure and then each doubling of their number: the console holds 64 KB. */
export function logDoubling(log: Log, failures: number, problem: string, what: string): void {
  if ((failures & (failures + 1)) === 0) log.warn({ tries: failures + 1, problem }, what);
}

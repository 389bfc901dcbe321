/** `retention` with its clock: after a run, and for `orchestrator prune`. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { Database } from '../../db/connect.ts';
import { prune, type Pruned } from '../../db/prune.ts';
import type { Output } from '../caller.ts';

/** After a run; what is left then is removed after the next one. */
const QUIET_MS = 120_000;

export function pruneRuns(db: Database, retentionMs: number, signal: AbortSignal): Promise<Pruned> {
  const nowMs = systemClock.now();
  return prune(db, { beforeMs: nowMs - retentionMs, nowMs, signal });
}

/** Takes bounded time and never fails. */
export async function pruneQuietly(db: Database, retentionMs: number | null, output: Output): Promise<void> {
  if (retentionMs === null) return;
  try {
    const { runs } = await pruneRuns(db, retentionMs, AbortSignal.timeout(QUIET_MS));
    if (runs.length > 0) output.line(`  retention   removed what ${describePruned(runs.length, retentionMs)}`);
  } catch (error) {
    output.line(`! retention: old runs could not be removed: ${describeError(error)}`);
  }
}

export const describePruned = (runs: number, retentionMs: number): string =>
  `${runs === 1 ? 'one run' : `${runs} runs`} of more than ${formatDuration(retentionMs)} ago had left beside their rows and reports`;

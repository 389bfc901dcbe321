/** How a run stands against its deadline. Pure, from what the database has, so that every program gets the same. */
import type { Standing } from '../../../../shared/domain/standing.ts';
import { isGivenUp } from '../../model/instance-state.ts';
import { tailMs } from '../../model/run-deadlines.ts';
import type { RunRecord } from '../../model/stores.ts';
import { type Observed, observedInRows } from '../../model/world.ts';
import { forecastEnd } from './end-forecast.ts';

/**
 * How a run stands against its deadline: by its end, and until then by the median forecast (p50) of the crawl plus the
 * time kept free for publishing. Null without a basis: before the first grant, and while what is left waits for
 * something other than the crawl.
 */
export function standingOf(rows: Pick<Observed, 'nowMs' | 'run' | 'fleet' | 'work' | 'robots'>): Standing | null {
  const { run, fleet, nowMs } = rows;
  if (run.finishedAtMs !== null) return standingAt(run, run.finishedAtMs);
  if (run.phase !== 'launching' && run.phase !== 'crawling') return null;
  if (!fleet.all.some((r) => !isGivenUp(r) && (r.progress?.pending ?? 0) > 0)) return null;
  const { p50Ms } = forecastEnd(observedInRows(rows));
  // Without the tail that a main server has measured: other programs do not know it.
  return p50Ms === null || p50Ms <= nowMs ? null : standingAt(run, p50Ms + tailMs(run.deadlineAtMs - run.startedAtMs));
}

/** How a run stands by an end that is known or expected. */
export function standingAt(
  { report, deadlineAtMs }: Pick<RunRecord, 'report' | 'deadlineAtMs'>,
  endMs: number,
): Standing {
  const uncrawled = report?.products.reasons?.deadline ?? 0;
  return { end: new Date(endMs).toISOString(), lateMs: endMs - deadlineAtMs, uncrawled };
}

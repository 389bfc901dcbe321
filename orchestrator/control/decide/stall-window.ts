/** How long a run waits for a fault that may go away on its own before it counts as lasting. Pure. */
import { intervalUnder } from '../observe/robots-cache.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { RunRecord } from '../model/stores.ts';

/** Runs shorter than this have limits in proportion. */
export const SHORT_RUN_MS = 16 * 60_000;
const LEAST_MS = 120_000;
/** Minimum stall window in request gaps of one address. */
const REQUESTS = 10;

/** Milliseconds: two minutes, or ten planned gaps where that is longer; in runs under 16 minutes an eighth of the run. */
export function stallWindowMs(run: RunRecord, robots: RobotsPolicy | null): number {
  const lengthMs = run.deadlineAtMs - run.startedAtMs;
  return lengthMs < SHORT_RUN_MS ? lengthMs / 8 : Math.max(LEAST_MS, REQUESTS * plannedGapMs(run, robots));
}

/** Time between two requests of an address under interval, Crawl-delay and max_rate. */
export function plannedGapMs(run: RunRecord, robots: RobotsPolicy | null): number {
  const { intervalMs, maxRatePerSecond } = run.settings.site;
  const rated = maxRatePerSecond === null ? 0 : (run.plan.instances * 1_000) / maxRatePerSecond;
  return Math.max(intervalUnder(robots, intervalMs), rated);
}

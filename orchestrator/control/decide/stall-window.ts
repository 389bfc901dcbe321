/** How long a run waits for a fault that may go away on its own before it counts as lasting. Pure. */
import { intervalUnder } from '../observe/robots-cache.ts';
import type { World } from '../model/world.ts';

/** Runs shorter than this have limits in proportion. */
export const SHORT_RUN_MS = 16 * 60_000;
const LEAST_MS = 120_000;
/** Minimum stall window in request gaps of one address. */
const REQUESTS = 10;

/** Without `robots` there is no Crawl-delay. */
type PatienceWorld = Pick<World, 'run'> & Partial<Pick<World, 'robots'>>;

/** Milliseconds: two minutes, or ten planned gaps where that is longer; in runs under 16 minutes an eighth of the run. */
export function stallWindowMs(world: PatienceWorld): number {
  const lengthMs = world.run.deadlineAtMs - world.run.startedAtMs;
  return lengthMs < SHORT_RUN_MS ? lengthMs / 8 : Math.max(LEAST_MS, REQUESTS * plannedGapMs(world));
}

/** Time between two requests of an address under interval, Crawl-delay and max_rate. */
export function plannedGapMs({ run, robots }: PatienceWorld): number {
  const { intervalMs, maxRatePerSecond } = run.settings.site;
  const rated = maxRatePerSecond === null ? 0 : (run.plan.instances * 1_000) / maxRatePerSecond;
  return Math.max(intervalUnder(robots ?? null, intervalMs), rated);
}

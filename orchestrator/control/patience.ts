/** How long a run waits for something that may mend itself before it counts as lost. Pure. */

/** Shorter runs are measured by their length. */
const SHORT_RUN_MS = 16 * 60_000;
const LEAST_MS = 120_000;
/** Requests of one address that should have come meanwhile. */
const REQUESTS = 10;

/**
 * Milliseconds: two minutes, or ten times the planned time between two requests of one address where that is longer; in runs
 * under 16 minutes an eighth of the run.
 */
export function patienceMs(run: {
  startedAtMs: number;
  deadlineAtMs: number;
  settings: { site: { intervalMs: number } };
}): number {
  const lengthMs = run.deadlineAtMs - run.startedAtMs;
  if (lengthMs < SHORT_RUN_MS) return lengthMs / 8;
  return Math.max(LEAST_MS, REQUESTS * run.settings.site.intervalMs);
}

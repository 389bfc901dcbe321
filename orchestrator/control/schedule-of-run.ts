/** The moments of a run that follow from its deadline. */

/** Kept free before the deadline for uploading, loading and publishing: 4 %, within one second and one minute. */
export function tailMs(deadlineMs: number): number {
  return Math.min(60_000, Math.max(1_000, Math.round(deadlineMs / 25)));
}

/** When everybody stops crawling and uploads what there is. */
export function drainAtMs(run: { deadlineAtMs: number; startedAtMs: number }): number {
  return run.deadlineAtMs - tailMs(run.deadlineAtMs - run.startedAtMs);
}

/** True when crawling must stop: the deadline is near, or somebody asked. */
export function isDraining(world: {
  nowMs: number;
  run: { request: string | null; deadlineAtMs: number; startedAtMs: number };
}): boolean {
  return world.run.request !== null || world.nowMs >= drainAtMs(world.run);
}

/** When every instance powers itself off, whatever happens. */
export function powerOffAtMs(run: { deadlineAtMs: number; settings: { run: { graceMs: number } } }): number {
  return run.deadlineAtMs + run.settings.run.graceMs;
}

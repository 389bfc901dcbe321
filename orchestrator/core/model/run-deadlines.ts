/** The times of a run that follow from its deadline. */
import { limitsFor, type RunLimits } from '../../../shared/domain/limits.ts';

/**
 * The time kept free before the deadline for uploading, loading and publishing: 4 %, within one second and one minute.
 */
export function tailMs(deadlineMs: number): number {
  return Math.min(60_000, Math.max(1_000, Math.round(deadlineMs / 25)));
}

/** Maximum tail as a share of the run: a bucket that is slow for a while must not cost hours. */
const MOST_TAIL = 1 / 10;

interface Span {
  deadlineAtMs: number;
  startedAtMs: number;
  /** What uploading and loading have taken so far; not known before the first part. */
  measuredTailMs?: number | undefined;
}

/** When all instances stop crawling and upload their results: earlier where uploading and loading have taken longer. */
export function drainAtMs(run: Span): number {
  const windowMs = run.deadlineAtMs - run.startedAtMs;
  return run.deadlineAtMs - Math.max(tailMs(windowMs), Math.min(run.measuredTailMs ?? 0, windowMs * MOST_TAIL));
}

/**
 * The time after the deadline until an upload that still hangs is given up, so that the results are published within a
 * minute.
 */
const LATEST_UPLOAD_MS = 15_000;
/** The time after the deadline until publishing no longer waits for EC2. */
const LATEST_RELEASE_MS = 30_000;

/** When an instance that must upload since `sinceMs` is given up; after a restart its heartbeat is awaited first. */
export function uploadEndMs(
  world: { run: Span; loopStartedAtMs: number; limits: { uploadMs: number; lostMs: number } },
  sinceMs: number,
): number {
  const { run, loopStartedAtMs, limits } = world;
  const patientMs = Math.max(sinceMs, loopStartedAtMs) + limits.uploadMs + limits.lostMs;
  return Math.min(patientMs, Math.max(run.deadlineAtMs, loopStartedAtMs) + LATEST_UPLOAD_MS);
}

/** The time from which the results wait neither for instances to be shown ending nor for the outcome of a launch. */
export const releaseEndMs = (run: Span): number => run.deadlineAtMs + LATEST_RELEASE_MS;

export const isReleaseOver = (world: { nowMs: number; run: Span }): boolean => world.nowMs > releaseEndMs(world.run);

/** True when crawling must stop: the deadline is near, or there is a stop request. */
export function isDraining(world: { nowMs: number; run: Span & { request: string | null } }): boolean {
  return world.run.request !== null || world.nowMs >= drainAtMs(world.run);
}

/** When every instance powers itself off, whatever happens. */
export function powerOffAtMs(run: { deadlineAtMs: number; settings: { run: { graceMs: number } } }): number {
  return run.deadlineAtMs + run.settings.run.graceMs;
}

/** Boot limit as a multiple of the plan's slow boot: an instance that takes longer will not come. */
const BOOT_PATIENCE = 2;

/** The time limits of a run. A boot takes the minutes that EC2 needs, however short the run is. */
export function limitsOf(run: { startedAtMs: number; deadlineAtMs: number; plan: { bootP95Ms?: number } }): RunLimits {
  const limits = limitsFor(run.deadlineAtMs - run.startedAtMs);
  // Plans of earlier versions do not have it.
  return { ...limits, bootMs: Math.max(limits.bootMs, BOOT_PATIENCE * (run.plan.bootP95Ms ?? 0)) };
}

/**
 * What `aws.recycle_every` means in time: how many addresses rotate at once, when each is due, and what a rotation
 * costs. The plan and the control loop use the same sums. Pure.
 */
import { formatDuration } from '../../../shared/domain/quantity.ts';

/** The part of the fleet that rotates at once: at most a fifth, rounded up; the rest keeps crawling. */
const SHARE = 5;

/** Number of waves in which the fleet rotates, and the maximum number of instances in each. */
export function rotationWaves(instances: number): { waves: number; atOnce: number } {
  const atOnce = Math.max(1, Math.ceil(instances / SHARE));
  return { waves: Math.max(1, Math.ceil(instances / atOnce)), atOnce };
}

/**
 * Time from an instance's launch to its rotation. The first rotations are spread over the whole interval, wave after
 * wave: all instances were launched together and would otherwise stay due together for the rest of the run.
 */
export const rotationDueMs = (everyMs: number, waves: number, slot: number, isFirst: boolean): number =>
  isFirst ? (everyMs * ((slot % waves) + 1)) / waves : everyMs;

/** Crawling time a slot loses per rotation: the upload of its results, and a slow boot. */
export const rotationCostMs = (bootP95Ms: number, tailMs: number): number => bootP95Ms + tailMs;

/**
 * The shortest interval: below it the waves would overlap, and more than a fifth of the fleet would always be missing.
 */
export const shortestRotationMs = (bootP95Ms: number, tailMs: number): number =>
  SHARE * rotationCostMs(bootP95Ms, tailMs);

/** Rotations during this much crawling, for the slot that rotates first. */
export function rotationsDuring(
  crawlMs: number,
  { everyMs, costMs, instances }: { everyMs: number; costMs: number; instances: number },
): number {
  const { waves } = rotationWaves(instances);
  // An address's age includes the boot, so each epoch crawls for that much less.
  const firstMs = Math.max(0, rotationDueMs(everyMs, waves, 0, true) - costMs);
  if (crawlMs <= firstMs) return 0;
  return Math.ceil((crawlMs - firstMs) / Math.max(1, everyMs - costMs));
}

/** Why the interval is too short; null when it is not. */
export function rotationFault(everyMs: number | null, bootP95Ms: number, tailMs: number): string | null {
  const leastMs = shortestRotationMs(bootP95Ms, tailMs);
  if (everyMs === null || everyMs >= leastMs) return null;
  return (
    `aws.recycle_every ${formatDuration(everyMs)} is too short: a rotation takes a boot and an upload, ${formatDuration(rotationCostMs(bootP95Ms, tailMs))}, ` +
    `and only a fifth of the fleet is rotated at a time`
  );
}

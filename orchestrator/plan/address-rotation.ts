/**
 * What `aws.recycle_every` means in time: how many addresses are rotated at once, when each is due, and what it costs. The plan and
 * the control loop go by the same sums. Pure.
 */
import { formatDuration } from '../../shared/domain/quantity.ts';

/** A fifth of the fleet, rounded up: the rest crawls on. */
const SHARE = 5;

/** The fleet is rotated in so many waves, each of at most so many instances. */
export function rotationWaves(instances: number): { waves: number; atOnce: number } {
  const atOnce = Math.max(1, Math.ceil(instances / SHARE));
  return { waves: Math.max(1, Math.ceil(instances / atOnce)), atOnce };
}

/**
 * After its launch. The first rotations are spread over the whole interval, a wave after the other: all instances were launched
 * together, and would all be due together for the rest of the run.
 */
export const rotationDueMs = (everyMs: number, waves: number, slot: number, isFirst: boolean): number =>
  isFirst ? (everyMs * ((slot % waves) + 1)) / waves : everyMs;

/** Crawling time that a slot loses: the upload of what it has, and a slow boot. */
export const rotationCostMs = (bootP95Ms: number, tailMs: number): number => bootP95Ms + tailMs;

/** The shortest interval: below it the waves would overlap, and more than a fifth of the fleet would always be missing. */
export const shortestRotationMs = (bootP95Ms: number, tailMs: number): number =>
  SHARE * rotationCostMs(bootP95Ms, tailMs);

/** Rotations during so much crawling, for the slot that is rotated first. */
export function rotationsDuring(
  crawlMs: number,
  { everyMs, costMs, instances }: { everyMs: number; costMs: number; instances: number },
): number {
  const { waves } = rotationWaves(instances);
  // A boot is part of an address's age: the epochs crawl for that much less.
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

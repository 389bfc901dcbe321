/** How politely a run of many hosts asks each of them, and when it gives one up. Times are milliseconds. */
import { paceMarginMs } from './pacing.ts';

/** How often the robots.txt of an origin is read again: before its first page, and while it is crawled. */
export const ROBOTS_EVERY_MS = 3_600_000;

/** The time until a connection stands: a host that never answers must not keep a place for the time of a page. */
export const CONNECT_LIMIT_MS = 5_000;

/** Requests without an answer after which a host is dead for this run. */
export const DEAD_AFTER = 4;

/**
 * The wait after the second request without an answer, in a long run and as a share of a short one; doubled by each
 * further one. The first is repeated in the pace.
 */
const SILENT_REST_MS = 60_000;
const SILENT_REST_OF_RUN = 1 / 240;

/** Start to start of two requests to one host. @param delayMs its Crawl-delay; 0 without one */
export function hostGapMs(intervalMs: number, delayMs: number): number {
  const wantedMs = Math.max(intervalMs, delayMs);
  return wantedMs + paceMarginMs(wantedMs);
}

/**
 * How long a host rests that has not answered this many requests in a row; 0 where the pace is all that it waits for.
 *
 * @param runMs the time from the start of the run to its deadline
 */
export function restOfSilentMs(silent: number, runMs: number): number {
  if (silent < 2) return 0;
  return Math.min(SILENT_REST_MS, runMs * SILENT_REST_OF_RUN) * 2 ** (silent - 2);
}

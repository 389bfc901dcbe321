/**
 * The pace of one address: start-to-start interval with a margin, because the target's clock is the proof and it sees
 * arrivals, not starts.
 */

/** Jitter that is always there: even the fastest answer may have been some milliseconds on its way. */
const JITTER_MS = 5;

/** Added to every interval: 5 ms or 1 %, whichever is more, for jitter between our start and the target's arrival. */
export function paceMarginMs(intervalMs: number): number {
  return Math.max(JITTER_MS, intervalMs / 100);
}

/** How late an arrival is taken to be whatever the answers say, unless the first byte proves that it was earlier. */
export function arrivalAllowanceMs(intervalMs: number): number {
  return Math.max(100, intervalMs / 100);
}

/** What is known of a request that is over. All times are of one monotonic clock. */
export interface PacedRequest {
  /** When its head was written to the socket. */
  startedMs: number;
  /** When the first byte of its reply came; without one, when it was given up. */
  answeredMs: number;
  /** The least time from head to first byte that such a request took lately; 0 when that is not known. */
  fastestMs: number;
}

/**
 * When the next request may start. Two rules, the later one wins: start + interval + margin, and (latest plausible arrival of the last
 * request) + interval. It had arrived by its first byte. What it took longer than the fastest answer of late may all have been spent on
 * the way there; up to the allowance is taken to have been, in any case.
 */
export function nextStartMs({ startedMs, answeredMs, fastestMs }: PacedRequest, intervalMs: number): number {
  const allowedMs = Math.min(answeredMs, startedMs + arrivalAllowanceMs(intervalMs));
  const lateMs = Math.min(answeredMs, answeredMs - fastestMs + JITTER_MS);
  const latestArrivalMs = Math.max(allowedMs, lateMs);
  return Math.max(startedMs + intervalMs + paceMarginMs(intervalMs), latestArrivalMs + intervalMs + 1);
}

/** Share of the median answer that the fastest one is planned to take: a shop of 800 ± 200 ms. */
const USUAL_FASTEST = 3 / 4;

/**
 * From the start of one request to that of the next as a plan counts it.
 *
 * @param pageMs median of what a page takes
 */
export function plannedSpacingMs(intervalMs: number, pageMs: number): number {
  return nextStartMs({ startedMs: 0, answeredMs: pageMs, fastestMs: pageMs * USUAL_FASTEST }, intervalMs);
}

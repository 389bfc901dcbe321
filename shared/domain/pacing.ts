/**
 * The pace of one address: a start-to-start interval with a margin, because the target measures arrivals by its own
 * clock, not starts.
 */

/** Jitter that is always assumed: even the fastest reply may have been some milliseconds on its way. */
const JITTER_MS = 5;

/**
 * The margin added to every interval: 5 ms or 1 %, whichever is more, for jitter between our start and the target's
 * arrival.
 */
export function paceMarginMs(intervalMs: number): number {
  return Math.max(JITTER_MS, intervalMs / 100);
}

/** How late an arrival is always assumed to be, unless the first byte proves that it was earlier. */
export function arrivalAllowanceMs(intervalMs: number): number {
  return Math.max(100, intervalMs / 100);
}

/** Times of a finished request, all from one monotonic clock. */
export interface PacedRequest {
  /** When its head was written to the socket. */
  startedMs: number;
  /** When the first byte of its reply arrived; without one, when the request was abandoned. */
  answeredMs: number;
  /** The shortest recent time from head to first byte of such a request; 0 when unknown. */
  fastestMs: number;
}

/**
 * When the next request may start. The later of two times: start + interval + margin, and (latest plausible arrival of
 * the last request) + interval. The last request had arrived by its first byte. All time beyond the fastest recent
 * reply may have been spent on the way there; up to the allowance is always assumed to have been.
 */
export function nextStartMs({ startedMs, answeredMs, fastestMs }: PacedRequest, intervalMs: number): number {
  const allowedMs = Math.min(answeredMs, startedMs + arrivalAllowanceMs(intervalMs));
  const lateMs = Math.min(answeredMs, answeredMs - fastestMs + JITTER_MS);
  const latestArrivalMs = Math.max(allowedMs, lateMs);
  return Math.max(startedMs + intervalMs + paceMarginMs(intervalMs), latestArrivalMs + intervalMs + 1);
}

/** The fastest reply as a share of the median, for planning: a shop of 800 ± 200 ms. */
const USUAL_FASTEST = 3 / 4;

/**
 * Start-to-start time of two requests, for planning.
 *
 * @param pageMs median time of a page
 */
export function plannedSpacingMs(intervalMs: number, pageMs: number): number {
  return nextStartMs({ startedMs: 0, answeredMs: pageMs, fastestMs: pageMs * USUAL_FASTEST }, intervalMs);
}

const DAY_MS = 86_400_000;

/**
 * How long an address rests at a host after a ban: the cool-down, doubled by each further ban of the same address
 * there, up to a day.
 *
 * @param bans of this address and host, with this one
 */
export function restAfterBanMs(coolDownMs: number, bans: number): number {
  return Math.max(coolDownMs, Math.min(DAY_MS, coolDownMs * 2 ** (bans - 1)));
}

/** Right pages after which half of the excess is left. */
const HALVED_AFTER = 20;
/** Halvings after which less than a hundredth of the interval is left: the excess is over. */
const HALVINGS = 7;

/**
 * The interval of an address that begins after a ban: twice the usual one, and half of the excess less with each 20
 * right pages.
 */
export function easedIntervalMs(intervalMs: number, rightPages: number): number {
  return isEased(rightPages) ? intervalMs * (1 + 2 ** -Math.floor(rightPages / HALVED_AFTER)) : intervalMs;
}

/** True while an address keeps a longer interval. @param rightPages since its last ban */
export const isEased = (rightPages: number): boolean => rightPages < HALVED_AFTER * HALVINGS;

/**
 * By how much that lengthens the crawl of this number of pages, in milliseconds.
 *
 * @param rightPages before the first of them
 * @param atLeastMs time that a page takes whatever its interval
 */
export function easingMs(intervalMs: number, pages: number, { rightPages = 0, atLeastMs = 0 } = {}): number {
  let sumMs = 0;
  for (let halvings = 0; halvings < HALVINGS; halvings++) {
    const from = Math.max(rightPages, halvings * HALVED_AFTER);
    const at = Math.max(0, Math.min(rightPages + pages, (halvings + 1) * HALVED_AFTER) - from);
    const longerMs = intervalMs * (1 + 2 ** -halvings);
    sumMs += at * (Math.max(longerMs, atLeastMs) - Math.max(intervalMs, atLeastMs));
  }
  return sumMs;
}

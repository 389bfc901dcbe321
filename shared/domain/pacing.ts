/**
 * The pace of one address: start-to-start interval with a margin, because the target's clock is the proof and it sees
 * arrivals, not starts.
 */

/** Added to every interval: 5 ms or 1 %, whichever is more, for jitter between our start and the target's arrival. */
export function paceMarginMs(intervalMs: number): number {
  return Math.max(5, intervalMs / 100);
}

/**
 * How late an arrival may be taken to be when no first byte has proved it earlier. A loaded target (or a lost packet) takes
 * tens of milliseconds to see a request; waiting for the whole page instead would cost a third of the fleet on slow sites.
 */
export function arrivalAllowanceMs(intervalMs: number): number {
  return Math.max(100, intervalMs / 100);
}

/**
 * When the next request may start. Two rules, the later one wins:
 * start + interval + margin; and (latest plausible arrival of the last request) + interval. The first byte of the
 * reply proves the request had arrived by then; without one, the arrival is taken to be at most the allowance late.
 *
 * @param startedMs when the last request's head was written to the socket
 * @param firstByteMs when the first byte of its reply came, or null when there was none
 */
export function nextStartMs(startedMs: number, firstByteMs: number | null, intervalMs: number): number {
  const latestArrival = Math.min(firstByteMs ?? Infinity, startedMs + arrivalAllowanceMs(intervalMs));
  return Math.max(startedMs + intervalMs + paceMarginMs(intervalMs), latestArrival + intervalMs + 1);
}

/** Time comes in through this port, so that a 4-hour run can be tested in milliseconds. */

export interface Clock {
  /** Wall-clock milliseconds since 1970: for records and for comparing with other machines. May jump. */
  now(): number;
  /** Milliseconds that never go back: for measuring and pacing inside one process. */
  monotonic(): number;
  /** Resolves after `ms`, or as soon as the signal aborts; never rejects. Callers look at the signal themselves. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

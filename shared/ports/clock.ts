/** The source of time, so that a 4-hour run can be tested in milliseconds. */

export interface Clock {
  /** Wall-clock milliseconds since 1970: for records and for comparison with other machines. May jump. */
  now(): number;
  /** Monotonic milliseconds: for measuring and pacing inside one process. */
  monotonic(): number;
  /** Resolves after `ms`, or as soon as the signal aborts; never rejects. Callers check the signal themselves. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * Time limits, scaled to the run so that a 45-second dry run and a 4-hour night follow the same rules.
 * All values are milliseconds.
 */

export interface RunLimits {
  /** How often an instance sends a heartbeat when nothing changes. */
  heartbeatMs: number;
  /**
   * Silence after which an instance that EC2 shows running is given up; doubled while the load balancer finds it
   * healthy.
   */
  lostMs: number;
  /** The time from the accepted launch to the signed hello. */
  bootMs: number;
  /** The time from the sealed, empty shard to the manifest. */
  uploadMs: number;
  /**
   * The time from the terminate call until EC2 shows `terminated`; afterwards the call is repeated and an alarm raised.
   */
  terminateMs: number;
  /** How long an instance collects results before it writes a part. */
  partMs: number;
  /** How long a pool (a type in a subnet) without capacity is not tried; doubled up to twice while it stays dry. */
  dryPoolMs: number;
  /** The time from a quota refusal to the one launch that tries again, unless an instance ends earlier. */
  quotaPauseMs: number;
  /** The time from the hello to the first healthy check, while others are healthy. */
  healthyMs: number;
}

/**
 * How long an instance of many hosts may ask them after its last heartbeat: longer than a main server that is there
 * ever waits before it gives one up, so that it pauses only without one.
 */
export const hostLeaseMs = ({ lostMs }: Pick<RunLimits, 'lostMs'>): number => 2 * lostMs;

/** The difference from which the clocks of two machines count as different: boots, leases and signatures suffer. */
export const WRONG_CLOCK_MS = 60_000;

const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** The limits of a run that has `deadlineMs` from start to deadline. */
export function limitsFor(deadlineMs: number): RunLimits {
  const heartbeatMs = clamp(Math.round(deadlineMs / 960), 500, 15_000);
  return {
    heartbeatMs,
    // 12 heartbeats are 6 s on a short run: on a busy machine a healthy process may be silent for 9.
    lostMs: Math.max(12 * heartbeatMs, Math.min(20_000, Math.round(deadlineMs / 6))),
    // 6 minutes on a 4-hour run; never under 10 s, because a process needs that on a busy laptop.
    bootMs: clamp(Math.round(deadlineMs / 40), 10_000, 360_000),
    uploadMs: clamp(Math.round(deadlineMs / 48), 10_000, 300_000),
    terminateMs: clamp(Math.round(deadlineMs / 48), 10_000, 300_000),
    // Two minutes on a long run; on a short one often enough that loading overlaps the crawl.
    partMs: clamp(Math.round(deadlineMs / 60), 1_000, 120_000),
    // 3 minutes on a 4-hour run: EC2's pools recover within minutes or not soon.
    dryPoolMs: clamp(Math.round(deadlineMs / 80), 2_000, 180_000),
    quotaPauseMs: clamp(Math.round(deadlineMs / 24), 5_000, 600_000),
    // On a 4-hour run, boot, this wait and the replacement's launch call fit into 8 minutes.
    healthyMs: clamp(Math.round(deadlineMs / 48), 10_000, 300_000),
  };
}

/** Holds the fleet's one copy of robots.txt: read when the main server starts, then refreshed regularly. */
import { policyAt, type RobotsPolicy, type RobotsReading } from '../../../shared/domain/robots-matcher.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { domainsOf, unreadableRobots } from '../model/robots-pace.ts';

/** Reads robots.txt of the site, of all its domains. Never rejects: a failed read gives a policy with access `none`. */
export interface RobotsReader {
  read(): Promise<RobotsReading>;
}

export interface RobotsCacheOptions {
  /** The reader of robots.txt; or the policy in force, where the main server does not request it. */
  reader: RobotsReader | RobotsPolicy;
  clock: Clock;
  alarm: (detail: string) => Promise<void>;
  /** The time from the run's start to its deadline; scales the pause between two reads. */
  deadlineMs: number;
  heartbeatMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MINUTE_MS = 60_000;
const SHORTEST_MS = 10_000;

export class RobotsCache {
  /** The policy in force; null before the first read: no instance may crawl until then. */
  policy: RobotsPolicy | null;
  readonly #options: RobotsCacheOptions;

  constructor(options: RobotsCacheOptions) {
    this.#options = options;
    this.policy = 'read' in options.reader ? null : options.reader;
  }

  /** Reads repeatedly until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { reader, clock } = this.#options;
    if (!('read' in reader)) return;
    while (!signal.aborted) {
      // Orders to instances have only the policy.
      const { retryAfterMs = 0, skewMs: _, ...policy } = await reader.read();
      if (signal.aborted) return;
      const before = this.policy;
      // In force at once: an alarm that cannot be stored must not delay it.
      this.policy = policy;
      await this.#tell(before, policy).catch(() => undefined);
      // Other domains are read again meanwhile; and no answer counts for more than a day (RFC 9309, 2.4).
      const maxMs = policy.domains === undefined ? DAY_MS : HOUR_MS;
      await clock.sleep(Math.max(this.#pauseMs(policy), Math.min(retryAfterMs, maxMs)), signal);
    }
  }

  /**
   * Every hour; four times in a short run. More often while no instance may crawl a domain: its products wait for it.
   */
  #pauseMs(policy: RobotsPolicy): number {
    const { deadlineMs, heartbeatMs } = this.#options;
    if (unreadableRobots(policy) !== null) return Math.min(MINUTE_MS, 10 * heartbeatMs);
    return Math.max(SHORTEST_MS, Math.min(HOUR_MS, deadlineMs / 4));
  }

  async #tell(before: RobotsPolicy | null, after: RobotsPolicy): Promise<void> {
    for (const [domain, policy] of domainsOf(after).entries())
      await this.#alarmOf(policyAt(before, domain), policy, after);
  }

  async #alarmOf(before: RobotsPolicy | null, after: RobotsPolicy, whole: RobotsPolicy): Promise<void> {
    const { alarm } = this.#options;
    const who = whole.domains === undefined ? 'the fleet' : 'that domain';
    if (after.access === 'none' && before?.access !== 'none')
      await alarm(`nothing may be crawled until robots.txt can be read: ${after.source}; ${who} waits`);
    if (after.access !== 'none' && before?.access === 'none')
      await alarm(`robots.txt can be read again: ${after.source}; ${who} goes on`);
  }
}

/** What the hosts of the site asked of their last run, and what that means for the next plan. */
import { policyAt, type RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { withDelays } from '../../../shared/domain/robots.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { capInWords } from '../decide/site-cap.ts';
import { IGNORED_ROBOTS } from '../model/robots-pace.ts';
import type { Database } from '../db/connect.ts';
import { createReaders } from '../db/create-stores.ts';
import { isMigrated } from '../db/migrate.ts';
import { type HostPace, hostsOf } from '../plan/host-pace.ts';
import type { Plan } from '../plan/plan.ts';
import type { Config } from '../config/load-config.ts';

/** The paces that each host of the site asked of its last run, where it asked for a slower one. */
export async function readAskedPaces(config: Config, database: Database): Promise<HostPace[]> {
  // `plan` and `doctor` change nothing, so our tables may be missing, or be those of an earlier version.
  if (!(await isMigrated(database))) return [];
  const { runs } = createReaders(database);
  const paces = await Promise.all(hostsOf(config.values.site.product_url).map((host) => runs.lastPace(host)));
  return paces.filter((pace) => pace !== null && pace.cap !== undefined) as HostPace[];
}

/**
 * robots.txt and the paces to plan with: the delay that a host asked of its last run stays its interval, and what that
 * run was allowed then stays the most. A cap that the site did not ask of that run again, nor asks for now, is over.
 * `site.max_rate` takes the place of all caps, and so does `site.robots: ignore`; a probe finds out what is allowed.
 */
export function plannedPaces(
  { values: { site }, maxRequests }: Pick<Config, 'values' | 'maxRequests'>,
  robots: RobotsPolicy,
  asked: readonly HostPace[],
): { robots: RobotsPolicy; paces: HostPace[] } {
  const isFree = site.max_rate !== null || site.robots === 'ignore' || maxRequests !== undefined;
  const caps = hostsOf(site.product_url).map((host, domain) => {
    const cap = asked.find((pace) => pace.host === host)?.cap;
    if (isFree || cap === undefined) return null;
    const { isLast, ...still } = cap;
    const now = policyAt(robots, domain);
    const isUnknown = now.access === 'none' || now.version === IGNORED_ROBOTS.version;
    if (isUnknown) return cap;
    if ((now.crawlDelayMs ?? 0) >= cap.delayMs) return still;
    return isLast ? null : { ...still, isLast: true as const };
  });
  const slowed = withDelays(
    robots,
    caps.map((cap) => cap?.delayMs ?? 0),
  );
  const paces = hostsOf(site.product_url).map((host, domain): HostPace => {
    const intervalMs = Math.max(site.interval, policyAt(slowed, domain)?.crawlDelayMs ?? 0);
    const cap = caps[domain] ?? null;
    return { host, intervalMs, ...(cap === null ? {} : { cap }) };
  });
  return { robots: slowed, paces };
}

/** What the caps mean for the deadline, a line for each host. */
export function capWarnings({ paces = [], verdict, earliestEndMs, deadlineMs }: Plan): string[] {
  return paces.flatMap(({ host, cap }) => {
    if (cap === undefined) return [];
    const end =
      verdict === 'feasible'
        ? `the deadline of ${formatDuration(deadlineMs)} holds with that`
        : `the deadline of ${formatDuration(deadlineMs)} ${earliestEndMs === null ? 'cannot be kept' : `is too early for that: the earliest end is ${formatDuration(earliestEndMs)} after the start`}`;
    return [
      `robots.txt of ${host} raised its Crawl-delay from ${formatDuration(cap.beforeMs)} to ${formatDuration(cap.delayMs)} during run ${cap.runId}: the plan keeps that as the interval, and ${capInWords(cap)}; ${end}. With the site's permission site.max_rate takes the place of this limit`,
    ];
  });
}

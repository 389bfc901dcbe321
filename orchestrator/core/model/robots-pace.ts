/** What robots.txt means for the fleet: whether it may crawl, and how fast. Pure. */
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';

/** The policy where robots.txt is ignored. */
export const IGNORED_ROBOTS: RobotsPolicy = {
  version: 'ignored',
  access: 'all',
  rules: [],
  crawlDelayMs: null,
  source: 'robots.txt is not read (site.robots: ignore)',
};

/** The policy of the main server where products are at any hosts. */
export const OWNERS_READ_ROBOTS: RobotsPolicy = {
  ...IGNORED_ROBOTS,
  version: 'of-each-host',
  source: 'the robots.txt of each host is read by the instance that asks it',
};

/** The policies of a site's domains; of a site with one host, that one. */
export const domainsOf = (policy: RobotsPolicy): readonly RobotsPolicy[] => policy.domains ?? [policy];

/**
 * The domains whose robots.txt cannot be read, so that nothing may be crawled there, in words; null when there is none.
 */
export function unreadableRobots(policy: RobotsPolicy | null): string | null {
  const sources = policy === null ? [] : domainsOf(policy).flatMap((p) => (p.access === 'none' ? p.source : []));
  return sources.length === 0 ? null : `robots.txt cannot be read: ${sources.join('; ')}`;
}

/** The interval to keep everywhere: the planned one, or what robots.txt asks for where that is longer. */
export function intervalUnder(policy: RobotsPolicy | null, plannedMs: number): number {
  return Math.max(plannedMs, policy?.crawlDelayMs ?? 0);
}

/** What the hosts of the site asked of their last run, and what that means for the next plan. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { policyAt, type RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { withDelays } from '../../../shared/domain/robots.ts';
import type { HostKey } from '../../../shared/domain/host-key.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { capInWords } from '../decide/site-cap.ts';
import { IGNORED_ROBOTS } from '../model/robots-pace.ts';
import type { Database } from '../db/connect.ts';
import { createReaders } from '../db/create-stores.ts';
import { readNotes } from '../db/host-rows.ts';
import { isMigrated } from '../db/migrate.ts';
import { inQuery } from '../db/retry.ts';
import { type AskedPace, type HostPace, hostsOf, type OperatorPace } from '../plan/host-pace.ts';
import type { HostRecords } from '../plan/host-sums.ts';
import type { Plan, PlanInput } from '../plan/plan.ts';
import type { Config } from '../config/load-config.ts';

/** How long a host is remembered that has banned an address: it covers schedules that run weekly. */
const REMEMBERED_MS = 7 * 86_400_000;

/**
 * Of the last run of each host of the site, where it or the operator asked for a slower pace, or it banned an address.
 */
export async function readAskedPaces(config: Config, database: Database): Promise<AskedPace[]> {
  // `plan` and `doctor` change nothing, so our tables may be missing, or be those of an earlier version.
  if (!(await isMigrated(database))) return [];
  const { runs } = createReaders(database);
  const sinceMs = systemClock.now() - REMEMBERED_MS;
  const hosts = hostsOf(config.values.site.product_url);
  const paces = await Promise.all(hosts.map((host) => runs.lastPace(host, sinceMs)));
  return paces.filter((pace) => pace !== null && isSlower(pace)) as AskedPace[];
}

/**
 * These hosts, each with the longest gap that it has asked of earlier runs, or an operator of all runs to come; and
 * those that an operator has denied.
 */
export async function withKnownDelays(
  database: Database,
  loads: readonly HostRecords[],
  key?: HostKey,
): Promise<HostRecords[]> {
  if (!(await isMigrated(database))) return [...loads];
  const names = loads.map(({ host }) => host);
  const notes = await inQuery(database, (knex) => readNotes(knex, names, key));
  const known = new Map(notes.map((note) => [note.host, note]));
  return loads.map((load) => {
    const { delayMs, paceMs, denied } = known.get(load.host) ?? {};
    const longestMs = Math.max(load.delayMs, delayMs ?? 0, paceMs ?? 0);
    return { ...load, delayMs: longestMs, ...(denied === true && { isDenied: true }) };
  });
}

const isSlower = ({ cap, operatorPace, bannedLately }: AskedPace): boolean =>
  cap !== undefined || operatorPace !== undefined || bannedLately === true;

/**
 * What the plan keeps beside the paces: of the operator the slowest pace, and the domains that banned an address
 * lately.
 */
export function keptFrom(
  { values, maxRequests }: Pick<Config, 'values' | 'maxRequests'>,
  asked: readonly AskedPace[],
): Pick<PlanInput, 'operatorPace' | 'bannedLately'> {
  const [operatorPace] = asked
    .flatMap((pace) => pace.operatorPace ?? [])
    .toSorted((a, b) => (b.intervalMs ?? 0) - (a.intervalMs ?? 0));
  // A probe finds out what happens at its interval.
  const bannedLately = hostsOf(values.site.product_url).flatMap((host, domain) =>
    maxRequests === undefined && asked.some((pace) => pace.host === host && pace.bannedLately) ? [domain] : [],
  );
  return {
    ...(operatorPace === undefined
      ? {}
      : { operatorPace: { ...operatorPace, pausedUntilMs: null, isForNextPlan: false } }),
    ...(bannedLately.length === 0 ? {} : { bannedLately }),
  };
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

/** What the caps mean for the deadline, a line for each host, and what else slows the plan down. */
export function capWarnings(plan: Plan): string[] {
  const { paces = [], operatorPace, bannedLately = [], verdict, earliestEndMs, deadlineMs } = plan;
  const end =
    verdict === 'feasible'
      ? `the deadline of ${formatDuration(deadlineMs)} holds with that`
      : `the deadline of ${formatDuration(deadlineMs)} ${earliestEndMs === null ? 'cannot be kept' : `is too early for that: the earliest end is ${formatDuration(earliestEndMs)} after the start`}`;
  const ofOperator =
    operatorPace === undefined
      ? []
      : [
          `the operator of run ${operatorPace.runId} asked this plan to keep ${operatorPaceInWords(plan, operatorPace)}; ${end}. orchestrator pace ${operatorPace.runId} --reset forgets it`,
        ];
  const afterBan =
    bannedLately.length === 0
      ? []
      : [
          'the site banned an address within the last seven days: each address begins there at twice the interval, and halves the excess with each 20 right pages',
        ];
  const ofSite = paces.flatMap(({ host, cap }) => {
    if (cap === undefined) return [];
    return [
      `robots.txt of ${host} raised its Crawl-delay from ${formatDuration(cap.beforeMs)} to ${formatDuration(cap.delayMs)} during run ${cap.runId}: the plan keeps that as the interval, and ${capInWords(cap)}; ${end}. With the site's permission site.max_rate takes the place of this limit`,
    ];
  });
  return [...ofSite, ...ofOperator, ...afterBan];
}

const operatorPaceInWords = (plan: Pick<Plan, 'intervalMs'>, { intervalMs, addresses }: OperatorPace): string =>
  `${formatDuration(Math.max(plan.intervalMs, intervalMs ?? 0))} between two requests of one address, and no more addresses than were at work (${addresses})`;

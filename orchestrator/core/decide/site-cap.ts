/**
 * A site or an operator that asks for a slower pace in mid-run is not met by more addresses: from then on each host
 * gets at most what the addresses at work made of the pace asked for. Pure; docs/decisions/0010-robots.md and
 * 0045-operator-pace.md have the reasons.
 */
import { policyAt, type RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { withDelays } from '../../../shared/domain/robots.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { addressesInWords, addressesWithin, type HostCap, type HostPace, hostsOf, rateOf } from '../plan/host-pace.ts';
import type { Action } from '../model/actions.ts';
import { hasRequests, openIncident } from '../model/instance-state.ts';
import { intervalOf, operatorPaceOf, pausedUntilMs } from '../model/operator-pace.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import type { Observed } from '../model/world.ts';

type Seen = Pick<Observed, 'run' | 'fleet' | 'raised'>;

type Stored = Pick<RunRecord, 'paces' | 'plan' | 'settings' | 'operatorPace'>;

/** What the hosts of the run ask for, in the order of its domains: as planned, or as stored since. */
export const pacesOf = (run: Stored): readonly HostPace[] =>
  knownPaces(run) ??
  hostsOf(run.settings.site.productUrl).map((host) => ({ host, intervalMs: run.settings.site.intervalMs }));

/** The paces of the hosts; undefined where none has asked for more than the interval. */
const knownPaces = ({ paces, plan }: Pick<Stored, 'paces' | 'plan'>): readonly HostPace[] | undefined =>
  paces ?? plan.paces;

/**
 * The paces of the run after this robots.txt, where a Crawl-delay has risen above what was planned or asked for so far;
 * else null. Before any address is at work the plan's number counts: it is the fleet that the site was to get.
 */
export function raisedPaces(
  { nowMs, run, fleet }: Pick<Observed, 'nowMs' | 'run' | 'fleet'>,
  robots: RobotsPolicy | null,
): readonly HostPace[] | null {
  // A policy without any delay asks for nothing: the usual one, in every round.
  if (robots === null || (robots.crawlDelayMs === null && robots.domains === undefined)) return null;
  const asked = pacesOf(run).map((pace, domain) => ({
    pace,
    delayMs: Math.max(pace.intervalMs, policyAt(robots, domain)?.crawlDelayMs ?? 0),
  }));
  if (asked.every(({ pace, delayMs }) => delayMs === pace.intervalMs)) return null;
  const atWork = fleet.serving.filter(isAtWork).length || run.plan.instances;
  return asked.map(({ pace, delayMs }): HostPace => {
    if (delayMs === pace.intervalMs) return pace;
    const addresses = Math.min(atWork, pace.cap?.addresses ?? Infinity);
    const beforeMs = pace.cap?.runId === run.id ? pace.cap.beforeMs : pace.intervalMs;
    return { ...pace, intervalMs: delayMs, cap: { addresses, delayMs, beforeMs, atMs: nowMs, runId: run.id } };
  });
}

/** It sends requests: it has said hello, has or may get products, and no ban rests it. */
export const isAtWork = (record: InstanceRecord): boolean =>
  (record.phase === 'ready' || record.phase === 'crawling') &&
  openIncident(record)?.verdict !== 'banned' &&
  hasRequests(record);

/** The caps of the hosts: empty where no host has one; else one for each domain. Called for each slot and heartbeat. */
function capsOf({ run, raised }: Pick<Observed, 'run' | 'raised'>): (HostCap | null)[] {
  const asked = operatorPaceOf(run);
  if (asked === null) return (raised ?? knownPaces(run) ?? []).map(({ cap }) => cap ?? null);
  return (raised ?? pacesOf(run)).map(({ intervalMs, cap }) => {
    const { addresses, atMs, runId } = asked;
    const delayMs = Math.max(intervalMs, asked.intervalMs ?? 0);
    const own = { addresses, delayMs, beforeMs: intervalMs, atMs, runId };
    return cap !== undefined && rateOf(cap) < rateOf(own) ? cap : own;
  });
}

/**
 * robots.txt as the fleet keeps it: with the interval that an operator asks for, and where more addresses are up than
 * the cap counts, each of them is slower.
 */
export function robotsInForce(seen: Seen, robots: RobotsPolicy): RobotsPolicy;
export function robotsInForce(seen: Seen, robots: RobotsPolicy | null): RobotsPolicy | null;
export function robotsInForce(seen: Seen, robots: RobotsPolicy | null): RobotsPolicy | null {
  const caps = capsOf(seen);
  if (robots === null || caps.every((cap) => cap === null)) return robots;
  const { up, ending } = seen.fleet.addresses;
  const askedMs = operatorPaceOf(seen.run)?.intervalMs ?? 0;
  const slowest = caps.map((cap) =>
    cap === null ? 0 : Math.max(askedMs, Math.ceil((up + ending) * (1_000 / rateOf(cap)) - 1e-6)),
  );
  return withDelays(robots, slowest);
}

/** How many addresses the caps allow at the pace in force; Infinity without one. More of them would only be slower. */
export function addressesAllowed({ run, raised, robots }: Pick<Observed, 'run' | 'raised' | 'robots'>): number {
  const intervalMs = intervalOf(run);
  const allowed = capsOf({ run, raised }).map((cap, domain) => {
    if (cap === null) return Infinity;
    return addressesWithin(rateOf(cap), Math.max(intervalMs, policyAt(robots, domain)?.crawlDelayMs ?? 0));
  });
  return Math.min(...allowed);
}

/** True when an empty slot may get an address within the caps, at the latest once EC2 has ended what was given up. */
export function hasRoomAtSite(world: Observed): boolean {
  const allowed = addressesAllowed(world);
  if (allowed === Infinity) return true;
  const { up, unsent } = world.fleet.addresses;
  return up + unsent.length < allowed;
}

/** False for a claim that the caps have no room for any more: EC2 was not called for it yet. */
export function mayBeLaunched(world: Observed, record: InstanceRecord): boolean {
  const allowed = addressesAllowed(world);
  if (allowed === Infinity) return true;
  const { up, ending, unsent } = world.fleet.addresses;
  return up + ending + unsent.indexOf(record) < allowed;
}

/** Leaves out the claims of addresses that the caps have no room for: the slots have all seen the same room. */
export function withinCaps(world: Observed, actions: readonly Action[]): readonly Action[] {
  const allowed = addressesAllowed(world);
  if (allowed === Infinity) return actions;
  const { up, ending, unsent } = world.fleet.addresses;
  let room = allowed - up - ending - unsent.length;
  return actions.filter((action) => action.kind !== 'claim' || room-- > 0);
}

/** The site (Retry-After) or the operator has asked it to wait, and it does. */
export function isResting({ nowMs, run }: Pick<Observed, 'nowMs' | 'run'>, record: InstanceRecord): boolean {
  if (pausedUntilMs(run) > nowMs) return true;
  const { progress, lastHeartbeatAtMs } = record;
  const restMs = progress?.restMs ?? 0;
  return restMs > 0 && (lastHeartbeatAtMs ?? 0) + restMs > nowMs;
}

/** The site wants no request from the address that the slot had last: another one in its place would send them. */
export function isSlotResting(world: Observed, record: InstanceRecord | undefined): boolean {
  if (record === undefined) return false;
  const incident = world.run.settings.site.onBan === 'replace' ? null : openIncident(record);
  return isResting(world, record) || (incident?.verdict === 'banned' && (incident.untilMs ?? 0) > world.nowMs);
}

/** Stores what the site has asked for since, and says it once. */
export function keepSlowerPaces(world: Observed): Action[] {
  const notes = (world.raised ?? knownPaces(world.run) ?? []).flatMap(({ host, cap }): Action[] => {
    if (cap?.runId !== world.run.id) return [];
    const detail =
      `robots.txt of ${host} asks for ${formatDuration(cap.delayMs)} between two requests of one address instead of ` +
      `${formatDuration(cap.beforeMs)}: the longer one is kept, no address is added to make up for it (${capInWords(cap)}), ` +
      'and the deadline may be missed';
    return [{ kind: 'note', note: { key: `slower ${host} ${cap.delayMs}`, event: 'decision', detail }, alarm: true }];
  });
  return world.raised === null ? notes : [{ kind: 'keep-paces', paces: world.raised }, ...notes];
}

/** Such as `at most 5.5/s, as 22 addresses make at 4s`. */
export const capInWords = (cap: HostCap): string =>
  `at most ${Number(rateOf(cap).toPrecision(3))}/s, as ${addressesInWords(cap.addresses, 'makes', 'make')} at ${formatDuration(cap.delayMs)}`;

/**
 * The part of the site in a late run: the hosts that asked for a slower pace in mid-run, and about how many of the
 * `left` products that cost. Null where it cost none.
 */
export function slowerPaceInWords(run: RunRecord, left: number, endMs: number): string | null {
  const slowed = (knownPaces(run) ?? []).flatMap(({ host, cap }) => {
    if (cap === undefined || cap.runId !== run.id) return [];
    const crawledMs = Math.max(0, endMs - cap.atMs);
    const cost = Math.floor(((cap.addresses * crawledMs) / run.plan.paceMs) * (1 - cap.beforeMs / cap.delayMs));
    return cost === 0 ? [] : [{ host, cap, cost }];
  });
  if (left === 0 || slowed.length === 0) return null;
  const cost = slowed.reduce((sum, host) => sum + host.cost, 0);
  const share = cost >= left ? 'all' : `about ${cost}`;
  const asked = slowed.map(
    ({ host, cap }) =>
      `robots.txt of ${host} raised its Crawl-delay from ${formatDuration(cap.beforeMs)} to ${formatDuration(cap.delayMs)} in mid-run`,
  );
  return `${share} of them because the site asked for a slower pace: ${asked.join('; ')}`;
}

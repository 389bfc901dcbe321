/**
 * How the main server handles addresses that stopped on their own: which return products, which are replaced, what a
 * suspicion means, and when the whole run must end. Pure.
 */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { hasAttemptsLeft, isFilled, isFilledSoon } from './slot-attempts.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import type { AddressIncident, InstanceRecord, IncidentRecord, RunRecord } from '../model/stores.ts';
import type { Observed } from '../model/world.ts';
import { isGivenUp, isRefused, openIncident } from '../model/instance-state.ts';

export { openIncident } from '../model/instance-state.ts';

/** It takes no products: it has an open incident, its address is rotated, or its products are to be reassigned. */
export function isUnavailable(record: InstanceRecord): boolean {
  return record.phase === 'banned' || openIncident(record) !== null || record.rotateAtMs !== null;
}

function isBanned(record: InstanceRecord): boolean {
  return openIncident(record)?.verdict === 'banned';
}

/** True when its slot gets another address as soon as it has uploaded its results. */
export function isBeingReplaced(world: Observed, record: InstanceRecord): boolean {
  return (
    world.run.settings.site.onBan === 'replace' &&
    isBanned(record) &&
    !isGivenUp(record) &&
    hasAttemptsLeft(world, record.slot)
  );
}

/** Its slot gets another address, because this one is banned or old enough: what it has not crawled waits for it. */
export function isRotatingAddress(world: Observed, record: InstanceRecord): boolean {
  return (record.rotateAtMs !== null && !isGivenUp(record)) || isBeingReplaced(world, record);
}

/** True when it must return its uncrawled products and has not done so. */
export function mustReturnProducts(world: Observed, record: InstanceRecord): boolean {
  if (record.incident?.verdict !== 'banned' || record.incident.returnedAtMs !== null) return false;
  return (isBanned(record) || record.phase === 'banned') && !isBeingReplaced(world, record);
}

/** True when it has dropped its uncrawled products, so that others may have them. */
export function canReassign(world: Observed, record: InstanceRecord): boolean {
  return record.phase === 'banned' && mustReturnProducts(world, record) && record.progress?.pending === 0;
}

/**
 * True when a banned instance crawls again. The order to return its products may have crossed the end of its cool-down:
 * if it still holds some, it counts as having kept them only after `lostMs`.
 */
export function isBanOver(world: Observed, record: InstanceRecord): boolean {
  const { incident } = record;
  if (record.phase !== 'banned' || incident === null || incident.overAtMs === null) return false;
  if (incident.returnedAtMs !== null || incident.verdict !== 'banned') return true;
  return (record.progress?.pending ?? 0) > 0 && world.nowMs > incident.overAtMs + world.limits.lostMs;
}

/**
 * True while an address with an open incident may still return products: no instance is sealed before that. On a site
 * that bans, any crawling address may be the next one, so idle instances stay as a reserve.
 */
export function isReturnExpected(world: Observed): boolean {
  const hasBanned = world.fleet.all.some((r) => r.incident?.verdict === 'banned');
  // Not by slot, which would cost a sort per heartbeat: an epoch is given up before the next one is claimed.
  return world.fleet.all.some((r) => {
    if (isGivenUp(r)) return false;
    const busy = (r.progress?.pending ?? 0) > 0;
    return (busy && hasBanned) || (isUnavailable(r) && (busy || mustReturnProducts(world, r)));
  });
}

/** When it last got a right page, by the main server's clock; null when it never did. */
export function lastRightMs(record: InstanceRecord): number | null {
  const okAgoMs = record.progress?.okAgoMs ?? null;
  return okAgoMs === null || record.lastHeartbeatAtMs === null ? null : record.lastHeartbeatAtMs - okAgoMs;
}

/**
 * The verdict on a suspect address. `banned`: the site still serves others, or no other address could settle it in
 * time. null: wait; or the site has changed, which `haltReason` decides for the run as a whole.
 */
export function judgeSuspicion(world: Observed, record: InstanceRecord): 'banned' | null {
  const incident = openIncident(record);
  if (incident?.verdict !== 'suspect') return null;
  const others = world.fleet.serving.filter((r) => r.slot !== record.slot);
  if (others.some((r) => (lastRightMs(r) ?? -Infinity) > incident.atMs)) return 'banned';
  if (isSiteChanged(world)) return null;
  // No address is left to settle it: a ban stops less than a changed site would.
  if (!isHelpOnItsWay(world) && others.every((r) => isBanned(r)) && isOneOfMany(world)) return 'banned';
  // Right pages could not be reported while no main server was listening.
  const sinceMs = Math.max(incident.atMs, world.loopStartedAtMs);
  return world.nowMs - sinceMs > world.limits.lostMs ? 'banned' : null;
}

/**
 * Every address sees only bad pages, canary pages too, and no other address that could settle it is on its way. One
 * address proves it only in a fleet of one: the last of many may be the one that the site has banned.
 */
function isSiteChanged(world: Observed): boolean {
  const all = world.fleet.serving;
  const suspects = all.flatMap((r) => openIncident(r) ?? []).filter(({ verdict }) => verdict === 'suspect');
  if (suspects.length < all.length || isHelpOnItsWay(world)) return false;
  if (all.length === 0 || (all.length === 1 && isOneOfMany(world))) return false;
  const sinceMs = Math.min(...suspects.map(({ atMs }) => atMs));
  return all.every((r) => (lastRightMs(r) ?? -Infinity) <= sinceMs);
}

const isOneOfMany = (world: Observed): boolean => world.run.plan.instances > 1;

/**
 * Another address will soon be up: its instance is launched, or its launch is tried (again after throttling, but not
 * after a quota refusal), or a slot is about to be filled again.
 */
function isHelpOnItsWay(world: Observed): boolean {
  return [...world.fleet.latest.values()].some((r) => {
    if (isGivenUp(r)) return world.work.waiting > 0 && isFilledSoon(world, r.slot, r);
    if (r.phase === 'claimed') return isFilled(world, r) && !isRefused(r);
    return r.phase === 'pending' || r.phase === 'booting';
  });
}

/** Share of the fleet that may be banned within the window before the circuit breaker opens. */
const CIRCUIT_SHARE = 1 / 3;
/** Minimum number of banned addresses that open the circuit breaker: one says nothing about another. */
const CIRCUIT_ADDRESSES = 2;

/** Bans that began within this time count together: ten minutes, less on a short run. */
export function circuitWindowMs(run: RunRecord): number {
  return Math.min(600_000, Math.max(5_000, (run.deadlineAtMs - run.startedAtMs) / 24));
}

/** The addresses that were banned within the window, over or not, and the size of the fleet including them. */
export function recentBans(world: Observed): { banned: InstanceRecord[]; fleet: number } {
  const sinceMs = world.nowMs - circuitWindowMs(world.run);
  const banned = world.fleet.all.filter((r) => isDefiniteBan(r) && r.incident.atMs >= sinceMs);
  const all = world.fleet.serving;
  return { banned, fleet: banned.length === 0 ? all.length : new Set([...all, ...banned]).size };
}

type Stopped = InstanceRecord & { incident: AddressIncident };

/** False for an address that got only missing pages: they may really be gone, and other instances check them again. */
function isDefiniteBan(record: InstanceRecord): record is Stopped {
  return record.incident?.verdict === 'banned' && record.incident.rule !== ALL_GONE;
}

/** The rule of an instance that never got a right page, only missing ones. */
export const ALL_GONE = 'all-gone';

/**
 * Why crawling must stop permanently, or null. `banned`: the circuit breaker is open, because the site has banned two
 * addresses and more than a third of the fleet within ten minutes, or refuses every running address (with `stop`: one);
 * any further request would be against the site's will. A single remaining address cools down instead if that leaves
 * time to crawl. `site-changed`: canary pages are unreadable from every address, so no crawled page can be trusted.
 */
export function haltReason(world: Observed): 'banned' | 'site-changed' | null {
  if (isDraining(world)) return null;
  const all = world.fleet.serving;
  const banned = all.filter(isBanned);
  const [first] = banned;
  if (banned.length > 0 && world.run.settings.site.onBan === 'stop') return 'banned';
  if (isSiteChanged(world)) return 'site-changed';
  const open = world.work.waiting > 0 || all.some((r) => (r.progress?.pending ?? 0) > 0);
  const recent = recentBans(world);
  const count = recent.banned.length;
  if (open && count >= CIRCUIT_ADDRESSES && count > recent.fleet * CIRCUIT_SHARE) return 'banned';
  if (!open || first === undefined || banned.length < all.length || isHelpOnItsWay(world)) return null;
  if (world.run.settings.site.onBan === 'cool-down')
    return banned.length > 1 || !canRest(world, first) ? 'banned' : null;
  // One address says nothing about another: a fleet of one gets a second one before the ban counts as final.
  const addresses = world.fleet.all.filter((r) => r.incident?.verdict === 'banned').length;
  return addresses > 1 || !all.some((r) => isBeingReplaced(world, r)) ? 'banned' : null;
}

/** Pages without their values; a page that a script builds is one as well. */
const ofContent = (rule: string): boolean => rule.endsWith('-missing') || rule === 'no-values';

/** What makes another run of the site less likely to be banned, by the evidence. */
export function banRemedy(
  bans: readonly Pick<IncidentRecord, 'rule' | 'evidence'>[],
  site: RunRecord['settings']['site'],
): string {
  const cookie = cookieRemedy(bans, site);
  if (cookie !== null) return cookie;
  // The URL of a POST is not all of its request.
  const page = bans.some(({ evidence }) => evidence.request) ? '--id ID' : '--url URL';
  return bans.every(({ rule }) => ofContent(rule))
    ? `the pages had no values, which a longer interval may not change: see with orchestrator extract ${page} what they have; ` +
        'if scripts build them, set site.render: auto'
    : `make site.interval longer than ${formatDuration(site.intervalMs)}, or set site.max_rate`;
}

/** What helps against bans that are all for want of a cookie; null for any other. */
function cookieRemedy(
  bans: readonly Pick<IncidentRecord, 'evidence'>[],
  { keepCookies }: RunRecord['settings']['site'],
): string | null {
  const [cookie] = bans.map(({ evidence }) => evidence.cookie);
  if (cookie === undefined || bans.some(({ evidence }) => evidence.cookie === undefined)) return null;
  return keepCookies === false
    ? `the site redirects until it gets its cookie ${cookie} back: set site.keep_cookies to true`
    : `the site redirects in a circle and sets the cookie ${cookie}: see with orchestrator extract --render browser whether a browser gets further`;
}

/** Its cool-down ends while there is time to crawl. */
function canRest(world: Observed, record: InstanceRecord): boolean {
  const untilMs = record.incident?.untilMs ?? null;
  return untilMs !== null && untilMs < drainAtMs(world.run);
}

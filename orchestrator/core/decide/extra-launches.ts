/** Extra instances, when the planned ones will probably not finish in time. Pure. */
import { templatesOf } from '../../../shared/domain/domains.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { Action } from '../model/actions.ts';
import { openIncident, recentBans } from './ban-policy.ts';
import { affordable } from './launches/budget.ts';
import { nextPool } from './launches/pools.ts';
import { workersOf } from './shares/workers.ts';
import type { EndForecast } from '../model/forecast.ts';
import { forecastEnd } from './shares/end-forecast.ts';
import { widestGate } from './launches/launch-gate.ts';
import { addressesWithin } from '../plan/host-pace.ts';
import { addressesAllowed, isResting } from './site-cap.ts';
import { intervalUnder, unreadableRobots } from '../model/robots-pace.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import { isDown, type World } from '../model/world.ts';
import { canFill, isHopeless } from './slot-attempts.ts';
import { isStalled } from './watchdog.ts';
import { isGivenUp } from '../model/instance-state.ts';

/** Maximum claims in one round: the next observation shows their effect. */
const MAX_AT_ONCE = 50;

/**
 * Claims further slots when the forecast end (p95) is well past the last moment for crawling and more addresses would
 * bring it forward; and for the URLs that a discovery has found and its fleet cannot crawl in time. All within
 * `run.max_instances`, `site.max_rate`, `run.max_cost` and what the site has asked for.
 */
export function extraLaunches(observed: World): Action[] {
  const beyond = beyondFleet(observed);
  const world = beyond === 0 ? observed : withFrontier(observed, beyond);
  const latestMs = drainAtMs(world.run);
  const hasGrown = beyond > 0;
  if (world.forecast === null || !(hasGrown || isLate(world, world.forecast.end, latestMs))) return [];
  // Another address would do no better than the present ones, even while it is not certain yet that the site is down.
  if (isStalled(world) || isDown(world.site) || world.site.suspicion !== null) return [];
  if (isDraining(world) || !isWorthwhile(world, latestMs) || !isPossible(world)) return [];
  const now = forecastEnd(world);
  if (!hasGrown && !isLate(world, now, latestMs)) return [];
  const room = Math.min(MAX_AT_ONCE, roomFor(world));
  const count = fewestFor(world, room, latestMs);
  if (count === 0) return [];
  const end = hasGrown
    ? `${beyond} URLs are found that it cannot crawl in time`
    : now.p95Ms === null
      ? 'no instance could crawl the open products'
      : `p95 is ${formatDuration(now.p95Ms - latestMs)} late`;
  const why = `launched in addition to the plan of ${world.run.plan.instances}: ${end}; ${count} more in this round`;
  const first = world.fleet.slotCount(world.run.plan);
  return Array.from({ length: count }, (_, i): Action[] => {
    const slot = first + i;
    const next = nextPool(world, slot);
    return next.kind === 'pool' ? [{ kind: 'claim', slot, epoch: 1, pool: next.pool, why }] : [];
  }).flat();
}

/** URLs that wait and that the fleet cannot crawl in time; 0 where it may not grow for them. */
function beyondFleet({ discovery, run }: World): number {
  const { beyond = 0 } = discovery ?? {};
  return run.plan.growth && beyond >= run.plan.chunkSize ? beyond : 0;
}

/**
 * The world with the frontier counted as waiting products. A discovery takes only what fits, so its forecast is never
 * late.
 */
function withFrontier(world: World, beyond: number): World {
  const { discovery, work, run } = world;
  const { takable = 0 } = discovery ?? {};
  return { ...world, work: { ...work, waiting: work.waiting + Math.ceil((takable + beyond) / run.plan.chunkSize) } };
}

/** Late by more than the next minutes may make up for: each further address costs money and is a burden on the site. */
function isLate({ run, limits }: World, { p95Ms }: EndForecast, latestMs: number): boolean {
  const slackMs = Math.max(2 * limits.heartbeatMs, (run.deadlineAtMs - run.startedAtMs) / 100);
  return p95Ms === null || p95Ms > latestMs + slackMs;
}

/** An instance launched now boots in time for a chunk at least, and there is more than one chunk to share. */
function isWorthwhile(world: World, latestMs: number): boolean {
  const { chunkSize, paceMs } = world.run.plan;
  if (world.nowMs + world.limits.bootMs + chunkSize * paceMs >= latestMs) return false;
  const { workers, unassigned } = workersOf(world);
  return unassigned > 0 || workers.some((p) => p.canGive && p.pending >= 2 * chunkSize);
}

/** No sign that EC2 would refuse, nor in the answer to the last extra launch. */
function isPossible(world: World): boolean {
  if (isHopeless(world) || widestGate(world) !== 'open' || isSiteUnwilling(world)) return false;
  const { instances } = world.run.plan;
  return ![...world.fleet.latest.values()].some(
    (r) => r.slot >= instances && isGivenUp(r) && r.instanceId === null && !canFill(world, r.slot, r),
  );
}

/**
 * The site rests an address or the fleet (a ban, a Retry-After, no robots.txt): no other address makes up for that.
 * Where a banned one was replaced its ban stays open, so that no later launch adds to the sum before it.
 */
function isSiteUnwilling(world: World): boolean {
  if (recentBans(world).banned.length > 0 || unreadableRobots(world.robots) !== null) return true;
  return world.fleet.all.some((r) => openIncident(r)?.verdict === 'banned' || isResting(world, r));
}

/** How many more addresses the limits of the run allow. */
function roomFor(world: World): number {
  const { settings, plan } = world.run;
  const latest = world.fleet.latest;
  let alive = 0;
  for (let slot = 0; slot < world.fleet.slotCount(world.run.plan); slot++) {
    const record = latest.get(slot);
    if (record && !isGivenUp(record)) alive++;
    else if (slot < plan.instances && canFill(world, slot, record)) alive++;
  }
  const { maxInstances } = settings.run;
  const intervalMs = intervalUnder(world.robots, settings.site.intervalMs);
  const rate = settings.site.maxRatePerSecond;
  const domains = templatesOf(settings.site.productUrl).length;
  const byRate = rate === null ? Infinity : addressesWithin(rate / domains, intervalMs);
  const addresses = Math.min(maxInstances, byRate, addressesAllowed(world));
  // A launch that failed permanently has used up its slot number too.
  const most = Math.max(plan.instances + mostExtra(plan.instances), plan.growth?.instances ?? 0);
  const numbers = most - world.fleet.slotCount(world.run.plan);
  return Math.max(0, Math.min(addresses - alive, numbers));
}

/** Maximum extra slots: half of the plan, at least two, so that the cost of a run stays near its plan. */
const mostExtra = (planned: number): number => Math.max(2, Math.ceil(planned / 2));

/** The smallest number that finishes by the last moment; when none does, as many as help. */
function fewestFor(world: World, room: number, latestMs: number): number {
  let best = { count: 0, endMs: forecastEnd(world).p95Ms ?? Infinity };
  const first = world.fleet.slotCount(world.run.plan);
  const most = affordable(
    world,
    Array.from({ length: room }, (_, i) => first + i),
  );
  for (let count = 1; count <= most; count++) {
    const endMs = forecastEnd(world, workersOf(world, count)).p95Ms ?? Infinity;
    if (endMs < best.endMs - world.limits.heartbeatMs) best = { count, endMs };
    if (endMs <= latestMs) break;
  }
  return best.count;
}

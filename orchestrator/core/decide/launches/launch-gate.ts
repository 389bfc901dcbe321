/**
 * Whether instances may be launched in a region now, by what the last launches came to. Also about machines that EC2
 * launches and ends again before they have said hello: a volume key that it may not use, a limit on volumes, a fault of
 * its own. The next one would most likely die as well, so launches pause, and in the end stop. Pure.
 */
import { backoffMs } from '../../../../shared/domain/backoff.ts';
import { isGivenUp } from '../../model/instance-state.ts';
import { neededRefused } from '../../model/rights.ts';
import { rightsGate } from './rights.ts';
import type { FleetSnapshot } from '../../model/fleet-snapshot.ts';
import type { RegionState } from '../../model/regions.ts';
import type { LaunchGate, Observed } from '../../model/world.ts';

/** The narrowest of the region's: the account's quota there, its rights, and machines that die at launch. */
export function launchGate(world: Observed, region: RegionState): LaunchGate {
  // Without its balancer no instance there would get a product.
  if (region.isOut || (region.balancerRefused && region.balancer === null)) return 'held';
  if (neededRefused(region.rights).length > 0) return 'held';
  const gates = [quotaGate(world, region), rightsGate(world, region), deathGate(world, region)];
  return gates.find((g) => g === 'held') ?? gates.find((g) => g === 'one') ?? 'open';
}

/** `held` until an instance of ours has ended or the pause is over; judged by the rows alone. */
export function quotaGate(world: Observed, region: RegionState): LaunchGate {
  const { refusedMs, givenMs, endedMs } = fleetIn(world, region).launches.quota;
  if (refusedMs === -Infinity) return 'open';
  if (givenMs > refusedMs || endedMs > refusedMs) return 'one';
  return world.nowMs >= refusedMs + world.limits.quotaPauseMs ? 'one' : 'held';
}

/** Failed rounds in a row after which launches stop: with their pauses ten minutes of a four-hour run. */
const MAX_ROUNDS = 3;
/** The longest pause, as a multiple of the first. */
const MAX_FACTOR = 4;

/**
 * The gate after a death: `held` for a pause that grows with each round, then one launch, and `held` until it is seen
 * running.
 */
function deathGate(world: Observed, region: RegionState): LaunchGate {
  const { rounds, lastMs, isTrying } = deathsSince(world, region);
  if (rounds === 0) return 'open';
  if (isTrying) return 'held';
  const firstMs = world.limits.dryPoolMs;
  const pauseMs = backoffMs(rounds - 1, { firstMs, maxMs: firstMs * MAX_FACTOR });
  return world.nowMs >= lastMs + pauseMs ? 'one' : 'held';
}

/** True when machines have died round after round and none is up: no further launch would bring one. */
export function isDyingAtLaunch(world: Observed): boolean {
  if (world.regions.some((region) => deathsSince(world, region).rounds < MAX_ROUNDS)) return false;
  return world.fleet.all.every((r) => isGivenUp(r) || r.instanceId === null);
}

interface Deaths {
  /** Launches a pause apart that have died, since one came up. */
  rounds: number;
  /** When the last of them was launched. */
  lastMs: number;
  /** One that was launched after them is not up yet. */
  isTrying: boolean;
}

function deathsSince(world: Observed, region: RegionState): Deaths {
  const { limits, loopStartedAtMs } = world;
  const deaths: Deaths = { rounds: 0, lastMs: -Infinity, isTrying: false };
  let roundMs = -Infinity;
  for (const { atMs, end } of fleetIn(world, region).launches.ends) {
    // A main server that resumes the run tries for itself.
    if (atMs < loopStartedAtMs) continue;
    if (end === 'up') {
      deaths.rounds = 0;
      roundMs = -Infinity;
    } else if (end === 'died') {
      if (atMs >= roundMs + limits.dryPoolMs) {
        deaths.rounds++;
        roundMs = atMs;
      }
      deaths.lastMs = atMs;
      deaths.isTrying = false;
    } else deaths.isTrying = deaths.rounds > 0;
  }
  return deaths;
}

/** The gate of the region that is the least restricted: what a slot meets that may go anywhere. */
export function widestGate(world: Observed): LaunchGate {
  const gates = world.regions.map((region) => launchGate(world, region));
  return gates.find((g) => g === 'open') ?? gates.find((g) => g === 'one') ?? 'held';
}

const fleetIn = ({ fleet, regions }: Observed, { name }: RegionState): FleetSnapshot =>
  fleet.in(name, name === regions[0].name);

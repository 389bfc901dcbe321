/**
 * Machines that EC2 launches and ends again before they have said hello: a volume key that it may not use, a limit on
 * volumes, a fault of its own. The next one would most likely die as well, so launches pause, and in the end stop.
 * Pure.
 */
import { backoffMs } from '../../../shared/domain/backoff.ts';
import type { GateWorld } from '../model/world.ts';
import type { LaunchGate } from '../model/world.ts';
import { isGivenUp } from '../model/instance-state.ts';

/** Failed rounds in a row after which launches stop: with their pauses ten minutes of a four-hour run. */
const MAX_ROUNDS = 3;
/** The longest pause, as a multiple of the first. */
const MAX_FACTOR = 4;

/** After a death `held` for a pause that grows with each round, then one launch, and `held` until it is seen running. */
export function deathGate(world: GateWorld): LaunchGate {
  const { rounds, lastMs, isTrying } = deathsSince(world);
  if (rounds === 0) return 'open';
  if (isTrying) return 'held';
  const firstMs = world.limits.dryPoolMs;
  const pauseMs = backoffMs(rounds - 1, { firstMs, maxMs: firstMs * MAX_FACTOR });
  return world.nowMs >= lastMs + pauseMs ? 'one' : 'held';
}

/** True when machines have died round after round and none is up: no further launch would bring one. */
export function isDyingAtLaunch(world: GateWorld): boolean {
  if (deathsSince(world).rounds < MAX_ROUNDS) return false;
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

function deathsSince({ fleet, limits, loopStartedAtMs = -Infinity }: GateWorld): Deaths {
  const deaths: Deaths = { rounds: 0, lastMs: -Infinity, isTrying: false };
  let roundMs = -Infinity;
  for (const { atMs, end } of fleet.launches.ends) {
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

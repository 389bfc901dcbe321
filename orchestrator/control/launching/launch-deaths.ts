/**
 * Machines that EC2 launches and ends again before they have said hello: a volume key that it may not use, a limit on
 * volumes, a fault of its own. The next one would most likely die as well, so launches pause, and in the end stop.
 * Pure.
 */
import { backoffMs } from '../../../shared/domain/backoff.ts';
import type { StateReason } from '../../cloud/compute.ts';
import type { GateWorld } from '../model/world.ts';
import type { LaunchGate } from '../model/world.ts';
import { perFleet } from '../per-fleet.ts';
import type { InstanceRecord } from '../model/stores.ts';
import { isGivenUp } from '../model/world.ts';

/** Failed rounds in a row after which launches stop: with their pauses ten minutes of a four-hour run. */
const MAX_ROUNDS = 3;
/** The longest pause, as a multiple of the first. */
const MAX_FACTOR = 4;

/** Ends that were requested, on the machine or from outside, say nothing about the launch. */
const ASKED_FOR: readonly string[] = ['Client.UserInitiatedShutdown', 'Client.InstanceInitiatedShutdown'];

/** Why EC2 itself ended the instance before it said hello; null for every other one. */
export function deathAtLaunch(record: InstanceRecord): StateReason | null {
  const { stateReason } = record;
  if (stateReason === null || record.publicKey !== null || !isGivenUp(record)) return null;
  return ASKED_FOR.includes(stateReason.code) ? null : stateReason;
}

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
  return world.instances.every((r) => isGivenUp(r) || r.instanceId === null);
}

interface Deaths {
  /** Launches a pause apart that have died, since one came up. */
  rounds: number;
  /** When the last of them was launched. */
  lastMs: number;
  /** One that was launched after them is not up yet. */
  isTrying: boolean;
}

function deathsSince({ instances, limits, loopStartedAtMs = -Infinity }: GateWorld): Deaths {
  const deaths: Deaths = { rounds: 0, lastMs: -Infinity, isTrying: false };
  let roundMs = -Infinity;
  for (const { atMs, end } of launchesOf(instances)) {
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

/** The launched instances in the order of their launches; empty while none has died. */
const launchesOf = perFleet((instances): readonly { atMs: number; end: 'up' | 'died' | 'open' }[] => {
  if (!instances.some((r) => deathAtLaunch(r) !== null)) return [];
  return instances
    .filter((r) => r.instanceId !== null)
    .map((r) => ({ atMs: r.launchedAtMs ?? r.claimedAtMs, end: endOf(r) }))
    .sort((a, b) => a.atMs - b.atMs);
});

function endOf(record: InstanceRecord): 'up' | 'died' | 'open' {
  if (deathAtLaunch(record) !== null) return 'died';
  return record.phase === 'pending' ? 'open' : 'up';
}

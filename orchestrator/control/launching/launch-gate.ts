/** Whether instances may be launched now, by what the last launches came to. Pure. */
import { deathGate } from './launch-deaths.ts';
import { rightsGate } from './rights.ts';
import type { GateWorld, LaunchGate, World } from '../model/world.ts';

/** The narrowest of the three: the account's quota, its rights, and machines that die at launch. */
export function launchGate(world: GateWorld): LaunchGate {
  const gates = [quotaGate(world), rightsGate(world), deathGate(world)];
  return gates.find((g) => g === 'held') ?? gates.find((g) => g === 'one') ?? 'open';
}
/** `held` until an instance of ours has ended or the pause is over; judged by the rows alone. */
export function quotaGate(world: Pick<World, 'fleet' | 'nowMs' | 'limits'>): LaunchGate {
  const { refusedMs, givenMs, endedMs } = world.fleet.launches.quota;
  if (refusedMs === -Infinity) return 'open';
  if (givenMs > refusedMs || endedMs > refusedMs) return 'one';
  return world.nowMs >= refusedMs + world.limits.quotaPauseMs ? 'one' : 'held';
}

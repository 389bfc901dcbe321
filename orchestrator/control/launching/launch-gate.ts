/** Whether instances may be launched now, by what the last launches came to. Pure. */
import { deathGate } from './launch-deaths.ts';
import { rightsGate } from './rights.ts';
import type { GateWorld, LaunchGate, World } from '../model/world.ts';
import { perFleet } from '../per-fleet.ts';

/** The narrowest of the three: the account's quota, its rights, and machines that die at launch. */
export function launchGate(world: GateWorld): LaunchGate {
  const gates = [quotaGate(world), rightsGate(world), deathGate(world)];
  return gates.find((g) => g === 'held') ?? gates.find((g) => g === 'one') ?? 'open';
}
const timesOf = perFleet((instances) => {
  const times = { refusedMs: -Infinity, givenMs: -Infinity, endedMs: -Infinity };
  for (const record of instances) {
    const askedMs = record.launchedAtMs ?? -Infinity;
    if (record.instanceId !== null) {
      times.givenMs = Math.max(times.givenMs, askedMs);
      times.endedMs = Math.max(times.endedMs, record.terminatedAtMs ?? -Infinity);
    } else if (record.answer?.kind === 'refused' && record.answer.cause === 'quota') {
      times.refusedMs = Math.max(times.refusedMs, askedMs);
    }
  }
  return times;
});
/** `held` until an instance of ours has ended or the pause is over; judged by the rows alone. */
export function quotaGate(world: Pick<World, 'instances' | 'nowMs' | 'limits'>): LaunchGate {
  const { refusedMs, givenMs, endedMs } = timesOf(world.instances);
  if (refusedMs === -Infinity) return 'open';
  if (givenMs > refusedMs || endedMs > refusedMs) return 'one';
  return world.nowMs >= refusedMs + world.limits.quotaPauseMs ? 'one' : 'held';
}

/** Launches after EC2 has refused one for the account's quota: further ones would be refused as well. Pure. */
import type { LaunchGate } from './launch-gate.ts';
import { perFleet } from './per-fleet.ts';
import type { World } from './world.ts';

/** `held` until an instance of ours has ended or the pause is over; judged by the rows alone. */
export function quotaGate(world: Pick<World, 'instances' | 'nowMs' | 'limits'>): LaunchGate {
  const { refusedMs, givenMs, endedMs } = timesOf(world.instances);
  if (refusedMs === -Infinity) return 'open';
  if (givenMs > refusedMs || endedMs > refusedMs) return 'one';
  return world.nowMs >= refusedMs + world.limits.quotaPauseMs ? 'one' : 'held';
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

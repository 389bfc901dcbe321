/** Whether instances may be launched now, judged by the last launches. Pure. */
import { deathGate } from './launch-deaths.ts';
import { quotaGate } from './quota-gate.ts';
import { rightsGate } from './rights.ts';
import type { World } from './world.ts';

/** `open`: any number. `one`: one at a time, each after the answer to the last. `held`: none for now. */
export type LaunchGate = 'open' | 'one' | 'held';

export type GateWorld = Pick<World, 'instances' | 'nowMs' | 'limits'> &
  Partial<Pick<World, 'loopStartedAtMs' | 'rights'>>;

/** The most restrictive of the three: the account's quota, its rights, and machines that die at launch. */
export function launchGate(world: GateWorld): LaunchGate {
  const gates = [quotaGate(world), rightsGate(world), deathGate(world)];
  return gates.find((g) => g === 'held') ?? gates.find((g) => g === 'one') ?? 'open';
}

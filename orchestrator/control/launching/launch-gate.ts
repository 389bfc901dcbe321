/** Whether instances may be launched now, by what the last launches came to. Pure. */
import { deathGate } from './launch-deaths.ts';
import { quotaGate } from './quota-gate.ts';
import { rightsGate } from './rights.ts';
import type { World } from '../model/world.ts';

/** `open`: as many as are wanted. `one`: one at a time, its answer first. `held`: none for now. */
export type LaunchGate = 'open' | 'one' | 'held';

export type GateWorld = Pick<World, 'instances' | 'nowMs' | 'limits'> &
  Partial<Pick<World, 'loopStartedAtMs' | 'rights'>>;

/** The narrowest of the three: the account's quota, its rights, and machines that die at launch. */
export function launchGate(world: GateWorld): LaunchGate {
  const gates = [quotaGate(world), rightsGate(world), deathGate(world)];
  return gates.find((g) => g === 'held') ?? gates.find((g) => g === 'one') ?? 'open';
}

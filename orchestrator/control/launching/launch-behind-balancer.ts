/** What a run may do while it has no load balancer. Pure. */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import type { Action } from '../model/actions.ts';
import { isDraining } from '../model/run-deadlines.ts';
import type { World } from '../model/world.ts';
import { isGivenUp } from '../model/world.ts';

/**
 * Leaves out the launches that would only cost money: no instance is launched before the balancer was first created,
 * and none after it was refused.
 */
export function behindBalancer(world: World, actions: readonly Action[]): Action[] {
  if (world.run.balancer !== null) return [...actions];
  if (world.balancerRefused === true) return actions.filter((a) => a.kind !== 'claim' && a.kind !== 'launch');
  if (world.instances.some((r) => r.instanceId !== null)) return [...actions];
  const asked = new Set(world.instances.filter((r) => r.attempts > 0).map((r) => epochKey(r)));
  return actions.filter((a) => a.kind !== 'launch' || asked.has(epochKey(a)));
}

/** True when the balancer was refused and no instance has anything left to crawl: the run has to end. */
export function mustEnd(world: World): boolean {
  if (world.balancerRefused !== true || world.run.balancer !== null || isDraining(world)) return false;
  return !world.instances.some((r) => !isGivenUp(r) && (r.progress?.pending ?? 0) > 0);
}

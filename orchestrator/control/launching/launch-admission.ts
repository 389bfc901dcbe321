/** Which of the launches that the slots request in one round may go out together. Pure. */
import { type EpochId, epochKey } from '../../../shared/domain/epoch-id.ts';
import type { Action } from '../model/actions.ts';
import { launchGate } from './launch-gate.ts';
import { spendingOf } from './budget.ts';
import { isTrial } from './pools.ts';
import { poolKey } from '../model/launch-history.ts';
import type { World } from '../model/world.ts';
import { isDraining } from '../model/run-deadlines.ts';
import { isGivenUp } from '../model/instance-state.ts';

/**
 * Leaves out the claims that `run.max_cost` does not allow (with an alarm), and the launches that should wait for the
 * answer to another one: in a pool that was dry, and while the gate lets one through at a time.
 */
export function admitLaunches(world: World, actions: readonly Action[]): Action[] {
  const admitted = withinMoney(world, oneEach(world, actions));
  return launchGate(world) === 'one' ? oneAtATime(world, admitted) : admitted;
}

/** One claim for each pool that was dry at its last launch. */
function oneEach(world: World, actions: readonly Action[]): Action[] {
  const tried = new Set<string>();
  return actions.filter((action) => {
    if (action.kind !== 'claim' || action.pool === null || !isTrial(world, action.pool)) return true;
    const key = poolKey(action.pool);
    if (tried.has(key)) return false;
    tried.add(key);
    return true;
  });
}

function withinMoney(world: World, actions: readonly Action[]): Action[] {
  const claims = actions.filter((a) => a.kind === 'claim');
  const cap = world.run.settings.run.maxCost;
  if (cap === null || claims.length === 0) return [...actions];
  let { committed } = spendingOf(world);
  const refused = new Set<Action>();
  let dearest = 0;
  for (const claim of claims) {
    const { each } = spendingOf(world, claim.pool?.instanceType);
    if (committed + each > cap) refused.add(claim);
    else committed += each;
    dearest = Math.max(dearest, each);
  }
  if (refused.size === 0) return [...actions];
  const detail =
    `run.max_cost keeps ${refused.size === 1 ? 'an instance' : `${refused.size} instances`} from being launched: ` +
    `past and running instances may cost $${committed.toFixed(4)} until the end of the grace period, ` +
    `one more up to $${dearest.toFixed(4)}, and the cap is $${cap.toFixed(2)}; the run goes on with the instances it has`;
  return [...actions.filter((a) => !refused.has(a)), { kind: 'hold', cause: 'budget', detail }];
}

/** The first of the launches and claims that are not under way yet, if none is under way. */
function oneAtATime(world: World, actions: readonly Action[]): Action[] {
  const fresh = (action: Action): boolean =>
    action.kind === 'claim' || (action.kind === 'launch' && isFirstCall(world, action));
  const underWay = world.fleet.all.some((r) => r.phase === 'claimed' && r.attempts > 0);
  const launch = actions.find((a) => a.kind === 'launch' && isFirstCall(world, a));
  const claim = actions.find((a) => a.kind === 'claim');
  const chosen = underWay ? undefined : (launch ?? claim);
  return actions.filter((action) => !fresh(action) || action === chosen);
}

function isFirstCall(world: World, id: EpochId): boolean {
  return world.fleet.find(id)?.attempts === 0;
}

/**
 * Leaves out the launches that would only cost money: no instance is launched before the balancer was first created,
 * and none after it was refused.
 */
export function behindBalancer(world: World, actions: readonly Action[]): Action[] {
  if (world.run.balancer !== null) return [...actions];
  if (world.balancerRefused) return actions.filter((a) => a.kind !== 'claim' && a.kind !== 'launch');
  if (world.fleet.all.some((r) => r.instanceId !== null)) return [...actions];
  const asked = new Set(world.fleet.all.filter((r) => r.attempts > 0).map((r) => epochKey(r)));
  return actions.filter((a) => a.kind !== 'launch' || asked.has(epochKey(a)));
}

/** True when the balancer was refused and no instance has anything left to crawl: the run has to end. */
export function mustEnd(world: World): boolean {
  if (!world.balancerRefused || world.run.balancer !== null || isDraining(world)) return false;
  return !world.fleet.all.some((r) => !isGivenUp(r) && (r.progress?.pending ?? 0) > 0);
}

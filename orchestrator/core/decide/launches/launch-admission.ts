/** Which of the launches that the slots request in one round may go out together. Pure. */
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import type { Action } from '../../model/actions.ts';
import { launchGate } from './launch-gate.ts';
import { Budget } from './budget.ts';
import { homeOf, isTrial, roomIn } from './pools.ts';
import { poolKey } from '../../model/launch-history.ts';
import { regionNamed, type RegionState } from '../../model/regions.ts';
import type { World } from '../../model/world.ts';
import { isDraining } from '../../model/run-deadlines.ts';
import { withinCaps } from '../site-cap.ts';
import { isGivenUp } from '../../model/instance-state.ts';

/**
 * Leaves out the claims that the site or `run.max_cost` does not allow (the latter with an alarm), and the launches
 * that should wait for the answer to another one: in a pool that was dry, and while the gate lets one through at a
 * time.
 */
export function admitLaunches(world: World, actions: readonly Action[]): readonly Action[] {
  // In most rounds nothing is launched.
  if (!actions.some(({ kind }) => kind === 'claim' || kind === 'launch')) return actions;
  const admitted = withinMoney(world, withinRegions(world, withinCaps(world, oneEach(world, actions))));
  return world.regions.reduce(
    (left, region) => (launchGate(world, region) === 'one' ? oneAtATime(world, region, left) : left),
    admitted,
  );
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

/** No more claims than the region has room for: the slots have all seen the same room. */
function withinRegions(world: World, actions: readonly Action[]): readonly Action[] {
  return world.regions.reduce((left, region) => {
    let room = roomIn(world, region);
    return left.filter((action) => action.kind !== 'claim' || placeOf(world, action) !== region.name || room-- > 0);
  }, actions);
}

function withinMoney(world: World, actions: readonly Action[]): Action[] {
  const claims = actions.filter((a) => a.kind === 'claim');
  const cap = world.run.settings.run.maxCost;
  if (cap === null || claims.length === 0) return [...actions];
  const budget = new Budget(world);
  const refused = new Set<Action>(
    claims.filter((claim) => !budget.admit(claim.pool ?? { region: homeOf(world, claim.slot) })),
  );
  if (refused.size === 0) return [...actions];
  const detail =
    `run.max_cost keeps ${refused.size === 1 ? 'an instance' : `${refused.size} instances`} from being launched: ` +
    `past and running instances may cost $${budget.committed.toFixed(4)} until the end of the grace period, ` +
    `one more up to $${budget.dearest.toFixed(4)}, and the cap is $${cap.toFixed(2)}; the run goes on with the instances it has`;
  return [
    ...actions.filter((a) => !refused.has(a)),
    { kind: 'note', note: { key: 'budget', event: 'decision', detail }, alarm: true },
  ];
}

/** The first of the region's launches and claims that are not under way yet, if none is under way there. */
function oneAtATime(world: World, { name }: RegionState, actions: readonly Action[]): Action[] {
  const isThere = (action: Action): boolean => placeOf(world, action) === name;
  const fresh = (action: Action): boolean =>
    isThere(action) && (action.kind === 'claim' || (action.kind === 'launch' && isFirstCall(world, action)));
  const underWay = world.fleet.all.some(
    (r) => r.phase === 'claimed' && r.attempts > 0 && regionNamed(world.regions, r.request.region).name === name,
  );
  const launch = actions.find((a) => a.kind === 'launch' && fresh(a));
  const claim = actions.find((a) => a.kind === 'claim' && fresh(a));
  const chosen = underWay ? undefined : (launch ?? claim);
  return actions.filter((action) => !fresh(action) || action === chosen);
}

function isFirstCall(world: World, id: EpochId): boolean {
  return world.fleet.find(id)?.attempts === 0;
}

/** The region of a claim or a launch; null for any other action. */
function placeOf(world: World, action: Action): string | null {
  if (action.kind === 'claim') return action.pool?.region ?? homeOf(world, action.slot);
  const { fleet, regions } = world;
  return action.kind === 'launch' ? regionNamed(regions, fleet.find(action)?.request.region).name : null;
}

/**
 * Leaves out the launches that would only cost money: no instance is launched in a region before its balancer was first
 * created, and none after it was refused.
 */
export function behindBalancer(world: World, actions: readonly Action[]): Action[] {
  const byRegion = new Map(world.regions.map((region) => [region.name, launchesBehind(world, region)]));
  return actions.filter((action) => {
    const place = placeOf(world, action);
    const isBehind = place === null ? undefined : byRegion.get(place);
    return isBehind === undefined || isBehind(action);
  });
}

function launchesBehind(world: World, { name, balancer, balancerRefused }: RegionState): (action: Action) => boolean {
  if (balancer !== null) return () => true;
  if (balancerRefused) return () => false;
  const there = world.fleet.in(name, name === world.regions[0].name).all;
  if (there.some((r) => r.instanceId !== null)) return () => true;
  const asked = new Set(there.filter((r) => r.attempts > 0).map((r) => epochKey(r)));
  return (action) => action.kind !== 'launch' || asked.has(epochKey(action));
}

/**
 * True when the balancer was refused in every region and no instance has anything left to crawl: the run has to end.
 */
export function mustEnd(world: World): boolean {
  if (isDraining(world) || !world.regions.every((r) => r.balancerRefused && r.balancer === null)) return false;
  return !world.fleet.all.some((r) => !isGivenUp(r) && (r.progress?.pending ?? 0) > 0);
}

/**
 * The core of the control loop: from the observed world to the actions to take. Pure: no clock, no randomness, no
 * database. The states and their transitions are in shared/domain/states.ts; every wait here has a time limit.
 */
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import type { Action, HaltReason } from '../model/actions.ts';
import { behindBalancer, mustEnd, admitLaunches } from './launches/launch-admission.ts';
import { haltReason } from './ban-policy.ts';
import { decideSlot } from './decide-slot.ts';
import { operatorPaceNotes } from './operator-pace.ts';
import { keepSlowerPaces } from './site-cap.ts';
import { pagesNote } from './measured-pages.ts';
import { extraLaunches } from './extra-launches.ts';
import { rotations } from './address-rotation.ts';
import { isShortOfMoney } from './launches/budget.ts';
import { lostRights, refusedEnd, refusedNotes } from './launches/rights.ts';
import { endNote } from './uncrawled-reason.ts';
import { offerShare } from './shares/chunk-limits.ts';
import { takeUrls } from './discovery-state.ts';
import { isDraining, isReleaseOver, powerOffAtMs, drainAtMs } from '../model/run-deadlines.ts';
import { canFill } from './slot-attempts.ts';
import { regionNamed, type RegionState } from '../model/regions.ts';
import { offerTargets } from './shares/offer-targets.ts';
import type { InstanceRecord } from '../model/stores.ts';
import { hasMoreWork, isDown, mayHaveMoved, type World } from '../model/world.ts';
import { isClosed, isGivenUp, isLeaving } from '../model/instance-state.ts';
import { isStallCause, stallKind } from '../model/stall-causes.ts';
import { stallEnd, stallNotes, unansweredNotes } from './watchdog.ts';
import { lateAt, leftIn, notClosed } from './decide-words.ts';

/** Everything to do now. An empty list means: wait for something to change, or for time to pass. */
export const decide = (world: World): Action[] => unnoted(world, decideRun(world));

/**
 * Without the notes that are stored already. What they are about may last for hours, and each action that is carried
 * out wakes the loop.
 */
export const unnoted = ({ notedKeys }: Pick<World, 'notedKeys'>, actions: readonly Action[]): Action[] =>
  actions.filter((action) => action.kind !== 'note' || !notedKeys.has(action.note.key));

function decideRun(world: World): Action[] {
  switch (world.run.phase) {
    case 'planned':
      return [{ kind: 'move-run', from: 'planned', to: 'launching', reason: null }];
    case 'launching':
    case 'crawling':
      return [...admitLaunches(world, behindBalancer(world, decideFleet(world))), ...decideLoading(world)];
    case 'releasing':
      return [...decideRelease(world), ...decideLoading(world)];
    case 'loading':
      return decideEnd(world);
    case 'completed':
    case 'held':
    case 'banned':
    case 'failed':
    case 'cancelled':
      return decideFleetEnd(world);
  }
}

function decideFleet(world: World): Action[] {
  const actions: Action[] = [];
  const halt = haltReason(world) ?? (mustEnd(world) ? balancerEnd(world) : (refusedEnd(world) ?? stallEnd(world)));
  if (halt !== null) actions.push({ kind: 'halt', reason: halt });
  for (const region of world.regions) actions.push(...decideBalancer(world, region));
  const latest = world.fleet.latest;
  const slots = world.fleet.slotCount(world.run.plan);
  for (let slot = 0; slot < slots; slot++) actions.push(...decideSlot(world, slot, latest.get(slot)));
  if (halt === null) actions.push(...takeUrls(world));
  if (halt === null)
    actions.push(...rotations(world), ...extraLaunches(world), ...lateNotes(world), ...pagesNote(world));
  actions.push(...keepSlowerPaces(world), ...operatorPaceNotes(world), ...stallNotes(world));
  actions.push(...unansweredNotes(world), ...refusedNotes(world));
  actions.push(...decideOldEpochs(world, latest));

  const isReady = (r: InstanceRecord): boolean => r.phase === 'ready' || r.phase === 'crawling';
  if (world.run.phase === 'launching' && [...latest.values()].some(isReady)) {
    actions.push({ kind: 'move-run', from: 'launching', to: 'crawling', reason: null });
  }
  const share = world.work.waiting > 0 ? offerShare(world.chunkLimits, world.run.plan.chunkSize) : 0;
  if (halt === null && !isDraining(world) && world.work.waiting > 0 && share > 0 && offerTargets(world).length > 0) {
    actions.push({ kind: 'offer', share });
  }
  if (isFleetFinished(world, latest)) {
    actions.push(...notesOfOpenEpochs(world));
    actions.push({
      kind: 'move-run',
      from: world.run.phase,
      to: 'releasing',
      reason: endNote(endReason(world), isDown(world.site)),
    });
  }
  return actions;
}

/** Why no region gets a balancer. */
const balancerEnd = ({ stallCauses }: World): HaltReason =>
  stallCauses.has('balancer-quota') ? 'balancer-quota' : 'no-balancer';

/** Epochs that were replaced still have to be closed and terminated. */
function decideOldEpochs(world: World, latest: ReadonlyMap<number, InstanceRecord>): Action[] {
  const { all } = world.fleet;
  if (all.length === latest.size) return [];
  return all.filter((r) => latest.get(r.slot)?.epoch !== r.epoch).flatMap((r) => decideSlot(world, r.slot, r, true));
}

/** A region has a balancer as soon as the plan has instances for it, or one is claimed there. */
function decideBalancer(world: World, { name, balancer, balancerGone }: RegionState): Action[] {
  if (balancer !== null) return balancerGone ? [{ kind: 'forget-balancer', region: name }] : [];
  // Where no launch could be prepared there is nothing to balance.
  if (isDraining(world) || world.pools?.regions.some((r) => r.name === name) === false) return [];
  const { regions = [] } = world.run.plan;
  const isUsed =
    world.regions.length === 1 ||
    regions.some(({ region }) => region === name) ||
    world.fleet.all.some((r) => !isGivenUp(r) && regionNamed(world.regions, r.request.region).name === name);
  return isUsed ? [{ kind: 'ensure-balancer', region: name }] : [];
}

/** No instance crawls, and none will: every epoch is closed and no slot will be filled again. */
function isFleetFinished(world: World, latest: ReadonlyMap<number, InstanceRecord>): boolean {
  if (isClosingOver(world)) return true;
  // Every machine has powered itself off by now, so an AWS that does not answer must not delay the results. But parts
  // that were uploaded unobserved count: each epoch that has served is closed first, if the bucket allows it. Without
  // keys or rights neither the bucket nor EC2 can be queried.
  if (world.nowMs > powerOffAtMs(world.run) || lostRights(world) !== null)
    return world.fleet.all.every((r) => !isOpenEpoch(r));
  if (isReleaseOver(world)) return world.fleet.all.every((r) => isGivenUp(r) && r.manifestKey !== null);
  if (mayHaveMoved(world) && !isDraining(world)) return false;
  const slots = world.fleet.slotCount(world.run.plan);
  for (let slot = 0; slot < slots; slot++) {
    const record = latest.get(slot);
    if (record && !isClosed(record)) return false;
    if (hasMoreWork(world) && canFill(world, slot, record)) return false;
  }
  return world.fleet.all.every((r) => isClosed(r));
}

/** Why products may be left without an outcome: noted with the run until they are settled. */
function endReason(world: World): FailureReason | null {
  const { request } = world.run;
  if (request === 'banned' || request === 'site-changed') return request;
  if (isStallCause(request)) return world.robots?.access === 'none' ? 'robots' : stallKind(request).rest;
  if (request !== null) return 'cancelled';
  // No instance was allowed to crawl: more time would not have helped.
  if (isDraining(world) && world.robots?.access === 'none') return 'robots';
  if (world.work.waiting > 0 && isShortOfMoney(world)) return 'budget';
  if (isDraining(world)) return 'deadline';
  return world.work.waiting > 0 ? 'lost-instance' : null;
}

function decideLoading(world: World): Action[] {
  return world.totals.seen > world.totals.loaded ? [{ kind: 'load' }] : [];
}

function decideRelease(world: World): Action[] {
  const actions = decideFleetEnd(world);
  // Every epoch is closed, so the results wait neither for an instance to finish terminating nor, past the deadline,
  // for EC2 to show it.
  const released = world.fleet.all.every((r) => isLeaving(r) || isOverdue(world, r)) || isReleaseOver(world);
  if (released) actions.push({ kind: 'move-run', from: 'releasing', to: 'loading', reason: world.run.reason });
  return actions;
}

/** EC2 may never end it: TerminateInstances is retried, and no further result is accepted from it. */
function isOverdue({ nowMs, limits }: World, record: InstanceRecord): boolean {
  return record.phase === 'terminating' && nowMs - record.phaseAtMs > limits.terminateMs;
}

/** Terminates what is left and removes the balancer; also after a run's end, until nothing is left. */
function decideFleetEnd(world: World): Action[] {
  const actions = [...world.fleet.all.flatMap((r) => decideSlot(world, r.slot, r, true)), ...leftoverNotes(world)];
  for (const { name, balancer, balancerMayRemain } of world.regions) {
    if (balancer !== null) actions.push({ kind: 'remove-balancer', region: name });
    else if (balancerMayRemain) actions.push({ kind: 'sweep-balancer', region: name });
  }
  return actions;
}

/** One alarm for each region that does not answer any more while something of the run may be left there. */
function leftoverNotes(world: World): Action[] {
  return world.regions.flatMap(({ name, balancer, isOut }): Action[] => {
    if (!isOut) return [];
    const there = world.fleet.all.filter((r) => regionNamed(world.regions, r.request.region).name === name);
    const alive = there.filter((r) => r.phase !== 'terminated' && r.instanceId !== null).length;
    if (alive === 0 && balancer === null) return [];
    const detail = leftIn(name, { instances: alive, balancers: balancer === null ? 0 : 1 }, powerOffAtMs(world.run));
    return [{ kind: 'note', note: { key: `left in ${name}`, event: 'decision', detail }, alarm: true }];
  });
}

function decideEnd(world: World): Action[] {
  const actions = [...decideFleetEnd(world), ...decideLoading(world)];
  // A run resumed long after its deadline has parts that no main server has tried to load.
  const lostSinceMs = world.stallCauses.get('lost-bucket')?.sinceMs ?? Infinity;
  const since = Math.max(Math.min(powerOffAtMs(world.run), lostSinceMs), world.loopStartedAtMs);
  const late = world.nowMs > since + world.limits.uploadMs;
  if (world.totals.seen === world.totals.loaded || late) actions.push({ kind: 'publish' });
  return actions;
}

/** Minimum time for closing the open epochs, however short the run was. */
const SHORTEST_CLOSING_MS = 60_000;

/** It may have uploaded parts that no main server has looked for. */
const isOpenEpoch = (record: InstanceRecord): boolean => record.manifestKey === null && record.publicKey !== null;

/** A bucket that is gone or denies access must not block this run and every later one. */
function isClosingOver(world: World): boolean {
  const { run, nowMs, loopStartedAtMs, limits } = world;
  const lostSinceMs = world.stallCauses.get('lost-bucket')?.sinceMs;
  // Nothing is left of the fleet, and the bucket is known to be lost: waiting for the machines' own end would bring
  // nothing.
  if (lostSinceMs !== undefined && isDraining(world) && world.fleet.all.every(isGivenUp))
    return nowMs > Math.max(lostSinceMs, loopStartedAtMs) + limits.uploadMs;
  return nowMs > Math.max(powerOffAtMs(run), loopStartedAtMs) + Math.max(2 * limits.uploadMs, SHORTEST_CLOSING_MS);
}

/** One alarm for each open epoch whose last results the run ends without; none before that moment. */
function notesOfOpenEpochs(world: World): Action[] {
  if (!isClosingOver(world)) return [];
  return world.fleet.all.filter(isOpenEpoch).map((at): Action => {
    const detail = notClosed(at, world.run);
    return { kind: 'note', note: { key: `not closed ${at.slot}.${at.epoch}`, event: 'decision', detail }, alarm: true };
  });
}

const MARKS = [90, 75, 50] as const;

export function lateNotes(world: World): Action[] {
  const { run, nowMs, forecast } = world;
  if (forecast === null || isDraining(world)) return [];
  const gone = (nowMs - run.startedAtMs) / (run.deadlineAtMs - run.startedAtMs);
  const mark = MARKS.find((m) => gone * 100 >= m);
  if (mark === undefined) return [];
  const { p95Ms } = forecast.end;
  const latestMs = drainAtMs(run);
  if (p95Ms !== null && p95Ms <= latestMs) return [];
  const detail = lateAt(mark, forecast.end, latestMs);
  return [{ kind: 'note', note: { key: `late ${mark}%`, event: 'forecast', detail }, alarm: true }];
}

/**
 * The heart of the control loop: from what is known to what should be done. Pure: no clock, no chance, no
 * database. The states and their moves stand in shared/domain/states.ts; every wait here ends by a time limit.
 */
import { dueChunks } from '../../shared/domain/sharing.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { Action } from './actions.ts';
import { canReplace, decideSlot } from './decide-slot.ts';
import { isDraining, powerOffAtMs } from './schedule-of-run.ts';
import type { InstanceRecord } from './stores.ts';
import type { World } from './world.ts';
import { isClosed, isGivenUp, latestBySlot } from './world.ts';

/** Everything that should be done now. An empty list means: wait for something to change, or for time to pass. */
export function decide(world: World): Action[] {
  switch (world.run.phase) {
    case 'planned':
      return [{ kind: 'move-run', from: 'planned', to: 'launching', reason: null }];
    case 'launching':
    case 'crawling':
      return [...decideFleet(world), ...decideLoading(world)];
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
  if (world.run.balancer === null) actions.push({ kind: 'ensure-balancer' });
  else if (world.balancerGone) actions.push({ kind: 'forget-balancer' });
  const latest = latestBySlot(world.instances);
  for (let slot = 0; slot < world.run.plan.instances; slot++)
    actions.push(...decideSlot(world, slot, latest.get(slot)));
  actions.push(...decideOldEpochs(world, latest));

  const alive = [...latest.values()].filter((r) => !isGivenUp(r));
  if (world.run.phase === 'launching' && alive.some((r) => r.phase === 'ready' || r.phase === 'crawling')) {
    actions.push({ kind: 'move-run', from: 'launching', to: 'crawling', reason: null });
  }
  const limitChunks = chunkLimit(world);
  if (
    !isDraining(world) &&
    world.run.balancer !== null &&
    world.work.waiting > 0 &&
    limitChunks > 0 &&
    hasHealthyTarget(world, alive)
  ) {
    actions.push({ kind: 'offer', limitChunks });
  }
  if (isFleetFinished(world, latest)) {
    actions.push({ kind: 'move-run', from: world.run.phase, to: 'releasing', reason: endReason(world) });
  }
  return actions;
}

/** Epochs that were replaced still have to be closed and terminated. */
function decideOldEpochs(world: World, latest: ReadonlyMap<number, InstanceRecord>): Action[] {
  return world.instances
    .filter((r) => latest.get(r.slot)?.epoch !== r.epoch)
    .flatMap((r) => decideSlot(world, r.slot, r, true));
}

/** How many chunks one slot may hold now: even shares over the slots that can still take any. */
export function chunkLimit(world: Pick<World, 'run' | 'instances' | 'work' | 'nowMs' | 'limits'>): number {
  const latest = latestBySlot(world.instances);
  let slots = 0;
  let granted = 0;
  for (let slot = 0; slot < world.run.plan.instances; slot++) {
    const record = latest.get(slot);
    const takes = !record || !isGivenUp(record) || canReplace(world, slot, record);
    if (!takes || record?.sealed) continue;
    slots++;
    granted += world.work.bySlot.find((s) => s.slot === slot && s.epoch === record?.epoch)?.chunks ?? 0;
  }
  return dueChunks(granted + world.work.waiting, slots, granted);
}

function hasHealthyTarget(world: World, alive: readonly InstanceRecord[]): boolean {
  return (
    world.balancerActive &&
    alive.some((r) => r.registered && r.instanceId !== null && world.targets.get(r.instanceId) === 'healthy')
  );
}

/** Nobody crawls any more and nobody will: every epoch is closed and no slot is to be filled again. */
function isFleetFinished(world: World, latest: ReadonlyMap<number, InstanceRecord>): boolean {
  // Every machine has switched itself off by now; what AWS cannot be asked any more must not keep the results back.
  if (world.nowMs > powerOffAtMs(world.run)) return true;
  for (let slot = 0; slot < world.run.plan.instances; slot++) {
    const record = latest.get(slot);
    if (!record) {
      if (!isDraining(world)) return false;
      continue;
    }
    if (!isClosed(record)) return false;
    if (world.work.waiting > 0 && canReplace(world, slot, record)) return false;
  }
  return world.instances.every((r) => isClosed(r));
}

/** Why products may be left without an outcome: kept as the run's reason until they are settled. */
function endReason(world: World): FailureReason | null {
  if (world.run.request !== null) return 'cancelled';
  if (isDraining(world)) return 'deadline';
  return world.work.waiting > 0 ? 'lost-instance' : null;
}

function decideLoading(world: World): Action[] {
  return world.totals.seen > world.totals.loaded ? [{ kind: 'load' }] : [];
}

/** Asked to go and seen going: from here EC2 does not turn back, so the results need not wait for the last second of it. */
function isLeaving(record: InstanceRecord): boolean {
  if (record.phase === 'terminated') return true;
  return (
    record.phase === 'terminating' && (record.cloudState === 'shutting-down' || record.cloudState === 'terminated')
  );
}

function decideRelease(world: World): Action[] {
  const actions = decideFleetEnd(world);
  // After they have powered themselves off, an instance that EC2 still shows must not keep the results back.
  const released = world.instances.every(isLeaving) || world.nowMs > powerOffAtMs(world.run);
  if (released) actions.push({ kind: 'move-run', from: 'releasing', to: 'loading', reason: world.run.reason });
  return actions;
}

/** Terminates what is left and removes the balancer; also after a run's end, until nothing is left. */
function decideFleetEnd(world: World): Action[] {
  const actions = world.instances.flatMap((r) => decideSlot(world, r.slot, r, true));
  if (world.run.balancer !== null) actions.push({ kind: 'remove-balancer' });
  return actions;
}

function decideEnd(world: World): Action[] {
  const actions = [...decideFleetEnd(world), ...decideLoading(world)];
  const late = world.nowMs > powerOffAtMs(world.run) + world.limits.uploadMs;
  if (world.totals.seen === world.totals.loaded || late) actions.push({ kind: 'publish' });
  return actions;
}

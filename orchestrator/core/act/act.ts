/** Carries out one action. Each is idempotent, and stores its intent in the database before any external call. */
import type { Action, HaltReason } from '../model/actions.ts';
import { closeEpoch, confirmManifest } from './results/close-epoch.ts';
import type { Core } from '../model/core.ts';
import { alarmOnce, note } from './run-notes.ts';
import type { Dispatcher } from './shares/dispatch.ts';
import { publishRun } from './results/finish.ts';
import { adopt, claim, launch } from './launches/launch.ts';
import { bansOf } from '../decide/end/report.ts';
import { loadParts } from './results/load-parts.ts';
import { makeBalancer, removeBalancer, sweepBalancer } from './launches/make-balancer.ts';
import { LOSS } from '../decide/slot-attempts.ts';
import { offerTargets } from '../decide/shares/offer-targets.ts';
import { reassignProducts } from './shares/transfers.ts';
import {
  BALANCER_GONE,
  banned,
  cannotEnd,
  endsSlowly,
  sharesAddress,
  siteBans,
  siteChanged,
  stalled,
} from './act-words.ts';
import { noteRefused, type Rights, type RightsCall } from '../model/rights.ts';
import { regionNamed } from '../model/regions.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { isStallCause } from '../model/stall-causes.ts';
import { liveReasons } from '../decide/end/reasons.ts';

/** True for an action whose effect a Describe of AWS will show. */
export function changesCloud(action: Action): boolean {
  if (action.kind === 'move-instance') return action.to === 'lost';
  const kinds = ['move-run', 'ensure-balancer', 'forget-balancer', 'launch', 'register', 'terminate'];
  return kinds.includes(action.kind);
}

export async function act(
  core: Core,
  world: World,
  action: Action,
  { dispatcher, signal }: { dispatcher: Dispatcher; signal: AbortSignal },
): Promise<void> {
  const { run } = world;
  switch (action.kind) {
    case 'move-run':
      await core.run.move(action.from, action.to, action.reason === null ? {} : { reason: action.reason });
      return;
    case 'ensure-balancer':
      return makeBalancer(core, world, action.region);
    case 'forget-balancer':
      return forgetBalancer(core, world, action.region);
    case 'claim':
      if (action.why !== undefined)
        await note(core, world, { key: `slot ${action.slot}`, event: 'decision', detail: action.why, at: action });
      return claim(core, world, action);
    case 'launch':
      return launch(core, run, action.slot, action.epoch);
    case 'adopt':
      return adopt(core, run, action, action.instance);
    case 'move-instance':
      return moveInstance(core, world, action);
    case 'register':
      return register(core, world, action);
    case 'offer':
      return dispatcher.pump(run, action.share, {
        heartbeatMs: world.limits.heartbeatMs,
        balancers: offerTargets(world),
        targets: world.targets.size,
        signal,
      });
    case 'take':
      await core.feed?.take(action.limit);
      return;
    case 'confirm':
      return confirmManifest(core, run, action);
    case 'close':
      return closeEpoch(core, run, action);
    case 'reassign':
      return reassignProducts(core, world, action);
    case 'halt':
      return halt(core, world, action.reason);
    case 'rotate':
      return rotateAddress(core, world, action);
    case 'terminate':
      return terminate(core, world, action);
    case 'note':
      await note(core, world, action.note, action.alarm);
      return;
    case 'keep-paces':
      return core.run.setPaces(action.paces);
    case 'load':
      return loadParts(core);
    case 'remove-balancer':
      return removeBalancer(core, world, action.region);
    case 'sweep-balancer':
      return sweepBalancer(core, world, action.region);
    case 'publish':
      return publishRun(core);
  }
}

async function moveInstance(
  core: Core,
  world: World,
  action: Extract<Action, { kind: 'move-instance' }>,
): Promise<void> {
  const { slot, epoch, from, to, reason, detail } = action;
  const record = world.fleet.find({ slot, epoch });
  // RunInstances has been called since this was decided: its answer must be known first.
  if (from === 'claimed' && (await core.fleet.get({ slot, epoch }))?.attempts !== record?.attempts) return;
  if (record && to === 'lost' && reason === LOSS.neverHealthy) await noteHealth(core, world, record);
  if (to === 'lost' && record?.publicKey === null && record.instanceId !== null) {
    // It never said hello: its console output is the only evidence, and is lost with the machine.
    const { compute } = regionNamed(core.regions, record.request.region);
    const consoleOutput = await compute.consoleOutput(record.instanceId).catch(() => null);
    if (consoleOutput !== null) await core.fleet.patch({ slot, epoch }, { consoleOutput });
  }
  const moved = await core.fleet.move({ slot, epoch }, from, to, { reason, detail });
  if (moved && to === 'banned') await core.alarm(banned(slot, record), { slot, epoch });
  if (moved && to === 'lost' && reason === LOSS.sharedAddress)
    await core.alarm(sharesAddress(slot, detail), { slot, epoch });
  if (moved && to === 'lost' && reason !== LOSS.notNeeded)
    core.log.warn({ slot, epoch, instance: record?.instanceId, reason }, 'instance is given up');
}

/** Stores ELBv2's reason for the unhealthy target, which is lost as soon as the target is deregistered. */
async function noteHealth(core: Core, world: World, record: InstanceRecord): Promise<void> {
  const { slot, epoch, instanceId } = record;
  const { name, balancer } = regionNamed(world.regions, record.request.region);
  if (balancer === null || instanceId === null) return;
  const { balancers } = regionNamed(core.regions, name);
  const why = await balancers.whyUnhealthy(balancer, instanceId).catch(() => null);
  if (why !== null) await core.fleet.patch({ slot, epoch }, { lastError: why });
}

/** Stores the request; the reply to the next heartbeat carries the order. */
async function rotateAddress(core: Core, { nowMs }: World, { slot, epoch }: Extract<Action, { kind: 'rotate' }>) {
  const record = await core.fleet.get({ slot, epoch });
  if (record === null || record.rotateAtMs !== null) return;
  await core.fleet.patch({ slot, epoch }, { rotateAtMs: core.clock.now() });
  const ageMs = nowMs - (record.launchedAtMs ?? record.claimedAtMs);
  core.log.info({ slot, epoch, address: record.address, ageMs }, 'the address is rotated');
}

async function register(core: Core, world: World, action: Extract<Action, { kind: 'register' }>): Promise<void> {
  const { region: name, balancer, instanceId } = action;
  const { balancers } = regionNamed(core.regions, name);
  const { rights } = core.processState.region(name);
  try {
    const isRegistered = (await balancers.register(balancer, instanceId)) === 'registered';
    rights.register = null;
    if (isRegistered) await core.fleet.patch(action, { registered: true });
  } catch (error) {
    if (error instanceof AppError && error.code === 'aws-not-found') return forgetBalancer(core, world, name);
    noteDenied(rights, 'register', error, core.clock.now());
    throw error;
  }
}

function noteDenied(rights: Rights, call: RightsCall, error: unknown, nowMs: number): void {
  if (error instanceof AppError && error.code === 'aws-denied')
    noteRefused(rights, call, { cause: 'denied', message: describeError(error), nowMs });
}

/** The balancer was removed by another party: later rounds create it again and register all instances. */
async function forgetBalancer(core: Core, { fleet, regions }: World, region: string): Promise<void> {
  await core.alarm(BALANCER_GONE);
  const there = fleet.all.filter((i) => i.registered && regionNamed(regions, i.request.region).name === region);
  for (const at of there) await core.fleet.patch(at, { registered: false });
  await core.run.setBalancer(region, null);
}

/**
 * Terminates the machine first: it costs money, and ELBv2 may not answer. A target left registered fails its health
 * checks and is removed with the balancer.
 */
async function terminate(core: Core, world: World, action: Extract<Action, { kind: 'terminate' }>): Promise<void> {
  const { slot, epoch, instanceId } = action;
  const record = world.fleet.find({ slot, epoch })!;
  // A failing TerminateInstances must not block the run; it is retried. A phase of `terminating` or later does not
  // change.
  const moves = record.phase !== 'terminating' && record.phase !== 'terminated';
  try {
    await askToEnd(core, world, record, instanceId);
  } finally {
    if (moves) await core.fleet.move({ slot, epoch }, record.phase, 'terminating');
  }
  const { name, balancer } = regionNamed(world.regions, record.request.region);
  if (!record.registered || balancer === null) return;
  try {
    await regionNamed(core.regions, name).balancers.deregister(balancer, instanceId);
    await core.fleet.patch({ slot, epoch }, { registered: false });
  } catch (error) {
    if (error instanceof AppError && error.code === 'lock-held') throw error;
    core.log.warn({ slot, epoch, error: describeError(error) }, 'a terminated instance could not be deregistered');
  }
}

async function askToEnd(core: Core, world: World, record: InstanceRecord, instanceId: string): Promise<void> {
  const { nowMs, limits } = world;
  const at = { slot: record.slot, epoch: record.epoch };
  // The row may hold an outdated state of an instance that EC2 no longer shows, and so may the last view of an EC2 that
  // has not answered since.
  const { cloud } = regionNamed(world.regions, record.request.region);
  const shown = cloud?.find(record);
  const isTold = record.phase === 'terminating' && nowMs - record.phaseAtMs > limits.terminateMs;
  if (shown && isTold && cloud && cloud.seenAtMs > record.phaseAtMs + limits.terminateMs)
    await alarmOnce(core, `ends slowly ${instanceId}`, endsSlowly(instanceId, shown.state), at);
  const { name, compute } = regionNamed(core.regions, record.request.region);
  const { rights } = core.processState.region(name);
  try {
    await compute.terminate([instanceId]);
    rights.terminate = null;
  } catch (error) {
    noteDenied(rights, 'terminate', error, core.clock.now());
    await alarmOnce(core, `cannot end ${instanceId}`, cannotEnd(instanceId, error), at);
    throw error;
  }
}

/** Stores why the run ends as its stop request, so that a main server that resumes the run carries it out too. */
async function halt(core: Core, world: World, reason: HaltReason): Promise<void> {
  const run = await core.run.get();
  if (!run || run.request !== null) return;
  // A person's request from before this write stays.
  if (!(await core.run.setRequest(reason))) return;
  // The refusal of ELBv2 has had its own alarm.
  if (reason === 'no-balancer') return;
  await core.alarm(await haltText(core, world, reason));
}

async function haltText(core: Core, world: World, reason: Exclude<HaltReason, 'no-balancer'>): Promise<string> {
  if (isStallCause(reason)) return stalled(world, reason);
  if (reason === 'site-changed') return siteChanged(liveReasons(world.run, world.fleet.all));
  return siteBans(world, bansOf(await core.fleet.incidents()));
}

/** Carries out one action. Each is idempotent, with its intent in the database before the outside world is asked. */
import type { Action } from './actions.ts';
import { closeEpoch, confirmManifest } from './close-epoch.ts';
import type { Core } from './core.ts';
import { LOSS } from './decide-slot.ts';
import type { Dispatcher } from './dispatch.ts';
import { publishRun } from './finish.ts';
import { API_PORT, BALANCER_PORT, adopt, claim, launch } from './launch.ts';
import { loadParts } from './load-parts.ts';
import type { World } from './world.ts';
import { AppError } from '../../shared/domain/errors.ts';
import { HEALTH_PATH } from '../../shared/wire/instance-api.ts';
import { TAG } from '../cloud/compute.ts';

/** True when AWS was asked for something that will show in a Describe. */
export async function act(
  core: Core,
  dispatcher: Dispatcher,
  world: World,
  action: Action,
  signal: AbortSignal,
): Promise<boolean> {
  const { run } = world;
  switch (action.kind) {
    case 'move-run':
      await core.runs.move(
        run.id,
        action.from,
        action.to,
        core.fence,
        core.clock.now(),
        action.reason === null ? {} : { reason: action.reason },
      );
      return true;
    case 'ensure-balancer':
      await core.runs.setBalancer(run.id, await ensureBalancer(core, world), core.fence);
      return true;
    case 'forget-balancer':
      await forgetBalancer(core, world);
      return true;
    case 'claim':
      await claim(core, run, action.slot, action.epoch, action.pool);
      return false;
    case 'launch':
      await launch(core, run, action.slot, action.epoch);
      return true;
    case 'sight':
      await adopt(core, run, action.slot, action.epoch, action.instance);
      return false;
    case 'move-instance':
      await moveInstance(core, world, action);
      return action.to === 'lost';
    case 'register':
      return register(core, world, action);
    case 'offer':
      await dispatcher.pump(run, action.limitChunks, world.limits.heartbeatMs, world.targets.size, signal);
      return false;
    case 'confirm':
      await confirmManifest(core, run, action.slot, action.epoch);
      return false;
    case 'close':
      await closeEpoch(core, run, action.slot, action.epoch);
      return false;
    case 'terminate':
      await terminate(core, world, action);
      return true;
    case 'load':
      await loadParts(core);
      return false;
    case 'remove-balancer':
      await core.balancers.remove(run.balancer!);
      await core.runs.setBalancer(run.id, null, core.fence);
      return false;
    case 'publish':
      await publishRun(core, run);
      return false;
  }
}

/** ELBv2 names have at most 32 characters; the run's id has fewer. */
export const balancerName = (runId: string): string => `cf-${runId}`;

async function ensureBalancer(core: Core, { run }: World) {
  const kit = await core.launchKit();
  return core.balancers.ensure({
    name: balancerName(run.id),
    vpcId: kit.subnets[0]!.vpcId,
    subnetIds: oneSubnetPerZone(kit.subnets),
    securityGroupIds: kit.securityGroupIds,
    listenPort: BALANCER_PORT,
    targetPort: API_PORT,
    healthPath: HEALTH_PATH,
    tags: { [TAG.owner]: kit.owner, [TAG.run]: run.id },
  });
}

/** A balancer takes one subnet of each zone. */
function oneSubnetPerZone(subnets: readonly { id: string; zone: string }[]): string[] {
  return [...new Map(subnets.map((s) => [s.zone, s.id])).values()];
}

async function moveInstance(
  core: Core,
  world: World,
  action: Extract<Action, { kind: 'move-instance' }>,
): Promise<void> {
  const { slot, epoch, from, to, reason } = action;
  const record = world.instances.find((r) => r.slot === slot && r.epoch === epoch);
  if (to === 'lost' && record?.publicKey === null && record.instanceId !== null) {
    // It never said hello: what it printed is all there is to learn from, and goes with the machine.
    const consoleOutput = await core.compute.consoleOutput(record.instanceId).catch(() => null);
    if (consoleOutput !== null) await core.fleet.patch(world.run.id, slot, epoch, { consoleOutput }, core.fence);
  }
  // A manifest it reported but nobody has checked closes nothing: `close` looks into the bucket itself.
  if (to === 'lost')
    await core.fleet.patch(world.run.id, slot, epoch, { manifestKey: null, manifestSha256: null }, core.fence);
  const now = core.clock.now();
  const moved = await core.fleet.move(world.run.id, slot, epoch, from, to, core.fence, now, reason ?? undefined);
  if (moved && to === 'terminated')
    await core.fleet.patch(world.run.id, slot, epoch, { terminatedAtMs: now }, core.fence);
  if (moved && to === 'lost' && reason !== LOSS.notNeeded)
    core.log.warn({ slot, epoch, instance: record?.instanceId, reason }, 'instance is given up');
}

async function register(core: Core, world: World, action: Extract<Action, { kind: 'register' }>): Promise<boolean> {
  try {
    if ((await core.balancers.register(world.run.balancer!, action.instanceId)) === 'registered') {
      await core.fleet.patch(world.run.id, action.slot, action.epoch, { registered: true }, core.fence);
    }
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'aws-not-found') throw error;
    await forgetBalancer(core, world);
  }
  return true;
}

/** The balancer has been removed behind our back: the next look at the world makes it again and registers everybody anew. */
async function forgetBalancer(core: Core, { run, instances }: World): Promise<void> {
  await core.alarm('the load balancer of this run is gone; it is made again');
  for (const { slot, epoch } of instances.filter((i) => i.registered)) {
    await core.fleet.patch(run.id, slot, epoch, { registered: false }, core.fence);
  }
  await core.runs.setBalancer(run.id, null, core.fence);
}

async function terminate(core: Core, world: World, action: Extract<Action, { kind: 'terminate' }>): Promise<void> {
  const { slot, epoch, instanceId } = action;
  const record = world.instances.find((r) => r.slot === slot && r.epoch === epoch)!;
  if (record.registered && world.run.balancer !== null) {
    await core.balancers.deregister(world.run.balancer, instanceId);
    await core.fleet.patch(world.run.id, slot, epoch, { registered: false }, core.fence);
  }
  await core.compute.terminate([instanceId]);
  // Asked again when EC2 takes too long: it is in that phase already.
  if (record.phase !== 'terminating')
    await core.fleet.move(world.run.id, slot, epoch, record.phase, 'terminating', core.fence, core.clock.now());
}

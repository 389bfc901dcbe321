/** Claims and launches: the whole request is stored before RunInstances is called, and a retry sends the same bytes. */
import type { EpochId } from '../../../../shared/domain/epoch-id.ts';
import { randomBytes } from 'node:crypto';
import { AppError, describeError } from '../../../../shared/domain/errors.ts';
import { isAnyHost } from '../../../../shared/domain/domains.ts';
import { hostLeaseMs, limitsFor } from '../../../../shared/domain/limits.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import { API_PORT } from '../../../../shared/wire/instance-api.ts';
import { USER_DATA_VERSION, type UserData } from '../../../../shared/wire/settings.ts';
import { sha256Hex } from '../../../../shared/wire/signature.ts';
import { renderUserData } from '../../../../userdata/user-data.ts';
import {
  type CloudInstance,
  type LaunchRequest,
  type LaunchResult,
  type RefusalCause,
  TAG,
} from '../../cloud/compute.ts';
import { alarmOnce } from '../run-notes.ts';
import { type Core, type LaunchTemplate, momentOf, type ObjectName } from '../../model/core.ts';
import { hostsFreeAtMs } from '../../decide/host-rest.ts';
import { homeOf, nextPool } from '../../decide/launches/pools.ts';
import type { Pool } from '../../model/launch-history.ts';
import { regionNamed } from '../../model/regions.ts';
import { drainAtMs, powerOffAtMs } from '../../model/run-deadlines.ts';
import type { InstanceRecord, RunRecord } from '../../model/stores.ts';
import { poolOf, quotaAdvice, refusedLaunch, refusedRights, type RightsRefusal } from './launch-words.ts';
import { noteRefused } from '../../model/rights.ts';
import type { World } from '../../model/world.ts';
import { isGivenUp } from '../../model/instance-state.ts';

/** The port beside API_PORT for what is on the machine itself. */
const LOCAL_PORT = 8081;
/** The port the balancer listens on. */
export const BALANCER_PORT = 8080;

/**
 * Writes the claim for (slot, epoch) in `pool`, or with null in the first pool that is open in `world`. Without an open
 * pool it writes nothing; a later observation tries again.
 */
export async function claim(
  core: Core,
  world: World,
  { slot, epoch, pool }: EpochId & { pool: Pool | null },
): Promise<void> {
  const { run } = world;
  const template = await preparing(core, () => core.launchTemplate());
  core.processState.pools ??= {
    regions: template.regions.map(({ name, subnets }) => ({ name, subnetIds: subnets.map((s) => s.id) })),
    instanceTypes: template.instanceTypes,
  };
  const next = pool ?? firstPool({ ...world, pools: core.processState.pools }, slot);
  if (next === null) return;
  const { region, subnetId, instanceType } = next;
  // Admitted for the slot's own region: any other is for the next round, which knows the pools.
  if (pool === null && region !== homeOf(world, slot)) return;
  const place = template.regions.find(({ name }) => name === region);
  if (place === undefined) return;
  const token = randomBytes(32).toString('hex');
  // Signing calls no AWS service: it fails only without credentials.
  const objects = await preparing(core, () => objectsOf(run, template, core.objects, core.clock), 'credentials');
  const userData = userDataOf(run, { slot, epoch, token }, objects);
  const request: LaunchRequest = {
    clientToken: sha256Hex([run.id, slot, subnetId, instanceType, epoch].join('|')),
    region,
    instanceType,
    imageId: place.imageId,
    subnetId,
    securityGroupIds: place.securityGroupIds,
    instanceProfile: run.settings.aws.instanceProfile,
    ...(run.settings.aws.volume ? { volume: run.settings.aws.volume } : {}),
    userData: renderUserData(userData, run.settings.site),
    tags: {
      ...run.settings.aws.tags,
      Name: `crawlfleet ${run.id} ${slot}.${epoch}`,
      [TAG.owner]: template.owner,
      [TAG.run]: run.id,
      [TAG.slot]: String(slot),
      [TAG.epoch]: String(epoch),
      [TAG.expiresAt]: userData.powerOffAt,
    },
  };
  await core.fleet.claim({ slot, epoch, request, token });
}

/** What an instance needs to know about its run. */
type LaunchedRun = Pick<RunRecord, 'id' | 'publicKey' | 'settings' | 'startedAtMs' | 'deadlineAtMs'>;

function userDataOf(
  run: LaunchedRun,
  place: EpochId & { token: string },
  objects: Pick<UserData, 'bundle' | 'crawlSettings'>,
): UserData {
  const { server, aws } = run.settings;
  const limits = limitsFor(run.deadlineAtMs - run.startedAtMs);
  return {
    version: USER_DATA_VERSION,
    run: run.id,
    ...place,
    runPublicKey: run.publicKey,
    callbackUrl: server.callbackUrl,
    apiPort: API_PORT,
    localPort: LOCAL_PORT,
    ...objects,
    s3: {
      region: aws.region,
      bucket: aws.bucket,
      endpoint: aws.endpoint,
      ...(aws.sse === undefined ? {} : { sse: aws.sse }),
      ...(run.settings.roleSessions === true ? { roleSession: true } : {}),
    },
    startedAt: new Date(run.startedAtMs).toISOString(),
    deadline: new Date(drainAtMs(run)).toISOString(),
    powerOffAt: new Date(powerOffAtMs(run)).toISOString(),
    heartbeatMs: limits.heartbeatMs,
    partMs: limits.partMs,
    ...(isAnyHost(run.settings.site.productUrl) ? { leaseMs: hostLeaseMs(limits) } : {}),
    ...(aws.commands === true ? { commands: true } : {}),
  };
}

/** Throws `config-invalid` before any launch when the user data of this run's instances would be too long. */
export async function checkUserData(
  run: LaunchedRun,
  template: Pick<LaunchTemplate, 'bundle' | 'crawlSettings'>,
  objects: ObjectStore,
  clock: Clock,
): Promise<void> {
  const named = await objectsOf(run, template, objects, clock);
  renderUserData(userDataOf(run, { slot: 0, epoch: 1, token: '0'.repeat(64) }, named), run.settings.site);
}

/** What an instance fetches from the bucket, by URLs for as long as it may live. */
async function objectsOf(
  run: LaunchedRun,
  { bundle, crawlSettings }: Pick<LaunchTemplate, 'bundle' | 'crawlSettings'>,
  objects: ObjectStore,
  clock: Clock,
): Promise<Pick<UserData, 'bundle' | 'crawlSettings'>> {
  const named = async ({ key, sha256 }: ObjectName) => {
    return { url: await objects.presignGet(key, powerOffAtMs(run) - clock.now()), sha256 };
  };
  return { bundle: await named(bundle), crawlSettings: await named(crawlSettings) };
}

/** The first open pool of the slot; null while none is. */
function firstPool(world: World, slot: number): Pool | null {
  const next = nextPool(world, slot);
  return next.kind === 'pool' ? next.pool : null;
}

/** Preparing a launch needs keys and rights too: without them it counts as refused, for `cause` if that is given. */
async function preparing<T>(core: Core, work: () => Promise<T>, cause?: 'credentials'): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isDenied = error instanceof AppError && error.code === 'aws-denied';
    if (cause === undefined && !isDenied) throw error;
    const refused = { cause: cause ?? 'denied', message: describeError(error) } as const;
    // Whatever the region: the bucket and its keys are the same for all.
    for (const { name } of core.regions)
      noteRefused(core.processState.region(name).rights, 'launch', { ...refused, nowMs: core.clock.now() });
    await reportRights(core, refused);
    throw error;
  }
}

/** Launches the claimed instance. Safe to repeat: same request and client token; the tags are looked up in between. */
export async function launch(core: Core, run: RunRecord, slot: number, epoch: number): Promise<void> {
  const decidedMs = core.clock.now();
  const claimed = await core.fleet.get({ slot, epoch });
  if (!claimed) return;
  const { name, compute, launchTurn } = regionNamed(core.regions, claimed.request.region);
  const known = core.processState.region(name);
  await launchTurn.take();
  // Another slot was refused while this one waited for its turn: `decide` schedules the retry.
  if ((known.quotaRefusedMs ?? -Infinity) >= decidedMs) return;
  if ((known.rights.launch?.lastMs ?? -Infinity) >= decidedMs) return;
  const record = await core.fleet.get({ slot, epoch });
  if (!record || record.phase !== 'claimed') return;
  const now = core.clock.now();
  await core.fleet.patch({ slot, epoch }, { attempts: record.attempts + 1, launchedAtMs: now });
  core.processState.firstLaunchMs ??= now;
  const result = await compute.launch(record.request);
  if (result.kind === 'refused' && result.cause === 'throttled') launchTurn.throttled();
  else if (result.kind !== 'unknown') launchTurn.answered();
  switch (result.kind) {
    case 'launched':
      known.rights.launch = null;
      return adopt(core, run, { slot, epoch }, result.instance);
    case 'refused': {
      const { cause, message } = result;
      const nowMs = core.clock.now();
      if (cause === 'quota') known.quotaRefusedMs = nowMs;
      if (cause === 'credentials' || cause === 'denied') noteRefused(known.rights, 'launch', { cause, message, nowMs });
      const answer = { ...result, ...(mayExist(record, cause) ? { mayExist: true as const } : {}) };
      await core.fleet.patch({ slot, epoch }, { answer });
      core.log.warn({ slot, epoch, cause, message }, 'EC2 refuses a launch');
      return reportRefusal(core, run, record, result);
    }
    case 'unknown': {
      await core.fleet.patch({ slot, epoch }, { answer: result });
      core.log.warn(
        { slot, epoch, message: result.message },
        'no conclusive answer to RunInstances; looking the instance up by its tags',
      );
    }
  }
}

/**
 * True when an earlier call for the claim may have launched an instance: it got no answer, or this process ended before
 * storing one. A spent token settles it.
 */
function mayExist({ attempts, answer }: InstanceRecord, cause: RefusalCause): boolean {
  if (attempts === 0 || cause === 'spent') return false;
  return answer === null || answer.kind === 'unknown' || answer.mayExist === true;
}

/** One alarm per cause and per dry pool; repeated refusals are only logged. */
async function reportRefusal(
  core: Core,
  run: RunRecord,
  record: InstanceRecord,
  refused: Extract<LaunchResult, { kind: 'refused' }>,
): Promise<void> {
  const { slot, epoch, request } = record;
  const { cause, message } = refused;
  const at = { slot, epoch };
  switch (cause) {
    case 'spent':
      return;
    case 'credentials':
    case 'denied':
      return reportRights(core, { cause, message }, at);
    case 'quota': {
      const { region = run.settings.aws.region } = request;
      const said = `${refusedLaunch(record, refused)}. ${quotaAdvice(run, request, await core.fleet.instances())}`;
      return alarmOnce(core, `quota ${region}`, said, at);
    }
    case 'pool':
    case 'zone':
      return alarmOnce(core, `pool ${poolOf(request)}`, refusedLaunch(record, refused), at);
    case 'type':
      return alarmOnce(core, `type ${request.instanceType}`, refusedLaunch(record, refused), at);
    case 'throttled':
      return alarmOnce(core, 'throttled', refusedLaunch(record, refused), at);
    case 'invalid':
      return alarmOnce(core, `invalid ${poolOf(request)}`, refusedLaunch(record, refused), at);
  }
}

const reportRights = (core: Core, refused: RightsRefusal, at?: EpochId): Promise<void> =>
  alarmOnce(core, refused.cause, refusedRights(refused), at);

/** Records an instance that EC2 launched or shows for this claim, or its new state. */
export async function adopt(
  core: Core,
  run: RunRecord,
  { slot, epoch }: EpochId,
  instance: CloudInstance,
): Promise<void> {
  const record = await core.fleet.get({ slot, epoch });
  if (instance.state === 'terminated' && record !== null) {
    const freeAtMs = hostsFreeAtMs(run, { ...record, cloudState: 'terminated' }, 'lost', momentOf(core));
    // Before the state is stored: a main server that dies between the two does both again.
    if (freeAtMs !== undefined) await core.work.freeHosts({ slot, epoch }, freeAtMs);
  }
  // The address known from its hello is more reliable.
  const greeted = record !== null && record.publicKey !== null;
  await core.fleet.patch(
    { slot, epoch },
    {
      instanceId: instance.id,
      cloudState: instance.state,
      ...(instance.publicAddress && !greeted ? { address: instance.publicAddress } : {}),
      ...(instance.zone ? { zone: instance.zone } : {}),
      ...(record?.phase === 'claimed' ? { answer: null } : {}),
      // For a given-up instance the reason would only be our own terminate call.
      ...(instance.stateReason && isEnded(instance) && record !== null && !isGivenUp(record)
        ? { stateReason: instance.stateReason }
        : {}),
    },
  );
  if (await core.fleet.move({ slot, epoch }, 'claimed', 'pending')) core.processState.lastLaunchMs = core.clock.now();
}

const isEnded = ({ state }: CloudInstance): boolean => state !== 'pending' && state !== 'running';

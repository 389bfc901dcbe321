/** Claims and launches: the whole request is stored before EC2 is asked, and a retry sends the same bytes. */
import { randomBytes } from 'node:crypto';
import { limitsFor } from '../../shared/domain/limits.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { InstanceSettings } from '../../shared/wire/settings.ts';
import { sha256Hex } from '../../shared/wire/signature.ts';
import { renderUserData } from '../../userdata/user-data.ts';
import type { CloudInstance, LaunchRequest, SubnetInfo } from '../cloud/compute.ts';
import { TAG } from '../cloud/compute.ts';
import type { Core } from './core.ts';
import { drainAtMs, powerOffAtMs } from './schedule-of-run.ts';
import type { RunRecord } from './stores.ts';

/** The ports an instance listens on: the same on EC2 and in the sandbox, where every instance has an address of its own. */
export const API_PORT = 8080;
export const LOCAL_PORT = 8081;
/** The port the balancer listens on. */
export const BALANCER_PORT = 8080;

/** What is the same for every launch of a run. */
export interface LaunchKit {
  owner: string;
  imageId: string;
  subnets: SubnetInfo[];
  securityGroupIds: string[];
  /** Types to try, in order; all of the image's architecture. */
  instanceTypes: string[];
  bundle: { key: string; sha256: string };
}

/** Writes the claim for (slot, epoch). `pool` counts earlier refusals of this slot: each goes to the next zone or type. */
export async function claim(core: Core, run: RunRecord, slot: number, epoch: number, pool: number): Promise<void> {
  const kit = await core.launchKit();
  const token = randomBytes(32).toString('hex');
  const subnet = kit.subnets[(slot + pool) % kit.subnets.length]!;
  const instanceType = kit.instanceTypes[Math.floor(pool / kit.subnets.length) % kit.instanceTypes.length]!;
  const url = await bundleUrl(run, kit, core.objects, core.clock);
  const settings = instanceSettings(run, { slot, epoch, token }, { url, sha256: kit.bundle.sha256 });
  const request: LaunchRequest = {
    clientToken: sha256Hex([run.id, slot, subnet.id, instanceType, epoch].join('|')),
    instanceType,
    imageId: kit.imageId,
    subnetId: subnet.id,
    securityGroupIds: kit.securityGroupIds,
    instanceProfile: run.settings.aws.instanceProfile,
    userData: renderUserData(settings),
    tags: {
      Name: `crawlfleet ${run.id} ${slot}.${epoch}`,
      [TAG.owner]: kit.owner,
      [TAG.run]: run.id,
      [TAG.slot]: String(slot),
      [TAG.epoch]: String(epoch),
      [TAG.expiresAt]: settings.powerOffAt,
    },
  };
  await core.fleet.claim(run.id, { slot, epoch, request, token }, core.fence, core.clock.now());
}

/** What an instance needs of its run. */
type LaunchedRun = Pick<RunRecord, 'id' | 'publicKey' | 'settings' | 'startedAtMs' | 'deadlineAtMs'>;

function instanceSettings(
  run: LaunchedRun,
  place: { slot: number; epoch: number; token: string },
  bundle: { url: string; sha256: string },
): InstanceSettings {
  const { site, server, aws } = run.settings;
  const limits = limitsFor(run.deadlineAtMs - run.startedAtMs);
  return {
    version: 1,
    run: run.id,
    ...place,
    runPublicKey: run.publicKey,
    callbackUrl: server.callbackUrl,
    apiPort: API_PORT,
    localPort: LOCAL_PORT,
    bundle,
    s3: { region: aws.region, bucket: aws.bucket, endpoint: aws.endpoint },
    startedAt: new Date(run.startedAtMs).toISOString(),
    deadline: new Date(drainAtMs(run)).toISOString(),
    powerOffAt: new Date(powerOffAtMs(run)).toISOString(),
    heartbeatMs: limits.heartbeatMs,
    partMs: limits.partMs,
    site: {
      productUrl: site.productUrl,
      intervalMs: site.intervalMs,
      timeoutMs: site.timeoutMs,
      maxPageBytes: site.maxPageBytes,
      userAgent: site.userAgent,
      allowPrivate: site.allowPrivate,
    },
    mapping: run.settings.mapping,
  };
}

/** Throws `config-invalid` when the user data of this run's instances would be too long, before anything is launched. */
export async function checkUserData(
  run: LaunchedRun,
  kit: LaunchKit,
  objects: ObjectStore,
  clock: Clock,
): Promise<void> {
  const url = await bundleUrl(run, kit, objects, clock);
  renderUserData(
    instanceSettings(run, { slot: 0, epoch: 1, token: '0'.repeat(64) }, { url, sha256: kit.bundle.sha256 }),
  );
}

function bundleUrl(run: LaunchedRun, kit: LaunchKit, objects: ObjectStore, clock: Clock): Promise<string> {
  return objects.presignGet(kit.bundle.key, powerOffAtMs(run) - clock.now());
}

/** Asks EC2 for the claimed instance. Safe to repeat: same request, same token; the tags are looked up in between. */
export async function launch(core: Core, run: RunRecord, slot: number, epoch: number): Promise<void> {
  await core.launchTurn();
  const record = await core.fleet.get(run.id, slot, epoch);
  if (!record || record.phase !== 'claimed') return;
  const now = core.clock.now();
  await core.fleet.patch(run.id, slot, epoch, { attempts: record.attempts + 1, launchedAtMs: now }, core.fence);
  core.marks.firstLaunchMs ??= now;
  const result = await core.compute.launch(record.request);
  switch (result.kind) {
    case 'launched':
      return adopt(core, run, slot, epoch, result.instance);
    case 'refused': {
      const throttled = result.cause === 'throttled';
      await core.fleet.patch(
        run.id,
        slot,
        epoch,
        { lastError: `${throttled ? 'waiting' : 'refused'} ${result.cause}: ${result.message}` },
        core.fence,
      );
      await core.alarm(
        `EC2 refuses slot ${slot} (${record.request.instanceType} in ${record.request.subnetId}): ${result.cause}: ${result.message}`,
        { slot, epoch },
      );
      return;
    }
    case 'unknown':
      await core.fleet.patch(run.id, slot, epoch, { lastError: `unknown: ${result.message}` }, core.fence);
      core.log.warn(
        { slot, epoch, message: result.message },
        'no answer to RunInstances; looking the instance up by its tags',
      );
  }
}

/** Takes an instance that EC2 gave or shows as this claim's, or notes its new state. */
export async function adopt(
  core: Core,
  run: RunRecord,
  slot: number,
  epoch: number,
  instance: CloudInstance,
): Promise<void> {
  await core.fleet.patch(
    run.id,
    slot,
    epoch,
    {
      instanceId: instance.id,
      cloudState: instance.state,
      ...(instance.publicAddress ? { address: instance.publicAddress } : {}),
      ...(instance.zone ? { zone: instance.zone } : {}),
      lastError: null,
    },
    core.fence,
  );
  if (await core.fleet.move(run.id, slot, epoch, 'claimed', 'pending', core.fence, core.clock.now()))
    core.marks.lastLaunchMs = core.clock.now();
}

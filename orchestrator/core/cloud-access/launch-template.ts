/** Prepares what every launch of a run needs: the bundle in the bucket, image, subnets, groups, types. */
import { mapAll } from '../../../shared/domain/non-empty.ts';
import type { Output } from '../caller.ts';
import type { CloudAccess } from './cloud-access.ts';
import { fleetSubnets, launchNetwork, type OwnNetwork } from './launch-network.ts';
import { hostname } from 'node:os';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { bundleKey } from '../../../shared/domain/keys.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { type AnyUserData, parseUserData, USER_DATA_VERSION } from '../../../shared/wire/settings.ts';
import { buildBundle, type Bundle } from '../../../userdata/bundle.ts';
import type { RuntimePlatform } from '../../../userdata/node-release.ts';
import { packRuntime } from '../../../userdata/node-runtime.ts';
import { toAppError } from '../cloud/aws-errors.ts';
import { putCrawlSettings } from '../act/launches/crawl-settings.ts';
import type { LaunchTemplate, RegionTemplate } from '../model/core.ts';
import { regionNamed } from '../model/regions.ts';
import { regionsOf, type RunSettings } from '../model/run-settings.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import { type Architecture, architectureOf, typesOfRun } from '../plan/instance-types.ts';
import { stateDirOf } from '../config/state-dir.ts';

export const PLATFORM_OF: Record<Architecture, RuntimePlatform> = { x86_64: 'linux-x64', arm64: 'linux-arm64' };

export interface BundleNeeds {
  render: RunSettings['site']['render'];
  /**
   * The instances run on AWS, where the image need not have Node, so the bundle brings it; in dry runs this machine has
   * it.
   */
  onAws: boolean;
  /** The plan's choice: further types of a run must have its architecture. */
  instanceType: string;
  configFile: string;
  output: Pick<Output, 'line'>;
  /** Aborts the download of Node with `interrupted`. */
  signal?: AbortSignal;
}

/** The bundle that instances fetch. Throws `runtime-unavailable` when its Node is not available. */
export async function bundleFor(needs: BundleNeeds): Promise<Bundle> {
  const { render, onAws, instanceType, configFile, output, signal } = needs;
  const runtime = onAws
    ? await packRuntime(PLATFORM_OF[architectureOf(instanceType)], {
        cacheDir: stateDirOf(configFile).cache,
        onProgress: (text) => output.line(text),
        ...(signal === undefined ? {} : { signal }),
      })
    : null;
  return buildBundle({ browser: render !== 'http', runtime });
}

/** The bundle of a run that has begun, as the version of this program builds it. */
export const bundleOfRun = (
  { settings, dryRun, plan }: RunRecord,
  needs: Pick<BundleNeeds, 'configFile' | 'output' | 'signal'>,
): Promise<Bundle> =>
  bundleFor({ ...needs, render: settings.site.render, onAws: !dryRun, instanceType: plan.instanceType });

/** Hashes of the bundles that the stored claims name; a claim with unreadable user data names none. */
export const bundlesOf = (instances: readonly Pick<InstanceRecord, 'request'>[]): string[] =>
  namedBundles(instances, () => true);

/** The bundles among those whose programs read the user data that this version renders. */
const launchableBundles = (instances: readonly Pick<InstanceRecord, 'request'>[]): string[] =>
  namedBundles(instances, ({ version }) => version === USER_DATA_VERSION);

function namedBundles(
  instances: readonly Pick<InstanceRecord, 'request'>[],
  counts: (userData: AnyUserData) => boolean,
): string[] {
  const hashes = instances.flatMap(({ request }) => {
    try {
      const userData = parseUserData(request.userData);
      return counts(userData) ? [userData.bundle.sha256] : [];
    } catch {
      return [];
    }
  });
  return [...new Set(hashes)];
}

/**
 * Built again; without Node for it the bundle of the newest claim that the bucket has, else `runtime-unavailable`.
 * Those of earlier versions do not count whose programs cannot read the user data of this one.
 */
export async function bundleToGoOnWith(
  make: () => Promise<Bundle>,
  instances: readonly Pick<InstanceRecord, 'request'>[],
  objects: ObjectStore,
  onOlder: (text: string) => void,
): Promise<KnownBundle> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'runtime-unavailable') throw error;
    for (const sha256 of launchableBundles(instances).reverse()) {
      if (!(await objects.exists(bundleKey(sha256)))) continue;
      onOlder(`${error.message}; further instances get the bundle that the run began with`);
      return { sha256 };
    }
    throw error;
  }
}

/** A bundle known only by its hash is already in the bucket. */
export type KnownBundle = Bundle | { sha256: string; open?: never };

/** Puts the bundle into the bucket under its hash, unless it is there: it has 50 MB. Throws AppError. */
export async function putBundle(
  objects: ObjectStore,
  bundle: Bundle,
  { bucket, endpoint }: Pick<RunSettings['aws'], 'bucket' | 'endpoint'>,
): Promise<'created' | 'exists'> {
  const key = bundleKey(bundle.sha256);
  try {
    if (await objects.exists(key)) return 'exists';
    return await objects.putSourceIfAbsent(key, bundle, 'application/gzip');
  } catch (error) {
    throw toAppError(error, `putting the bundle into ${bucket}`, endpoint);
  }
}

/** The run that is launched; `deny` as `putCrawlSettings` takes it. */
interface LaunchedRun {
  id: string;
  settings: Omit<RunSettings, 'sandbox' | 'server'>;
  deny?: readonly string[];
}

/**
 * Bundle and settings into the bucket; image, subnets and groups of each region; the planned type, then the others of
 * its architecture. A region in which that fails is left out, with a note; throws when it fails in all of them.
 */
export async function prepareLaunch(
  cloud: Pick<CloudAccess, 'regions' | 'objects'>,
  run: LaunchedRun,
  { plannedType, bundle, own }: { plannedType: string; bundle: KnownBundle; own: OwnNetwork },
): Promise<LaunchTemplate> {
  const { aws } = run.settings;
  const architecture = architectureOf(plannedType);
  const [prepared, crawlSettings] = await Promise.all([
    Promise.allSettled(cloud.regions.map((region) => prepareRegion(region, run.settings, architecture, own))),
    putCrawlSettings(cloud.objects, run, run.deny).catch((error: unknown) => {
      throw toAppError(error, `putting the settings of the instances into ${aws.bucket}`, aws.endpoint);
    }),
    bundle.open === undefined ? null : putBundle(cloud.objects, bundle, aws),
  ]);
  const regions = prepared.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  if (regions.length === 0) throw (prepared[0] as PromiseRejectedResult).reason;
  const left = cloud.regions.flatMap(({ name }, i) => {
    const result = prepared[i];
    return result?.status === 'rejected' ? [`Nothing is launched in ${name}: ${describeError(result.reason)}`] : [];
  });
  return {
    owner: aws.owner ?? hostname(),
    regions: regions.map(({ template }) => template),
    notes: [...left, ...regions.flatMap(({ notes }) => notes)],
    instanceTypes: typesOfRun(plannedType, aws.instanceTypes),
    bundle: { key: bundleKey(bundle.sha256), sha256: bundle.sha256 },
    crawlSettings,
  };
}

async function prepareRegion(
  { name, compute, balancers }: CloudAccess['regions'][number],
  { aws, site }: Pick<RunSettings, 'aws' | 'site'>,
  architecture: Architecture,
  own: OwnNetwork,
): Promise<{ template: RegionTemplate; notes: string[] }> {
  const {
    subnets: named,
    image,
    ...there
  } = regionNamed(
    mapAll(regionsOf(aws), (r) => ({ name: r.region, ...r })),
    name,
  );
  const subnets = await fleetSubnets(compute, named);
  const [imageId, { notes, ...network }] = await Promise.all([
    compute.image(image, architecture, site.render === 'http' ? 'http' : 'browser'),
    launchNetwork({ compute, balancers }, { ...aws, ...there }, subnets, own),
  ]);
  return { template: { name, imageId, subnets, ...network }, notes };
}

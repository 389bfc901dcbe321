/** What the checks share: each fact is found out once; one that cannot be fails every check that needs it. */
import { fleetSubnets, instanceGroups, launchNetwork, ownNetwork } from '../cloud-access/launch-network.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import { whoAmI } from '../cloud/right-checks.ts';
import { type LaunchRequest, TAG } from '../cloud/compute.ts';
import { Ec2Compute } from '../cloud/ec2-compute.ts';
import { Elbv2LoadBalancer } from '../cloud/elbv2-load-balancer.ts';
import type { AwsOptions } from '../cloud/sdk-clients.ts';
import { profileEndpoint } from '../cloud/endpoint-profile.ts';
import { findRouteTables } from '../cloud/route-tables.ts';
import { type Database, openDatabase } from '../db/connect.ts';
import {
  architectureOf,
  chooseInstanceType,
  BROWSER_MEMORY_GB,
  HTTP_MEMORY_GB,
  typesOfRun,
} from '../plan/instance-types.ts';
import type { Plan } from '../plan/plan.ts';
import { awsOptions } from '../cloud-access/cloud-access.ts';
import type { Config } from '../config/load-config.ts';
import { readAskedPaces } from '../prepare/asked-paces.ts';
import { type ProductList, readList } from '../prepare/products.ts';
import { isLocal, type RunInputs, type Target } from '../config/target.ts';
import { awsSettingsOf, launchSettingsOf, ownerOf, volumeOf } from '../prepare/settings-of.ts';
import { planFor, quotaOf, robotsOf } from '../prepare/preflight.ts';

/** EC2 accepts five RunInstances calls at once, dry runs included, and then two a second. */
const MAX_LAUNCHES = 5;

export type Facts = ReturnType<typeof createFacts>;

export interface FactsOptions extends RunInputs {
  /** How AWS is reached; null for a sandbox that is not started yet: then there are no facts about AWS. */
  aws: AwsOptions | null;
  /** What a run has found out already. Its database stays open. */
  known?: { database?: Database; products?: ProductList; plan?: Plan };
}

export function createFacts({ config, target, environment, aws, known }: FactsOptions) {
  let seenSkewMs: number | null = null;
  const place = (): AwsOptions => {
    if (aws === null) throw new Error('there is no endpoint yet');
    return aws;
  };
  const options = (): AwsOptions => ({ ...place(), onTime: (ms) => (seenSkewMs = ms - systemClock.now()) });
  const compute = lazily(() => new Ec2Compute(options()));
  const balancers = lazily(() => new Elbv2LoadBalancer(options()));
  const database = once(() => Promise.resolve(known?.database ?? openDatabase(config.values.database.url)));
  const products = once(async () => known?.products ?? readList(config, await database()));
  const robots = once(() => robotsOf(config));
  const asked = once(async () => readAskedPaces(config, await database()));
  const quota = once(() => quotaOf(config, target));
  const identity = once(() => whoAmI(options()));
  /** The instance type by the configuration alone, so that it needs no plan. */
  const instanceType = (): string => known?.plan?.instanceType ?? typeFor(config, target);
  const subnets = once(() => fleetSubnets(compute(), config.values.aws.subnets));
  const vpcId = async (): Promise<string> => (await subnets())[0]!.vpcId;
  /** The network interfaces of this machine; none when it is no EC2 instance. */
  const ownInterfaces = once(async () => (await ownNetwork(target.dryRun, environment)?.()) ?? []);
  const imageId = once(() =>
    compute().image(
      config.values.aws.image,
      architectureOf(instanceType()),
      config.values.site.render === 'http' ? 'http' : 'browser',
    ),
  );
  const plan = once(
    async () =>
      known?.plan ??
      (await planFor({ config, target, products: await products(), environment }, { robots, asked, quota })).plan,
  );
  const groups = once(async () => (await instanceGroups(compute(), awsSettingsOf(config, target), await vpcId())).ids);
  return {
    database,
    products,
    robots,
    quota,
    plan,
    identity,
    instanceType,
    subnets,
    /** The network as the run will have it; fails for a load balancer of the user's that cannot serve the subnets. */
    network: once(async () => {
      const cloud = { compute: compute(), balancers: balancers() };
      const own = target.dryRun ? null : ownInterfaces;
      // Without a plan it is as the configuration says.
      const planned = await plan().catch(() => ({}));
      return launchNetwork(cloud, launchSettingsOf(config, target, planned), await subnets(), own);
    }),
    /** How to call AWS; throws where there is no endpoint yet. */
    aws: place,
    ownInterfaces,
    imageId,
    routeTables: once(async () => findRouteTables(options(), await vpcId())),
    groups,
    /**
     * Launch requests as the run would send them, without user data: with each of its types and each of its subnets, as
     * many as EC2 takes at once.
     */
    launches: once(async () => {
      const [places, securityGroupIds, image] = await Promise.all([subnets(), groups(), imageId()]);
      const types = typesOfRun(instanceType(), config.values.aws.instance_types);
      const count = Math.min(MAX_LAUNCHES, Math.max(types.length, places.length));
      return Array.from({ length: count }, (_, i) =>
        launchOf(config, {
          instanceType: types[i % types.length]!,
          imageId: image,
          subnetId: places[i % places.length]!.id,
          securityGroupIds,
        }),
      );
    }),
    /** An instance of our own that EC2 still lists; null when there is none. */
    ownInstance: once(async () => {
      const own = await compute().list({ key: TAG.owner, value: ownerOf(config) });
      // A terminating instance may be gone before the call about it.
      return own.find((i) => i.state === 'running' || i.state === 'pending')?.id ?? null;
    }),
    /** How far the endpoint's clock is ahead of ours, in milliseconds; null when no answer has shown it. */
    skewMs: once(async () => {
      // Any answer will do, even a refusal: a wrong clock is one reason for it.
      await identity().catch(() => undefined);
      if (seenSkewMs === null) await subnets().catch(() => undefined);
      return seenSkewMs;
    }),
    isFaithful: once(() => isFaithful(target)),
    async [Symbol.asyncDispose](): Promise<void> {
      if (compute.made()) compute().close();
      if (balancers.made()) balancers().close();
      if (!known?.database && database.asked())
        await database().then(
          (db) => db.close(),
          () => undefined,
        );
    },
  };
}

function typeFor(config: Config, target: Target): string {
  const { site, aws } = config.values;
  const memoryGb = site.render === 'http' ? HTTP_MEMORY_GB : BROWSER_MEMORY_GB;
  return chooseInstanceType(aws.instance_types, (aws.regions?.[0] ?? target).region, memoryGb).name;
}

type LaunchChoice = Pick<LaunchRequest, 'instanceType' | 'imageId' | 'subnetId' | 'securityGroupIds'>;

function launchOf(config: Config, place: LaunchChoice): LaunchRequest {
  const { volume } = config.values.aws;
  return {
    ...place,
    // A DryRun request only; its own token keeps it apart from every launch.
    clientToken: sha256Hex(['doctor', systemClock.now(), place.instanceType, place.subnetId].join('|')),
    instanceProfile: config.values.aws.instance_profile,
    ...(volume === null ? {} : { volume: volumeOf(volume) }),
    userData: '#!/bin/bash\n',
    // Policies may demand the tags of a real launch.
    tags: {
      ...config.values.aws.tags,
      Name: 'crawlfleet doctor',
      [TAG.owner]: ownerOf(config),
      [TAG.run]: 'doctor',
      [TAG.slot]: '0',
      [TAG.epoch]: '1',
      [TAG.expiresAt]: new Date(systemClock.now()).toISOString(),
    },
  };
}

/** True for AWS and our sandbox: other endpoints may execute a DryRun call, and lack features of AWS. */
async function isFaithful(target: Target): Promise<boolean> {
  const { endpoint } = target;
  if (endpoint === null) return target.kind === 'aws';
  if (!isLocal(endpoint)) return false;
  // An endpoint on this machine gets no keys of the user's for this.
  return (await profileEndpoint({ ...awsOptions(target, true), endpoint })).name === 'sandbox';
}

/** The same promise for all callers, including a failure; a transient failure is retried at the next call. */
function once<T>(find: () => Promise<T>): { (): Promise<T>; asked(): boolean } {
  let found: Promise<T> | null = null;
  const ask = (): Promise<T> => {
    if (found !== null) return found;
    const finding = (found = find());
    finding.catch((error: unknown) => {
      const isPassing = error instanceof AppError && (error.code === 'aws-throttled' || error.code === 'aws-failed');
      if (isPassing) found = null;
    });
    return finding;
  };
  return Object.assign(ask, { asked: () => found !== null });
}

function lazily<T>(make: () => T): { (): T; made(): boolean } {
  let it: { value: T } | null = null;
  return Object.assign(() => (it ??= { value: make() }).value, { made: () => it !== null });
}

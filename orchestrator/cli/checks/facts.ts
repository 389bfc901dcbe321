/**
 * What the checks share: each fact is found out once, when first needed; a fact that cannot be found out fails every
 * check that needs it.
 */
import { fleetSubnets } from '../fleet-subnets.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { Identity } from '../../cloud/account.ts';
import { whoAmI } from '../../cloud/account.ts';
import type { LaunchRequest, SubnetInfo } from '../../cloud/compute.ts';
import { TAG } from '../../cloud/compute.ts';
import { Ec2Compute } from '../../cloud/ec2-compute.ts';
import { Elbv2LoadBalancer } from '../../cloud/elbv2-load-balancer.ts';
import type { AwsOptions } from '../../cloud/sdk-clients.ts';
import type { OwnInterface } from '../../cloud/own-vpc.ts';
import { probeEndpoint } from '../../cloud/probe.ts';
import type { RouteTable } from '../../cloud/route-tables.ts';
import { findRouteTables } from '../../cloud/route-tables.ts';
import type { Quota } from '../../cloud/quota-api.ts';
import { IGNORED_ROBOTS } from '../../control/observe/robots-cache.ts';
import type { Database } from '../../db/connect.ts';
import { openDatabase } from '../../db/connect.ts';
import { architectureOf, chooseInstanceType, BROWSER_MEMORY_GB, HTTP_MEMORY_GB } from '../../plan/instance-types.ts';
import type { Plan } from '../../plan/plan.ts';
import { awsOptions } from '../cloud-access.ts';
import { browserBootOf } from '../browser-boot.ts';
import type { Config } from '../config/load-config.ts';
import type { ProductList } from '../products.ts';
import type { Target } from '../target.ts';
import type { LaunchNetwork } from '../launch-network.ts';
import { instanceGroups, launchNetwork, ownNetwork } from '../launch-network.ts';
import { makePlan } from '../make-plan.ts';
import { readWholeList } from '../products.ts';
import { awsSettingsOf, ownerOf } from '../settings-of.ts';
import { isLoopback } from '../target.ts';
import { pricesFor, quotaOf, robotsOf } from '../preflight.ts';

export interface Facts {
  database(): Promise<Database>;
  products(): Promise<ProductList>;
  robots(): Promise<RobotsPolicy>;
  quota(): Promise<Quota>;
  plan(): Promise<Plan>;
  identity(): Promise<Identity>;
  /** The instance type by the configuration alone, so that it needs no plan. */
  instanceType(): string;
  subnets(): Promise<SubnetInfo[]>;
  /**
   * Groups, scheme and load balancer as the run will have them; fails for a load balancer of the user's that cannot
   * serve the subnets.
   */
  network(): Promise<LaunchNetwork>;
  /** Of this machine; none when it is no EC2 instance. */
  ownInterfaces(): Promise<OwnInterface[]>;
  imageId(): Promise<string>;
  /** Of the VPC that the subnets are in. */
  routeTables(): Promise<RouteTable[]>;
  /** Security groups of the instances. */
  groups(): Promise<string[]>;
  /** A launch request as the run would send it, without its user data. */
  launch(): Promise<LaunchRequest>;
  /** An instance of our own that EC2 still lists; null when there is none. */
  ownInstance(): Promise<string | null>;
  /** How far the endpoint's clock is ahead of ours, in milliseconds; null when no answer has shown it. */
  skewMs(): Promise<number | null>;
  /**
   * True if the answers come from AWS or our sandbox: other endpoints may execute a DryRun call, and lack features of
   * AWS.
   */
  isFaithful(): Promise<boolean>;
  close(): Promise<void>;
}

export interface FactsOptions {
  config: Config;
  target: Target;
  environment: Readonly<Record<string, string | undefined>>;
  /** Null for a sandbox that is not started yet: then there are no facts about AWS. */
  aws: AwsOptions | null;
  /** What a run has found out already. Its database stays open. */
  known?: { database?: Database; products?: ProductList; plan?: Plan };
}

/** Makes no call yet. */
export function createFacts({ config, target, environment, aws, known }: FactsOptions): Facts {
  let skewMs: number | null = null;
  const options = (): AwsOptions => {
    if (aws === null) throw new Error('there is no endpoint yet');
    return { ...aws, onTime: (ms) => (skewMs = ms - systemClock.now()) };
  };
  const compute = lazily(() => new Ec2Compute(options()));
  const balancers = lazily(() => new Elbv2LoadBalancer(options()));
  const database = once(() => Promise.resolve(known?.database ?? openDatabase(config.values.database.url)));
  const instanceType = (): string => known?.plan?.instanceType ?? typeFor(config, target);
  const facts: Facts = {
    database,
    products: once(async () => known?.products ?? readWholeList(config, await facts.database())),
    robots: once(() => robotsOf(config)),
    quota: once(() => quotaOf(config, target)),
    plan: once(async () => {
      if (known?.plan) return known.plan;
      const products = await facts.products();
      const [robots, prices, quota, browser] = await Promise.all([
        products.ids.length === 0 ? IGNORED_ROBOTS : facts.robots(),
        pricesFor(config, target),
        facts.quota(),
        browserBootOf(config, target),
      ]);
      return makePlan(config, target, products, { robots, prices, quota, browser });
    }),
    identity: once(() => whoAmI(options())),
    instanceType,
    subnets: once(() => fleetSubnets(compute(), config.values.aws.subnets)),
    network: once(async () => {
      const cloud = { compute: compute(), balancers: balancers() };
      const own = target.dryRun ? null : () => facts.ownInterfaces();
      return launchNetwork(cloud, awsSettingsOf(config, target), await facts.subnets(), own);
    }),
    ownInterfaces: once(async () => (await ownNetwork(target.dryRun, environment)?.()) ?? []),
    imageId: once(() =>
      compute().image(
        config.values.aws.image,
        architectureOf(instanceType()),
        config.values.site.render === 'http' ? 'http' : 'browser',
      ),
    ),
    routeTables: once(async () => {
      const [{ vpcId }] = (await facts.subnets()) as [SubnetInfo];
      return findRouteTables(options(), vpcId);
    }),
    groups: once(async () => {
      const [{ vpcId }] = (await facts.subnets()) as [SubnetInfo];
      return (await instanceGroups(compute(), awsSettingsOf(config, target), vpcId)).ids;
    }),
    launch: once(async () => {
      const [subnets, securityGroupIds, imageId] = await Promise.all([
        facts.subnets(),
        facts.groups(),
        facts.imageId(),
      ]);
      return launchOf(config, { instanceType: instanceType(), imageId, subnetId: subnets[0]!.id, securityGroupIds });
    }),
    ownInstance: once(async () => {
      const own = await compute().list({ key: TAG.owner, value: ownerOf(config) });
      // A terminating instance may be gone before the call about it.
      return own.find((i) => i.state === 'running' || i.state === 'pending')?.id ?? null;
    }),
    skewMs: once(async () => {
      // Any answer will do, even a refusal: a wrong clock is one reason for it.
      await facts.identity().catch(() => undefined);
      if (skewMs === null) await facts.subnets().catch(() => undefined);
      return skewMs;
    }),
    isFaithful: once(() => isFaithful(target)),
    async close() {
      if (compute.made()) compute().close();
      if (balancers.made()) balancers().close();
      if (!known?.database && database.asked())
        await database().then(
          (db) => db.close(),
          () => undefined,
        );
    },
  };
  return facts;
}

/** The type that the plan would take first. */
function typeFor(config: Config, target: Target): string {
  const memoryGb = config.values.site.render === 'http' ? HTTP_MEMORY_GB : BROWSER_MEMORY_GB;
  return chooseInstanceType(config.values.aws.instance_types, target.region, memoryGb).name;
}

type Place = Pick<LaunchRequest, 'instanceType' | 'imageId' | 'subnetId' | 'securityGroupIds'>;

function launchOf(config: Config, place: Place): LaunchRequest {
  return {
    ...place,
    // A DryRun request only; its own token keeps it apart from every launch.
    clientToken: sha256Hex(`doctor|${systemClock.now()}`),
    instanceProfile: config.values.aws.instance_profile,
    userData: '#!/bin/bash\n',
    // Policies may demand the tags of a real launch.
    tags: {
      Name: 'crawlfleet doctor',
      [TAG.owner]: ownerOf(config),
      [TAG.run]: 'doctor',
      [TAG.slot]: '0',
      [TAG.epoch]: '1',
      [TAG.expiresAt]: new Date(systemClock.now()).toISOString(),
    },
  };
}

async function isFaithful(target: Target): Promise<boolean> {
  const { endpoint } = target;
  if (endpoint === null) return target.kind === 'aws';
  if (!isLoopback(new URL(endpoint).hostname)) return false;
  // An endpoint on this machine gets no keys of the user's for this.
  return (await probeEndpoint({ ...awsOptions(target, true), endpoint })).name === 'sandbox';
}

interface Once<T> {
  (): Promise<T>;
  asked(): boolean;
}

/** The same promise for all callers, including a failure; a transient failure is retried at the next call. */
function once<T>(find: () => Promise<T>): Once<T> {
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

/** Opens and checks everything a plan or a run depends on, cheapest first, before anything is launched. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { RobotsPolicy, RobotsReading } from '../../../shared/domain/robots-matcher.ts';
import { API_PORT } from '../../../shared/wire/instance-api.ts';
import { packSettingsOf } from '../act/launches/crawl-settings.ts';
import type { SubnetInfo } from '../cloud/compute.ts';
import { Ec2Compute } from '../cloud/ec2-compute.ts';
import { isRange, isWithin, readGroups, sourcesOf } from '../cloud/group-rules.ts';
import { awsOptions } from '../cloud-access/cloud-access.ts';
import { instanceGroups, ownNetwork } from '../cloud-access/launch-network.ts';
import { type Quota, quotaFor } from '../cloud/quota-api.ts';
import { quotaCodeOf } from '../plan/quota-codes.ts';
import { LATEST_VERSION, migrate, versionOf } from '../db/migrate.ts';
import type { Database } from '../db/connect.ts';
import { noRoomForNumbers } from '../db/no-room-for-numbers.ts';
import { checkResultTable } from '../db/result-table.ts';
import { checkResultRights, checkRights } from '../db/rights.ts';
import { createStores } from '../db/create-stores.ts';
import { IGNORED_ROBOTS } from '../model/robots-pace.ts';
import type { IdList } from '../model/stores.ts';
import type { AskedPace } from '../plan/host-pace.ts';
import { readAskedPaces, withKnownDelays } from './asked-paces.ts';
import { browserBootOf } from './browser-boot.ts';
import type { Output } from '../caller.ts';
import type { Config, Environment } from '../config/load-config.ts';
import { denyOf } from '../config/follow-section.ts';
import { siteSettingsOf } from '../config/site-section.ts';
import { type ProductList, readList } from './products.ts';
import type { Target } from '../config/target.ts';
import { type PlanFacts, type Planned, planWhatFits } from './make-plan.ts';
import { awsSettingsOf, deadlineOf, settingsOf } from './settings-of.ts';
import { freshPrices, type FreshPrices, keptPrices } from './fresh-prices.ts';
import { openWaiting } from '../lookup/find-run.ts';
import { stateDirOf } from '../config/state-dir.ts';
import { readRobots } from './site-robots.ts';

/**
 * AWS's own prices if the run's target is AWS itself; otherwise the shipped table.
 * @param isOffline only those that an earlier call has kept
 */
export async function pricesFor(config: Config, target: Target, isOffline = false): Promise<FreshPrices> {
  if (target.dryRun || target.endpoint !== null) return { lists: [], warnings: [] };
  const source = {
    file: stateDirOf(config.file).prices,
    clock: systemClock,
    regions: config.values.aws.regions?.map(({ region }) => region) ?? [target.region],
    instanceTypes: config.values.aws.instance_types,
  };
  return isOffline ? keptPrices(source) : freshPrices({ ...source, api: awsOptions(target, false) });
}

/** What a plan without any call assumes; it knows no robots.txt. */
export async function offlineFacts(given: Pick<PlanFacts, 'config' | 'target' | 'products'>): Promise<PlanFacts> {
  const { config, target } = given;
  const { aws } = config.values;
  const list = aws.regions?.map(({ region, max_instances: maxInstances, weight, vcpu_quota: vcpuQuota }) => {
    return { region, maxInstances, weight, vcpuQuota };
  });
  return {
    ...given,
    robots: UNREAD_ROBOTS,
    prices: await pricesFor(config, target, true),
    quota: { vcpus: aws.regions === null ? aws.vcpu_quota : null, note: null },
    regions: list === undefined ? null : { list, notes: [] },
    browser: 'ready',
  };
}

const UNREAD_ROBOTS: RobotsPolicy = { ...IGNORED_ROBOTS, version: 'unread', source: 'robots.txt is not read' };

/** The account's vCPU quota minus what runs already, for a paid run; on this machine the configured value. */
export function quotaOf(config: Config, target: Target): Promise<Quota> {
  return quotaIn(config, target, { region: target.region, configured: config.values.aws.vcpu_quota });
}

function quotaIn(
  { values }: Config,
  target: Target,
  { region, configured }: { region: string; configured: number | null },
): Promise<Quota> {
  const { instance_types: instanceTypes } = values.aws;
  if (!target.dryRun) return quotaFor({ ...awsOptions({ ...target, region }, false), instanceTypes, configured });
  const code = quotaCodeOf(instanceTypes[0] ?? '');
  const source = configured === null ? 'unknown' : 'aws.vcpu_quota';
  return Promise.resolve({ vcpus: configured, quota: configured, inUse: null, code, source, note: null });
}

/** The regions of the configuration with their quotas, and notes about those; null for the short form. */
async function regionsFor(config: Config, target: Target): Promise<NonNullable<PlanFacts['regions']> | null> {
  const { regions } = config.values.aws;
  if (regions === null) return null;
  const quotas = await Promise.all(
    regions.map(async ({ region, vcpu_quota: configured, max_instances: maxInstances, weight }) => {
      const { vcpus: vcpuQuota, note } = await quotaIn(config, target, { region, configured });
      return { place: { region, maxInstances, weight, vcpuQuota }, note };
    }),
  );
  return {
    list: quotas.map(({ place }) => place),
    notes: quotas.flatMap(({ note }) => note ?? []),
  };
}

/**
 * Whether this machine can offer products to the instances itself: it is in their VPC, and their security groups let it
 * in. Only asked where `aws.load_balancer` leaves it open; false where AWS does not show it.
 */
async function reachesInstances(config: Config, target: Target, environment: Environment): Promise<boolean> {
  const { aws } = config.values;
  const own = ownNetwork(target.dryRun, environment);
  if (own === null || target.endpoint !== null || aws.load_balancer !== null || aws.regions !== null) return false;
  using compute = new Ec2Compute(awsOptions(target, false));
  try {
    const [{ vpcId }] = (await compute.subnets(aws.subnets)) as [SubnetInfo];
    const here = (await own()).filter((each) => each.vpcId === vpcId);
    if (here.length === 0) return false;
    const { ids } = await instanceGroups(compute, awsSettingsOf(config, target), vpcId);
    const sources = sourcesOf(await readGroups(awsOptions(target, false), ids), API_PORT);
    return here.some(({ securityGroupIds, addresses }) =>
      sources.some((s) => securityGroupIds.includes(s) || (isRange(s) && addresses.some((a) => isWithin(a, s)))),
    );
  } catch {
    return false;
  }
}

/**
 * The plan and what it crawls, with what else it depends on; reads robots.txt only if there are products. Throws
 * `config-invalid` for settings that no instance would take: a plan promises nothing that a run refuses.
 */
export async function planFor(
  given: Pick<PlanFacts, 'config' | 'target' | 'products'> & { environment: Environment },
  ask: { robots: () => Promise<RobotsPolicy>; asked: () => Promise<AskedPace[]>; quota: () => Promise<Quota> },
): Promise<Planned> {
  const { config, target, products } = given;
  const [robots, asked, prices, quota, regions, browser, reaches] = await Promise.all([
    products.ids.length === 0 ? IGNORED_ROBOTS : ask.robots(),
    ask.asked(),
    pricesFor(config, target),
    config.values.aws.regions === null ? ask.quota() : UNASKED,
    regionsFor(config, target),
    browserBootOf(config, target),
    reachesInstances(config, target, given.environment),
  ]);
  const planned = planWhatFits({ ...given, robots, asked, prices, quota, regions, browser, reachesInstances: reaches });
  packSettingsOf(settingsOf(config, target, planned.plan), denyOf(config));
  return planned;
}

/** The quota of a run that names its regions: each has its own. */
const UNASKED = { vcpus: null, note: null };

/** robots.txt of the configured site, read with its User-Agent. */
export const robotsOf = (config: Config): Promise<RobotsReading> => readRobots(siteSettingsOf(config.values.site));

export type Preflight = Awaited<ReturnType<typeof preflight>>;

/** What a plan lacks on tables that it may not update; empty after `migrate`, and on a database without a run. */
async function unreadHistory(database: Database): Promise<string[]> {
  const version = await versionOf(database);
  if (version === 0 || version === LATEST_VERSION) return [];
  return [
    `${database.label}: the crawlfleet tables are of an earlier version, ${version}: what earlier runs have measured, and the paces that the site asked of them, are not in this plan. orchestrator status brings them up to date`,
  ];
}

/**
 * Opens the database for what comes before a run. With `migrate` it creates our own tables; without, it changes nothing
 * in the database. `output`: see openWaiting.
 */
export async function preflight(
  config: Config,
  target: Target,
  options: { migrate: boolean; environment: Environment; output: Pick<Output, 'line'> },
) {
  deadlineOf(config);
  const database = await openWaiting(config, options.output);
  try {
    if (options.migrate) {
      await checkRights(database);
      await migrate(database);
    }
    const { table } = config.values.results;
    return {
      config,
      database,
      [Symbol.asyncDispose]: () => database.close(),
      stores: createStores(database, config.features),
      /** The product query, not yet compared with the result table. `acceptDrop`: a shorter list is right. */
      readProducts: (accepted?: boolean): Promise<ProductList> =>
        readList(config, database, { accepted, mayWrite: options.migrate }),
      /** Throws when the result table does not fit the mapping or cannot keep these products apart. */
      async checkResults(ids: IdList): Promise<void> {
        await checkResultTable(database, table, config.mapping, ids);
        await checkResultRights(database, table, config.mapping);
      },
      /** Reads robots.txt first if it must be respected and is not given. */
      async plan(all: ProductList, known?: RobotsPolicy): Promise<Planned> {
        const robots = (): Promise<RobotsPolicy> => (known ? Promise.resolve(known) : robotsOf(config));
        const loads = all.loads && (await withKnownDelays(database, all.loads, config.values.site.host_key));
        const given = {
          config,
          target,
          products: { ...all, ...(loads && { loads }) },
          environment: options.environment,
        };
        const { plan, products } = await planFor(given, {
          robots,
          asked: () => readAskedPaces(config, database),
          quota: () => quotaOf(config, target),
        });
        const open = await noRoomForNumbers(database, table, config.mapping);
        const unread = await unreadHistory(database);
        return { plan: { ...plan, warnings: [...plan.warnings, ...open, ...unread] }, products };
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

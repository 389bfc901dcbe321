/** What a run keeps of the configuration it started with. */
import { hostname } from 'node:os';
import { AppError } from '../../../shared/domain/errors.ts';
import type { VolumeSettings } from '../cloud/compute.ts';
import { NO_BALANCER, type RegionSettings, type RunSettings } from '../model/run-settings.ts';
import type { Plan } from '../plan/plan.ts';
import { type ProductUrl, URL_MARK } from '../../../shared/domain/domains.ts';
import { READING_RULES } from '../../../shared/domain/mapping.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import type { Config } from '../config/load-config.ts';
import type { ConfigValues } from '../config/schema.ts';
import { followSettingsOf } from '../config/follow-section.ts';
import { requestSettingsOf } from '../config/request-section.ts';
import { siteSettingsOf } from '../config/site-section.ts';
import { userHeadersOf } from '../config/user-headers.ts';
import { VERSION } from '../version.ts';
import { type Target, userAgentOf } from '../config/target.ts';

/** The result table of the probes of a site. */
export const probeTable = (resultTable: string): string => `${resultTable}_probe`;

/** The owner of everything that a run launches: the value of its tag crawlfleet:owner. */
export const ownerOf = (config: Config): string => config.values.aws.owner ?? hostname();

/** Two crawls into different tables are different schedules; the record and every notice name theirs. */
export const scheduleNameOf = ({ values: { schedule, results } }: Config): string => schedule.name ?? results.table;

/** The deadline of the flag or the file, in milliseconds. */
export function deadlineOf(config: Config): number {
  const { deadline } = config.values.run;
  if (deadline === null) {
    throw new AppError(
      'config-invalid',
      `there is no deadline: neither --deadline nor run.deadline in ${config.file}`,
      { hint: 'For example: --deadline 4h' },
    );
  }
  return deadline;
}

/** The share of a host without a product: each host keeps its place, and a weight is above 0. */
const IDLE = 1e-6;

/** What products are requested by: of `site.hosts` with the share that each has of the list, once it is known. */
export const countedUrl = (productUrl: ProductUrl, hosts: Plan['hosts']): ProductUrl =>
  hosts?.map(({ origin, products }) => ({ url: origin + URL_MARK, weight: products || IDLE })) ?? productUrl;

/** What the run keeps of the configuration. The sandbox and the callback address are filled in when they are known. */
export function settingsOf(
  config: Config,
  target: Target,
  plan: Pick<Plan, 'intervalMs' | 'noBalancer' | 'bannedLately' | 'hosts'>,
): Omit<RunSettings, 'sandbox' | 'server'> {
  const { site, results, run } = config.values;
  const kept = siteSettingsOf(site);
  return {
    site: {
      ...kept,
      productUrl: countedUrl(kept.productUrl, plan.hosts),
      // Longer than configured if site.max_rate is below one instance's own rate.
      intervalMs: plan.intervalMs,
      ...(plan.bannedLately === undefined ? {} : { bannedLately: [...plan.bannedLately] }),
      ...(config.maxRequests === undefined ? {} : { maxRequests: config.maxRequests }),
    },
    mapping: config.mapping,
    grantsKept: true,
    partsSigned: true,
    roleSessions: true,
    ...(config.discovery === undefined ? {} : { discover: config.discovery }),
    results: {
      table: results.table,
      onGone: results.on_gone,
      ...(results.history === null ? {} : { history: results.history }),
      ...(site.conditional ? { conditional: contentFingerprint(config) } : {}),
      guard: results.guard && { minFill: results.guard.min_fill },
    },
    run: {
      deadlineMs: deadlineOf(config),
      maxCost: run.max_cost,
      graceMs: run.grace,
      minInstances: run.min_instances,
      maxInstances: run.max_instances,
      maxFailed: run.max_failed,
    },
    aws: launchSettingsOf(config, target, plan),
  };
}

/** The fingerprint of all that decides which rows a page gives: after a change each page is read whole once. */
function contentFingerprint(config: Config): string {
  const { product_url, request, render, keep_cookies, follow } = config.values.site;
  const reading: unknown[] = [READING_RULES, userAgentOf(config), render, keep_cookies, config.mapping];
  const { userHeaders } = userHeadersOf(config.values.site);
  if (userHeaders !== undefined) reading.push(userHeaders);
  const followed = { ...followSettingsOf(follow), ...(config.denyLines && { deny: config.denyLines }) };
  if (Object.keys(followed).length > 0) reading.push(followed);
  if (request?.method === 'POST') reading.push(requestSettingsOf(request));
  return sha256Hex(JSON.stringify([VERSION, product_url, ...reading]));
}

/** The settings of `aws.volume`, as a launch has them. */
export function volumeOf(given: NonNullable<ConfigValues['aws']['volume']>): VolumeSettings {
  const { size, type, encrypted, kms_key: kmsKey } = given;
  return {
    ...(size === null ? {} : { sizeGb: size }),
    ...(type === null ? {} : { type }),
    ...(encrypted || kmsKey !== null ? { encrypted: true as const } : {}),
    ...(kmsKey === null ? {} : { kmsKey }),
  };
}
/** What the run keeps of its target, with what the plan has chosen. */
export const launchSettingsOf = (
  config: Config,
  target: Target,
  { noBalancer }: Pick<Plan, 'noBalancer'>,
): RunSettings['aws'] => ({
  ...awsSettingsOf(config, target),
  ...(noBalancer ? { loadBalancer: NO_BALANCER } : {}),
});

/** What the run keeps of its target. */
export function awsSettingsOf(config: Config, target: Target): RunSettings['aws'] {
  const { aws } = config.values;
  return {
    region: target.region,
    ...(aws.regions === null ? {} : { regions: aws.regions.map(regionSettings) }),
    endpoint: target.endpoint,
    instanceTypes: aws.instance_types,
    subnets: aws.subnets,
    securityGroups: aws.security_groups,
    bucket: target.bucket,
    instanceProfile: aws.instance_profile ?? (target.dryRun ? 'crawlfleet-dry-run' : null),
    image: aws.image,
    loadBalancer: aws.load_balancer,
    balancerScheme: aws.balancer_scheme,
    recycleEveryMs: aws.recycle_every,
    // The sandbox has no certificates.
    ...(aws.certificate === null || target.dryRun ? {} : { certificate: aws.certificate }),
    ...(aws.commands ? { commands: true as const } : {}),
    tags: aws.tags,
    ...(aws.sse === null ? {} : { sse: aws.sse }),
    ...(aws.volume === null ? {} : { volume: volumeOf(aws.volume) }),
    owner: ownerOf(config),
  };
}

type ConfiguredRegion = NonNullable<Config['values']['aws']['regions']>[number];

/** What the run keeps of one of `aws.regions`. */
const regionSettings = (there: ConfiguredRegion): RegionSettings => ({
  region: there.region,
  subnets: there.subnets,
  securityGroups: there.security_groups,
  image: there.image,
  loadBalancer: there.load_balancer,
  maxInstances: there.max_instances,
});

/** What the canary crawls, where, and what it may cost: from its flags and the user's fleet.yaml. */
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { isLoopback } from '../../orchestrator/core/config/target.ts';
import { CANARY_PORT } from '../../orchestrator/features/setup/values.ts';
import { hourlyPrice, servicePrices } from '../../orchestrator/core/plan/price-table.ts';
import { MAPPING, canaryIds } from './page-server.ts';

export const INSTANCES = 2;
const PRODUCTS = 20;
/** Maximum cost of a canary in USD, whatever goes wrong in it. */
export const MAX_COST = 0.2;
/** Size of an instance's disk in the cost estimate. */
const DISK_GB = 8;
const HOURS_A_MONTH = 730;

export interface CanaryFlags {
  config?: string | undefined;
  endpoint?: string | undefined;
  /** Treats an endpoint on this machine as AWS itself: no dry run, the user's own keys, every check that AWS gets. */
  asAws?: boolean | undefined;
  region?: string | undefined;
  bucket?: string | undefined;
  profile?: string | undefined;
  serverUrl?: string | undefined;
  /** Address and port to serve the pages on; instances reach them through the host of server.url. */
  siteListen?: string | undefined;
  /** A file with one ID per line: then the canary crawls the configured site and serves no pages. */
  ids?: string | undefined;
}

type Section = Record<string, unknown>;

export interface CanarySettings {
  /** On this machine, at no cost. */
  dryRun: boolean;
  ids: string[];
  /** Where to serve our pages; null when the user's own site is crawled. */
  pages: { host: string; port: number; urlHost: string } | null;
  deadlineMs: number;
  graceMs: number;
  region: string;
  instanceTypes: string[];
  /** The configuration without a database and, for our own pages, without `site.product_url`. */
  config: Record<string, Section>;
  worstUsd: number;
}

const MINUTE = 60_000;

/** Throws an Error whose message names what is missing. */
export function canarySettings(flags: CanaryFlags): CanarySettings {
  const file: Record<string, Section> = flags.config === undefined ? {} : readSections(flags.config);
  const set = (values: Section): Section =>
    Object.fromEntries(Object.entries(values).filter(([, v]) => v !== undefined));
  const aws: Section = {
    ...file.aws,
    ...set({ region: flags.region, bucket: flags.bucket, instance_profile: flags.profile, endpoint: flags.endpoint }),
  };
  const endpoint = typeof aws.endpoint === 'string' ? aws.endpoint : null;
  const dryRun = flags.asAws !== true && endpoint !== null && isLoopback(new URL(endpoint).hostname);
  const server: Section = { ...file.server, ...set({ url: flags.serverUrl }) };
  if (!dryRun) {
    const missing = [
      ...(aws.region ? [] : ['--region']),
      ...(aws.bucket ? [] : ['--bucket']),
      ...(aws.instance_profile ? [] : ['--profile']),
      ...(server.url ? [] : ['--server-url']),
    ];
    if (missing.length > 0)
      throw new Error(`a canary on AWS needs --config fleet.yaml, or ${missing.join(', ')}; --sandbox tries it here`);
  }
  const ids = flags.ids === undefined ? canaryIds(PRODUCTS) : readIds(flags.ids);
  const pages = flags.ids === undefined ? pagesOf(flags, dryRun, textOf(server.url)) : null;
  if (pages === null && flags.config === undefined)
    throw new Error('--ids needs --config: its site is the one crawled');
  const [deadlineMs, graceMs] = dryRun ? [2 * MINUTE, MINUTE / 2] : [30 * MINUTE, 5 * MINUTE];
  const region = textOf(aws.region) || 'ap-northeast-1';
  const instanceTypes = (aws.instance_types as string[] | undefined) ?? [
    't4g.nano',
    't3.nano',
    't4g.small',
    't3.small',
  ];
  const worstUsd = worstCase(region, instanceTypes, deadlineMs + graceMs);
  if (worstUsd > MAX_COST)
    throw new Error(
      `at its worst this canary would cost $${worstUsd.toFixed(3)}, which is over $${MAX_COST.toFixed(2)}: allow small types only (aws.instance_types: [t4g.nano, t3.nano])`,
    );
  const config: Record<string, Section> = {
    site: {
      ...(pages === null
        ? { ...file.site, mapping: mappingOf(file.site, flags.config!) }
        : { mapping: MAPPING, interval: dryRun ? '500ms' : '2s', allow_private: isPrivateHost(pages.urlHost) }),
      user_agent: file.site?.user_agent ?? `crawlfleet-canary/1.0 (+http://${pages?.urlHost ?? 'localhost'}/)`,
    },
    products: { query: 'select id from products' },
    run: {
      deadline: `${deadlineMs / 1_000}s`,
      grace: `${graceMs / 1_000}s`,
      max_cost: MAX_COST,
      min_instances: INSTANCES,
      max_instances: INSTANCES,
    },
    aws,
    ...(dryRun ? {} : { server }),
  };
  return { dryRun, ids, pages, deadlineMs, graceMs, region, instanceTypes, config, worstUsd };
}

/**
 * Every slot filled twice, each time on the most expensive type and up to the last moment; the load balancer's next
 * hour begun, with a capacity unit all the time. The program's own cap (run.max_cost) applies on top.
 */
export function worstCase(region: string, instanceTypes: readonly string[], longestMs: number): number {
  const services = servicePrices(region);
  const hours = longestMs / 3_600_000;
  const dearest = Math.max(...instanceTypes.map((type) => hourlyPrice(region, type).usd));
  const each = dearest + services.ipv4Hour + (DISK_GB * services.gp3GbMonth) / HOURS_A_MONTH;
  const balancer = (Math.ceil(hours) + 1) * (services.balancerHour + services.lcuHour + 2 * services.ipv4Hour);
  return 2 * INSTANCES * hours * each + balancer + services.s3Put;
}

function readSections(path: string): Record<string, Section> {
  const value: unknown = parse(readFileSync(path, 'utf8'));
  if (typeof value !== 'object' || value === null) throw new Error(`${path} is no configuration`);
  return value as Record<string, Section>;
}

function readIds(path: string): string[] {
  const ids = readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  if (ids.length === 0) throw new Error(`${path} has no IDs`);
  return ids.slice(0, PRODUCTS);
}

function pagesOf(flags: CanaryFlags, dryRun: boolean, serverUrl: string): NonNullable<CanarySettings['pages']> {
  if (dryRun) return { host: '127.0.0.1', port: 0, urlHost: '127.0.0.1' };
  const listen = flags.siteListen ?? `0.0.0.0:${CANARY_PORT}`;
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s[\]]+)):(\d{1,5})$/.exec(listen);
  const [host, port] = [match?.[1] ?? match?.[2], Number(match?.[3])];
  // Port 0 works on this machine only: elsewhere a security group must have opened the port beforehand.
  const isFreeOne = port === 0 && host !== undefined && isLoopback(host);
  if (host === undefined || !(isFreeOne || (port >= 1 && port <= 65_535)))
    throw new Error(`--site-listen must be an address and a port such as 0.0.0.0:${CANARY_PORT}, not ${listen}`);
  return { host, port, urlHost: new URL(serverUrl).hostname };
}

const isPrivateHost = (host: string): boolean =>
  !isIPv4(host) || /^(10|127)\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\./.test(host);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A path in the user's file is relative to that file's folder. */
function mappingOf(site: Section | undefined, configPath: string): unknown {
  return typeof site?.mapping === 'string' ? resolve(dirname(resolve(configPath)), site.mapping) : site?.mapping;
}

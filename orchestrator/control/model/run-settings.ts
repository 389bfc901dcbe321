/** The part of the configuration that a run keeps: plain data, no secrets, stored in the run's row. */
import type { BillingTerms } from '../../plan/prices.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import type { BanRules, Canary } from '../../../shared/domain/verdict.ts';
import type { ListRecord } from './report.ts';

export interface RunSettings {
  site: {
    productUrl: string;
    intervalMs: number;
    maxRatePerSecond: number | null;
    userAgent: string;
    timeoutMs: number;
    maxPageBytes: number;
    allowPrivate: boolean;
    render: 'http' | 'browser' | 'auto';
    robots: 'respect' | 'ignore';
    /** What the fleet does about a banned address. */
    onBan: 'cool-down' | 'replace' | 'stop';
    ban: BanRules;
    canaries: Canary[];
  };
  mapping: Mapping;
  /** Left out in runs of other products than the whole of products.query, and in those of versions before it was kept. */
  list?: ListRecord;
  results: {
    table: string;
    onGone: 'keep' | 'delete';
    /** Share of the fill rates of earlier runs below which a crawl is held; null or left out: nothing is held. */
    guard?: { minFill: number } | null;
  };
  run: {
    deadlineMs: number;
    maxCost: number | null;
    graceMs: number;
    minInstances: number;
    maxInstances: number;
    /** Share of products that may fail before the exit code says so. */
    maxFailed: number;
  };
  aws: {
    region: string;
    /** Null for AWS itself. */
    endpoint: string | null;
    instanceTypes: string[];
    subnets: string[];
    securityGroups: string[];
    bucket: string;
    instanceProfile: string | null;
    image: string | null;
    /** Name or ARN of a balancer of the user's; null or left out: one is made for the run. */
    loadBalancer?: string | null;
    /** Of the balancer that is made; `auto` when left out. */
    balancerScheme?: 'auto' | 'internal' | 'internet-facing';
    /** Each address is rotated this often; null or left out: never. */
    recycleEveryMs?: number | null;
    /** Value of the tag crawlfleet:owner; not in runs of versions before it was a setting, whose owner was the host's name. */
    owner?: string;
  };
  /** Set for a dry run in our own sandbox: how to find it again. */
  sandbox: {
    pid: number;
    controlToken: string;
    dataDir: string;
    /** Its own endpoint, when it only stands in for the machines and the balancer of `aws.endpoint`; left out: it is `aws.endpoint`. */
    endpoint?: string;
  } | null;
  server: { callbackUrl: string; callbackListen: string };
}

/** Zones that a balancer of ours is in, unless the user names subnets: the least that ELBv2 takes, and each has an address that is paid for. */
export const BALANCER_ZONES = 2;

/**
 * Public IPv4 addresses of the balancer that a run makes: one a zone, where it faces the internet. With `auto` it is reckoned to,
 * because only the launch finds out; where subnets are named each counts as a zone of its own.
 */
export function balancerAddresses({
  loadBalancer,
  balancerScheme = 'auto',
  subnets = [],
}: Partial<Pick<RunSettings['aws'], 'loadBalancer' | 'balancerScheme' | 'subnets'>>): number {
  if ((loadBalancer ?? null) !== null || balancerScheme === 'internal') return 0;
  return Math.max(BALANCER_ZONES, subnets.length);
}

/** What the price of a run depends on beside its plan. */
export const billingTerms = (settings: Pick<RunSettings, 'aws' | 'site'>): BillingTerms => ({
  ownBalancer: hasOwnBalancer(settings),
  balancerAddresses: balancerAddresses(settings.aws),
  browser: settings.site.render === 'browser' || settings.site.render === 'auto',
});

/** True where the balancer is the user's own: the run makes and pays none. */
export const hasOwnBalancer = ({ aws }: Pick<RunSettings, 'aws'>): boolean => (aws.loadBalancer ?? null) !== null;

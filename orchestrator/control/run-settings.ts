/** The part of the configuration that a run keeps: plain data, no secrets, stored in the run's row. */
import type { Mapping } from '../../shared/domain/mapping.ts';
import type { BanRules, Canary } from '../../shared/domain/verdict.ts';
import type { ListRecord } from './product-list.ts';

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
    /** Each address is renewed this often; null or left out: never. */
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

/** True where the balancer is the user's own: the run makes and pays none. */
export const hasOwnBalancer = ({ aws }: Pick<RunSettings, 'aws'>): boolean => (aws.loadBalancer ?? null) !== null;

/** The part of the configuration that a run keeps: plain data, no secrets, stored in the run's row. */
import { isNonEmpty, type NonEmpty } from '../../../shared/domain/non-empty.ts';
import type { VolumeSettings } from '../cloud/compute.ts';
import type { BillingTerms } from '../plan/plan.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import type { SiteSettings } from '../../../shared/wire/site-settings.ts';
import type { DiscoverSettings } from './discovery.ts';
import type { ListRecord } from './report.ts';

export interface RunSettings {
  site: SiteSettings;
  mapping: Mapping;
  /** What the run discovers by; omitted in runs that discover nothing. */
  discover?: DiscoverSettings;
  /** SHA-256 of the object with the deny list of the run; omitted in runs without one: their row has everything. */
  crawlSettings?: string;
  /**
   * The list of products; omitted in runs over anything but the whole of products.query, and in runs of earlier
   * versions.
   */
  list?: ListRecord;
  results: {
    table: string;
    onGone: 'keep' | 'delete';
    /** `changes`: publishing writes each change of a field into a table beside it; omitted: nothing is written. */
    history?: 'changes';
    /**
     * `site.conditional`: the fingerprint of what decides which rows a page gives; only pages read under the same one
     * are asked for conditionally. Omitted: none is.
     */
    conditional?: string;
    /** Share of the fill rates of earlier runs below which a crawl is held; null or omitted: nothing is held. */
    guard?: { minFill: number } | null;
  };
  run: {
    deadlineMs: number;
    maxCost: number | null;
    graceMs: number;
    minInstances: number;
    maxInstances: number;
    /** Maximum share of failed products before the exit code reports them. */
    maxFailed: number;
  };
  aws: {
    /** Where the bucket is; and the instances, unless `regions` says otherwise. */
    region: string;
    /** Where instances are launched, in order; never empty. Omitted: in `region` alone. */
    regions?: RegionSettings[];
    /** The endpoint; null for AWS itself. */
    endpoint: string | null;
    instanceTypes: string[];
    subnets: string[];
    securityGroups: string[];
    bucket: string;
    /** The root volume; omitted: as the image has it. */
    volume?: VolumeSettings;
    /** `AES256`, `aws:kms` or the ARN of a key; omitted: the bucket's default. */
    sse?: string;
    instanceProfile: string | null;
    image: string | null;
    /** Name or ARN of the user's own balancer; NO_BALANCER for none; null or omitted: the run creates one. */
    loadBalancer?: string | null;
    /** Scheme of the balancer that the run creates; `auto` when omitted. */
    balancerScheme?: 'auto' | 'internal' | 'internet-facing';
    /** The certificate of an HTTPS listener, with a name it is valid for; omitted: the listener speaks HTTP. */
    certificate?: { arn: string; name: string };
    /** Each address is rotated this often; null or omitted: never. */
    recycleEveryMs?: number | null;
    /** Instances run the SSM agent, for `orchestrator exec`; omitted: they do not. */
    commands?: true;
    /** The user's own tags, on everything that the run makes; omitted: none. */
    tags?: Record<string, string>;
    /** Value of the tag crawlfleet:owner; omitted in runs of earlier versions, whose owner was the host name. */
    owner?: string;
  };
  /**
   * Every grant is kept, and a result counts only if its product was granted to its instance at some time
   * (docs/decisions/0040-compromised-instances.md); omitted in runs of earlier versions.
   */
  grantsKept?: true;
  /**
   * Instances sign their parts: an unsigned one that is only found in the bucket is ignored. Omitted in runs of earlier
   * versions.
   */
  partsSigned?: true;
  /**
   * Each instance puts its objects into a folder of its role session, to which the policy of the role may bind it.
   * Omitted in runs of earlier versions, whose instances all keep the folders that the run began with.
   */
  roleSessions?: true;
  /** Due time of `orchestrator schedule` that the run was started for; omitted in runs by hand. */
  dueAtMs?: number;
  /** How to find a dry run's own sandbox again. */
  sandbox: {
    pid: number;
    controlToken: string;
    dataDir: string;
    /** Its own endpoint, when it only stands in for machines and balancer; omitted: it is `aws.endpoint`. */
    endpoint?: string;
  } | null;
  server: { callbackUrl: string; callbackListen: string };
}

/** Where a run may launch instances, as configured. */
export interface RegionSettings {
  region: string;
  subnets: string[];
  securityGroups: string[];
  image: string | null;
  /** Name or ARN of the user's own balancer; null: the run creates one. */
  loadBalancer: string | null;
  /** Maximum number of instances; earlier versions stored none. */
  maxInstances?: number;
}

/** `aws.load_balancer` of a run whose main server reaches the instances itself. */
export const NO_BALANCER = 'none';

/** The run's regions. The short form, `aws.region` alone, is a list of one. */
export function regionsOf(aws: RunSettings['aws']): NonEmpty<RegionSettings> {
  const { regions = [], region, subnets, securityGroups, image, loadBalancer = null } = aws;
  return isNonEmpty(regions) ? regions : [{ region, subnets, securityGroups, image, loadBalancer }];
}

/** Zones of a run's own balancer, unless subnets are named: ELBv2's minimum, as each has an address that is billed. */
export const BALANCER_ZONES = 2;

/**
 * Public IPv4 addresses of the balancer that a run creates: one per zone if it is internet-facing. `auto` counts as
 * internet-facing, because only the launch decides; each named subnet counts as a zone of its own.
 */
export function balancerAddresses({
  loadBalancer,
  balancerScheme = 'auto',
  subnets = [],
}: Partial<Pick<RunSettings['aws'], 'loadBalancer' | 'balancerScheme' | 'subnets'>>): number {
  if ((loadBalancer ?? null) !== null || balancerScheme === 'internal') return 0;
  return Math.max(BALANCER_ZONES, subnets.length);
}

/** What the price of a run depends on besides its plan. */
export const billingTerms = (settings: Pick<RunSettings, 'aws' | 'site'>): BillingTerms => ({
  ownBalancer: hasOwnBalancer(settings),
  ...(settings.aws.loadBalancer === NO_BALANCER ? { noBalancer: true as const } : {}),
  balancerAddresses: balancerAddresses(settings.aws),
  ...(settings.aws.volume?.sizeGb === undefined ? {} : { volumeGb: settings.aws.volume.sizeGb }),
  browser: settings.site.render === 'browser' || settings.site.render === 'auto',
});

/** True where the balancer is the user's own: the run creates and pays for none. */
const hasOwnBalancer = ({ aws }: Pick<RunSettings, 'aws'>): boolean => (aws.loadBalancer ?? null) !== null;

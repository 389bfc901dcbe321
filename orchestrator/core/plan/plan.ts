/** Input and output of planning. The sums are in plan-run.ts; nothing here does I/O. */
import type { DomainPace } from '../../../shared/domain/domains.ts';
import type { HostPace, OperatorPace } from './host-pace.ts';
import type { HostsPlan } from './host-sums.ts';
import type { Prices } from './price-table.ts';
import type { PlanRegion } from './spread.ts';

/** The parts of a run's configuration, besides region and types, that decide its bill. */
export interface BillingTerms {
  /** The load balancer is the user's own and paid for anyway; only its traffic counts. */
  ownBalancer?: boolean;
  /** There is none: the main server reaches the instances itself. */
  noBalancer?: true;
  /** Public IPv4 addresses of the load balancer: one per zone if it faces the internet. Omitted: none. */
  balancerAddresses?: number;
  /** Root volume of an instance, in GiB. Omitted: that of Amazon Linux's image. */
  volumeGb?: number;
  /** Instances run a browser, which may keep their processors busy. */
  browser?: boolean;
}

/** One of `site.hosts`, and how many products have their URL there. */
export interface HostShare {
  origin: string;
  products: number;
}

export interface PlanInput extends BillingTerms {
  /** Fresher prices than the shipped ones; null or omitted for none. */
  prices?: Prices | null;
  products: number;
  /** The time from the start of the run to the deadline. */
  deadlineMs: number;
  /** Start to start, per address and domain, as configured. */
  intervalMs: number;
  /** The domains of the shop; omitted: one. */
  domains?: readonly DomainPace[];
  /** Pages of an instance under way at the same time, each at another domain; omitted: one. */
  pagesAtOnce?: number;
  /** Products are records at many hosts: what a night does of them; omitted: all are at one site. */
  hosts?: HostsPlan;
  /** Average requests per product; at least 1. */
  pagesEach: number;
  memoryGb: number;
  /** Requests per second of the whole fleet; null for no ceiling. */
  maxRatePerSecond: number | null;
  /** The pace of each domain, with what it has asked for; omitted: the interval and the delays are all. */
  paces?: readonly HostPace[];
  /** What the operator of the last run asked for this plan, too; omitted: nothing. */
  operatorPace?: OperatorPace;
  /** Domains that banned an address lately: each address begins there as after a ban; omitted: none. */
  bannedLately?: readonly number[];
  /** Median time of a page, from earlier runs or a default. */
  pageP50Ms: number;
  bootP50Ms: number;
  bootP95Ms: number;
  /** The time from the last page of an instance to its rows in the result table. */
  tailMs: number;
  /** The time until the load balancer takes traffic, in parallel with the boot. */
  balancerMs: number;
  minInstances: number;
  maxInstances: number;
  /** The most that the run may cost, in USD; null for no cap. */
  maxCost: number | null;
  /** vCPUs a run may use; null when unknown. */
  vcpuQuota: number | null;
  /** Where that number comes from; null or omitted when it was not queried. */
  quota?: QuotaFacts | null;
  graceMs: number;
  /** How often each address rotates; null or omitted: never. */
  recycleEveryMs?: number | null;
  /** The region of the bucket; and of the instances, unless `regions` names others. */
  region: string;
  /** Where instances may be launched; omitted: in `region`, within `vcpuQuota`. */
  regions?: readonly PlanRegion[];
  /** Allowed types, in any order; planning takes the cheapest that fits an instance. */
  instanceTypes: string[];
}

/** The quota behind `vcpuQuota`. */
export interface QuotaFacts {
  /** AWS's quota code, such as L-1216C47A. */
  code: string;
  /** The account's quota, including running instances; null when unknown. */
  total: number | null;
  /** Running vCPUs that count against it; null when they could not be read. */
  inUse: number | null;
  source: 'aws.vcpu_quota' | 'service-quotas' | 'unknown';
}

export interface CostBreakdown {
  instances: number;
  /** Surplus CPU credits of T types in the worst case, all processors busy; omitted without a browser. */
  credits?: number;
  ipv4: number;
  ebs: number;
  /** The load balancer's started hours, its traffic, and its public addresses. */
  balancer: number;
  s3: number;
  /**
   * The traffic between regions: results to the bucket, the bundle from it; omitted for instances in the bucket's
   * region.
   */
  traffic?: number;
  total: number;
  currency: 'USD';
  /** Date of the price table, ISO. */
  pricesOf: string;
}

/** The cost of address rotation, included in capacity, end and price. */
export interface RotationPlan {
  everyMs: number;
  /** Rotations of the slot that has most of them. */
  each: number;
  /** Crawling time that one rotation costs a slot. */
  costMs: number;
}

/** What `products.recrawl` knows of the catalogue. */
export interface RecrawlPlan {
  listed: number;
  unseen: number;
  due: number;
  /** Due, and without room tonight; `byCategory` of them because of `max_share`. */
  carriedOver: { products: number; byCategory: number; dueSinceMs: number | null };
  /** What a night would take with which every product is crawled when it is due; null when no fleet can. */
  keepsFresh: { products: number; instances: number; cost: number } | null;
}

/** How far a discovery may grow beyond its plan as it finds URLs. */
export interface GrowthPlan {
  /** As many of `most` as fit within the limits of the run. */
  urls: number;
  /** `discover.pages`. */
  most: number;
  /** The fleet for that many, and its price in USD. */
  instances: number;
  cost: number;
}

/** The part of a fleet in one region. */
export interface RegionShare {
  region: string;
  instances: number;
  vcpus: number;
  /** vCPUs a run may use there; null when unknown. */
  vcpuQuota: number | null;
  /** Expected, in USD: instances, their addresses and volumes, the balancer, and the traffic between regions. */
  cost: number;
}

export type PlanVerdict = 'feasible' | 'infeasible' | 'over-quota' | 'over-budget' | 'too-few-products';

export interface Plan {
  products: number;
  instances: number;
  /** Maximum products per instance. */
  productsEach: number;
  chunkSize: number;
  chunks: number;
  /** Products one instance can crawl in the window. */
  capacityEach: number;
  /** Pages of one product, where the mapping finds further ones; omitted: it has one. */
  pages?: { mean: number; max: number };
  intervalMs: number;
  /** How many of the products each of `site.hosts` has; omitted without it. */
  hosts?: readonly HostShare[];
  /** What the night does of the list, where its records are at many hosts; omitted: it has one site. */
  manyHosts?: HostsPlan;
  /** The number of domains of a shop with several, and the share of the products that the busiest one has. */
  domains?: {
    count: number;
    busiestShare: number;
    /** Pages of an instance under way at the same time; omitted: one. */
    pages?: number;
  };
  /** The pace of each domain; omitted for one that has asked for nothing but the interval. */
  paces?: readonly HostPace[];
  /** What the operator of the last run asked for this one, too; omitted: nothing. */
  operatorPace?: OperatorPace;
  /** Domains that banned an address lately; omitted: none. */
  bannedLately?: readonly number[];
  /** Time per product: for each of its pages, interval plus margin, or the page time if that is longer. */
  paceMs: number;
  deadlineMs: number;
  /** The slow boot assumed by the plan. */
  bootP95Ms: number;
  rampMs: number;
  /** The median end, after the start of the run. */
  endP50Ms: number;
  endP95Ms: number;
  /** Share of runs that end by the deadline if no instance is lost, banned, slow or fails to boot. */
  onTimeProbability: number;
  /** products x interval / window: fewer instances cannot do it, however fast they boot. */
  lowerBoundInstances: number;
  instanceType: string;
  /** The regions that have instances, in the order of the configuration; omitted for a run of one region. */
  regions?: RegionShare[];
  vcpus: number;
  vcpuQuota: number | null;
  /** The account's quota; omitted when it was not queried. */
  quota?: QuotaFacts;
  cost: CostBreakdown;
  /** Public IPv4 addresses of the load balancers in that price; omitted: none. */
  balancerAddresses?: number;
  verdict: PlanVerdict;
  /** Why the verdict is not `feasible`, one sentence each; empty otherwise. */
  faults: string[];
  /** What is due and what is carried over; omitted when the whole list is crawled. */
  recrawl?: RecrawlPlan;
  /** How far a discovery may grow; null for one that cannot be done, omitted for a run that is no discovery. */
  growth?: GrowthPlan | null;
  /** The earliest end within the same limits, after the start; null when there is none or the plan is feasible. */
  earliestEndMs: number | null;
  /** What would make it feasible: `--deadline 6h`, `run.max_instances: 40` … */
  remedies: string[];
  /** Address rotations during the run, per `aws.recycle_every`; omitted without it. */
  /** The run has no load balancer: what that saves, in USD. */
  noBalancer?: { saves: number };
  renewals?: RotationPlan;
  /** The prices used, for the sums during and after the run; omitted for the shipped prices. */
  prices?: Prices;
  /** Warnings that do not block the run: duplicates, a long Crawl-delay … */
  warnings: string[];
}

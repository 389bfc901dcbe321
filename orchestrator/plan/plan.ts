/** What planning takes and gives. The sums are in plan-run.ts; nothing here touches the world. */
import type { PriceList } from './price-list.ts';

export interface PlanInput {
  /** Fresher prices than the shipped ones; null or left out for none. */
  prices?: PriceList | null;
  products: number;
  /** From the start of the run to the deadline. */
  deadlineMs: number;
  /** Start to start, per address, as configured. */
  intervalMs: number;
  /** Requests one product takes on average; at least 1. */
  pagesEach: number;
  /** What the type must hold. */
  memoryGb: number;
  /** Requests per second of the whole fleet; null for no ceiling. */
  maxRatePerSecond: number | null;
  /** Time of a page, from earlier runs or a default. */
  pageP50Ms: number;
  bootP50Ms: number;
  bootP95Ms: number;
  /** From the last page of an instance to its rows in the result table. */
  tailMs: number;
  /** Until the balancer takes traffic, beside the boot. */
  balancerMs: number;
  /** The balancer is the user's own: its hours are not the run's. */
  ownBalancer?: boolean;
  /** Its public IPv4 addresses; left out: none. */
  balancerAddresses?: number;
  /** Instances run a browser. */
  browser?: boolean;
  minInstances: number;
  maxInstances: number;
  /** In USD; null for no cap. */
  maxCost: number | null;
  /** What a run may have; null when unknown. */
  vcpuQuota: number | null;
  /** Where that number comes from; null or left out when nobody looked. */
  quota?: QuotaFacts | null;
  graceMs: number;
  /** Each address is rotated this often; null or left out: never. */
  recycleEveryMs?: number | null;
  region: string;
  /** Allowed types, in any order; the cheapest that can hold an instance is taken. */
  instanceTypes: string[];
}

/** The quota behind `vcpuQuota`. */
export interface QuotaFacts {
  /** AWS's code of it, such as L-1216C47A. */
  code: string;
  /** The account's quota, what runs included; null when unknown. */
  total: number | null;
  /** vCPUs that it counts and that run already; null when it could not be seen. */
  inUse: number | null;
  source: 'aws.vcpu_quota' | 'service-quotas' | 'unknown';
}

export interface CostBreakdown {
  instances: number;
  /** Surplus CPU credits of T types at their worst, all processors busy; left out without a browser. */
  credits?: number;
  ipv4: number;
  ebs: number;
  /** Its started hours, what it carries, and its public addresses. */
  balancer: number;
  s3: number;
  total: number;
  currency: 'USD';
  /** Date of the price table, ISO. */
  pricesOf: string;
}

/** What renewing addresses costs, reckoned into capacity, end and price. */
export interface RotationPlan {
  everyMs: number;
  /** Rotations of the slot that has most of them. */
  each: number;
  /** Crawling time that one of them costs a slot. */
  costMs: number;
}

export type PlanVerdict = 'feasible' | 'infeasible' | 'over-quota' | 'over-budget' | 'too-few-products';

export interface Plan {
  products: number;
  instances: number;
  /** Most products one instance gets. */
  productsEach: number;
  chunkSize: number;
  chunks: number;
  /** Products one instance can crawl in the window. */
  capacityEach: number;
  intervalMs: number;
  /** Interval plus margin, or the page time when that is longer, for each of its pages: what one product takes. */
  paceMs: number;
  deadlineMs: number;
  /** What was reckoned with for a boot on a bad day. */
  bootP95Ms: number;
  rampMs: number;
  /** After the start of the run. */
  endP50Ms: number;
  endP95Ms: number;
  /** Share of simulated runs that end by the deadline. */
  onTimeProbability: number;
  /** products x interval / window: fewer instances cannot do it, however fast they boot. */
  lowerBoundInstances: number;
  instanceType: string;
  vcpus: number;
  vcpuQuota: number | null;
  /** Left out when nobody looked at the account's. */
  quota?: QuotaFacts;
  cost: CostBreakdown;
  verdict: PlanVerdict;
  /** Why the verdict is not `feasible`, one sentence each; empty otherwise. */
  faults: string[];
  /** When the same limits could be met, after the start; null when never or when it is feasible. */
  earliestEndMs: number | null;
  /** What would make it feasible: `--deadline 6h`, `run.max_instances: 40` … */
  remedies: string[];
  /** Fresh addresses on the way, as `aws.recycle_every` asks; left out where it does not. */
  renewals?: RotationPlan;
  /** What it was priced with, for the sums during and after the run; left out for the shipped prices. */
  prices?: PriceList;
  /** Worth knowing, not in the way: duplicates, a long Crawl-delay … */
  warnings: string[];
}

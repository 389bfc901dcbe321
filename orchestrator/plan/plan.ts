/** What planning takes and gives. The sums are in plan-run.ts; nothing here touches the world. */

export interface PlanInput {
  products: number;
  /** From the start of the run to the deadline. */
  deadlineMs: number;
  /** Start to start, per address, as configured. */
  intervalMs: number;
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
  minInstances: number;
  maxInstances: number;
  /** In USD; null for no cap. */
  maxCost: number | null;
  /** Null when unknown. */
  vcpuQuota: number | null;
  graceMs: number;
  region: string;
  /** Allowed types, in any order; the cheapest that can hold an instance is taken. */
  instanceTypes: string[];
}

export interface CostBreakdown {
  instances: number;
  ipv4: number;
  ebs: number;
  balancer: number;
  s3: number;
  total: number;
  currency: 'USD';
  /** Date of the price table, ISO. */
  pricesOf: string;
}

export type PlanVerdict = 'feasible' | 'infeasible' | 'over-quota' | 'over-budget';

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
  /** Interval plus margin, or the page time when that is longer: what one product takes. */
  paceMs: number;
  deadlineMs: number;
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
  cost: CostBreakdown;
  verdict: PlanVerdict;
  /** Why the verdict is not `feasible`, one sentence each; empty otherwise. */
  faults: string[];
  /** When the same limits could be met, after the start; null when never or when it is feasible. */
  earliestEndMs: number | null;
  /** What would make it feasible: `--deadline 6h`, `run.max_instances: 40` … */
  remedies: string[];
  /** Worth knowing, not in the way: duplicates, a long Crawl-delay … */
  warnings: string[];
}

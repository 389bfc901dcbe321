/** What a fleet costs: before the run from the plan's sums, after it from what actually ran. */
import { limitsFor } from '../../../shared/domain/limits.ts';
import type { BillingTerms, CostBreakdown } from './plan.ts';
import { datePriced, hourlyPrice, type Prices, servicePrices } from './price-table.ts';
import { describeInstanceType } from './instance-types.ts';

const HOUR_MS = 3_600_000;
/** AWS's own figure for GB-months. */
const HOURS_PER_MONTH = 730;
const MIN_BILLED_MS = 60_000;
/** The root volume of Amazon Linux's standard image. */
const ROOT_VOLUME_GB = 8;
/**
 * Capacity units in use. Offers are a few small POSTs a second at most; one capacity unit is 25 new connections a
 * second.
 */
const LCU_USED = 0.02;

/** The Node and the program that each instance fetches from the bucket. */
const BUNDLE_GB = 0.05;
/** A product in a part, compressed, with the heartbeats for it. */
const PRODUCT_GB = 1e-6;

/** The billed hours: per second, at least a minute. */
export const billedHours = (lifeMs: number): number =>
  Math.max(MIN_BILLED_MS, Math.ceil(lifeMs / 1_000) * 1_000) / HOUR_MS;

export interface EstimateInput extends BillingTerms, S3Requests {
  region: string;
  /** The region of the bucket; omitted: the same. */
  bucketRegion?: string;
  /** The products crawled in this region. */
  products: number;
  /** Fresher prices than the shipped ones; null or omitted for none. */
  prices?: Prices | null;
  instanceType: string;
  instances: number;
  /** Mean life of an instance, launch to end. */
  lifeMs: number;
  /** Life of the load balancer; 0 for none. */
  balancerMs: number;
}

/** The price of a fleet that has not run yet. */
export function estimateCost(input: EstimateInput): CostBreakdown {
  const hours = input.instances * billedHours(input.lifeMs);
  return breakdown(input, {
    ...input,
    instances: hours * hourlyPrice(input.region, input.instanceType, input.prices).usd,
    credits: hours * surplusPerHour(input.instanceType),
    addressHours: hours,
    products: input.products,
    launched: input.instances,
  });
}

/** What a load balancer without traffic costs in a month; 0 where it is the user's own. */
export function balancerPerMonth(region: string, terms: BillingTerms, prices?: Prices | null): number {
  const { balancerHour, ipv4Hour } = servicePrices(region, prices);
  if (terms.ownBalancer || terms.noBalancer) return 0;
  return round(HOURS_PER_MONTH * (balancerHour + (terms.balancerAddresses ?? 0) * ipv4Hour));
}

/** What an instance costs in a month with its address and its volume, but without traffic. */
export function instancePerMonth(
  region: string,
  { volumeGb = ROOT_VOLUME_GB }: BillingTerms,
  prices: Prices | null,
  instanceType: string,
): number {
  const { ipv4Hour, gp3GbMonth } = servicePrices(region, prices);
  return round(HOURS_PER_MONTH * (hourlyPrice(region, instanceType, prices).usd + ipv4Hour) + volumeGb * gp3GbMonth);
}

export interface BilledInstance {
  /** The region of the instance; omitted: that of the input. */
  region?: string;
  instanceType: string;
  launchedAtMs: number;
  /** When it was terminated; now, if it still runs. */
  endedAtMs: number;
}

/** What a bill is made out by, besides the instances. */
export interface BillInput extends BillingTerms {
  /** The region of the bucket, and of instances that name none. */
  region: string;
  /** The prices of the plan. */
  prices?: Prices | null;
  /** A load balancer existed, possibly without any instance; omitted: when there are instances. */
  hadBalancer?: boolean;
  /** The load balancer lives as long as the run. */
  startedAtMs: number;
  finishedAtMs: number;
  products: number;
}

export interface ActualInput extends BillInput {
  instances: readonly BilledInstance[];
}

/** The price of what ran, at the same list prices; only AWS's bill is authoritative. */
export const actualCost = (input: ActualInput): CostBreakdown => new Bill(input).with(input.instances).cost();

/** What the instances of one region have used. */
interface Tally {
  usd: number;
  credits: number;
  hours: number;
  parts: number;
  launched: number;
}

/** The bill of what ran. Immutable; made out for a further instance without another look at those that are in it. */
export class Bill {
  readonly #input: BillInput;
  readonly #partMs: number;
  readonly #tallies: Map<string, Tally>;

  /** The bill of no instance; `regions` are billed for their load balancers. */
  constructor(input: BillInput, regions: Iterable<string> = []) {
    this.#input = input;
    this.#partMs = limitsFor(input.finishedAtMs - input.startedAtMs).partMs;
    this.#tallies = new Map([...regions].map((region) => [region, NOTHING_USED]));
  }

  /** The same bill with these instances. */
  with(instances: Iterable<BilledInstance>): Bill {
    const bill = new Bill(this.#input);
    for (const [region, tally] of this.#tallies) bill.#tallies.set(region, tally);
    for (const instance of instances) bill.#add(instance);
    return bill;
  }

  #add({ region = this.#input.region, instanceType, launchedAtMs, endedAtMs }: BilledInstance): void {
    const { usd, credits, hours, parts, launched } = this.#tallies.get(region) ?? NOTHING_USED;
    const more = billedHours(endedAtMs - launchedAtMs);
    this.#tallies.set(region, {
      usd: usd + more * hourlyPrice(region, instanceType, this.#input.prices).usd,
      credits: credits + more * surplusPerHour(instanceType),
      hours: hours + more,
      parts: parts + Math.ceil((endedAtMs - launchedAtMs) / this.#partMs),
      launched: launched + 1,
    });
  }

  cost(): CostBreakdown {
    const { region: bucketRegion, products, startedAtMs, finishedAtMs } = this.#input;
    const tallies = this.#tallies.size > 0 ? [...this.#tallies] : [[bucketRegion, NOTHING_USED] as const];
    const all = tallies.reduce((sum, [, { launched }]) => sum + launched, 0);
    const { hadBalancer = all > 0 } = this.#input;
    return sumOf(
      tallies.map(([region, { usd: instances, credits, hours: addressHours, parts, launched }]) => {
        const share = all === 0 ? 0 : Math.ceil((products * launched) / all);
        const balancerMs = hadBalancer ? finishedAtMs - startedAtMs : 0;
        const used = { instances, credits, addressHours, balancerMs, products: share, launched };
        const requests = requestsOf(launched, Math.min(share, parts));
        return breakdown({ ...this.#input, region, bucketRegion }, { ...used, ...requests });
      }),
    );
  }
}

const NOTHING_USED: Readonly<Tally> = { usd: 0, credits: 0, hours: 0, parts: 0, launched: 0 };

/** The costs of several regions as one, with the date of the oldest prices. */
export function sumOf(costs: readonly CostBreakdown[]): CostBreakdown {
  return costs.reduce((sum, cost) => ({
    ...sum,
    instances: round(sum.instances + cost.instances),
    ...(sum.credits === undefined ? {} : { credits: round(sum.credits + (cost.credits ?? 0)) }),
    ipv4: round(sum.ipv4 + cost.ipv4),
    ebs: round(sum.ebs + cost.ebs),
    balancer: round(sum.balancer + cost.balancer),
    s3: round(sum.s3 + cost.s3),
    traffic: round((sum.traffic ?? 0) + (cost.traffic ?? 0)),
    total: round(sum.total + cost.total),
    pricesOf: sum.pricesOf < cost.pricesOf ? sum.pricesOf : cost.pricesOf,
  }));
}

/**
 * S3 requests of a fleet: each instance writes its parts, the log of the requests with each, and a manifest, and reads
 * the bundle; the main server reads parts and manifests.
 */
export function requestsOf(instances: number, parts: number): S3Requests {
  return { s3Puts: 2 * parts + instances, s3Gets: parts + 2 * instances };
}

interface S3Requests {
  s3Puts: number;
  s3Gets: number;
}

interface Used extends S3Requests {
  instances: number;
  credits: number;
  addressHours: number;
  balancerMs: number;
  products: number;
  /** Instances that have fetched the bundle. */
  launched: number;
}

function breakdown(
  terms: BillingTerms & Pick<EstimateInput, 'region' | 'bucketRegion' | 'prices'>,
  used: Used,
): CostBreakdown {
  const { region, bucketRegion = region, prices: lists, volumeGb = ROOT_VOLUME_GB } = terms;
  const { ownBalancer = false, noBalancer = false, balancerAddresses = 0, browser = false } = terms;
  const prices = servicePrices(region, lists);
  const balancerMs = noBalancer ? 0 : used.balancerMs;
  const balancerAddressHours = ownBalancer || balancerMs === 0 ? 0 : balancerAddresses * billedHours(balancerMs);
  const parts = {
    instances: round(used.instances),
    // Fetching and parsing stay under the baseline of the smallest type.
    ...(browser ? { credits: round(used.credits) } : {}),
    ipv4: round(used.addressHours * prices.ipv4Hour),
    ebs: round((used.addressHours / HOURS_PER_MONTH) * volumeGb * prices.gp3GbMonth),
    // A started hour counts in full.
    balancer: round(
      Math.ceil(balancerMs / HOUR_MS) * ((ownBalancer ? 0 : prices.balancerHour) + LCU_USED * prices.lcuHour) +
        balancerAddressHours * prices.ipv4Hour,
    ),
    s3: round((used.s3Puts * prices.s3Put + used.s3Gets * prices.s3Get) / 1_000),
    ...(region === bucketRegion ? {} : { traffic: round(trafficCost(region, bucketRegion, used)) }),
  };
  const total = round(Object.values(parts).reduce((sum, usd) => sum + usd, 0));
  return { ...parts, total, currency: 'USD', pricesOf: datePriced(region, lists) };
}

/** Results go to the bucket's region, and the bundle comes from there. */
const trafficCost = (region: string, bucketRegion: string, { products, launched }: Used): number =>
  products * PRODUCT_GB * servicePrices(region).outGb + launched * BUNDLE_GB * servicePrices(bucketRegion).outGb;

/** Millionths of a dollar: precise enough for one request, and no tails of binary fractions in JSON. */
const round = (usd: number): number => Math.round(usd * 1e6) / 1e6;

/**
 * T types with unlimited credits, the launch default: a vCPU-hour beyond the baseline, Linux, the same in every region.
 * https://aws.amazon.com/ec2/pricing/on-demand/#T2.2FT3.2FT4g_Unlimited_Mode_Pricing
 */
const SURPLUS_VCPU_HOUR: Record<string, number> = { t3: 0.05, t3a: 0.05, t4g: 0.04 };
/**
 * Share of a vCPU included in the price:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/burstable-credits-baseline-concepts.html
 */
const BASELINE: Record<string, number> = { nano: 0.05, micro: 0.1, small: 0.2, medium: 0.2, large: 0.3, xlarge: 0.4 };

/** USD per hour on top of the instance's price when all its vCPUs are busy; 0 for types without credits. */
function surplusPerHour(instanceType: string): number {
  const [family = '', size = ''] = instanceType.split('.');
  const usd = SURPLUS_VCPU_HOUR[family];
  return usd === undefined ? 0 : usd * describeInstanceType(instanceType).vcpus * (1 - (BASELINE[size] ?? 0.4));
}

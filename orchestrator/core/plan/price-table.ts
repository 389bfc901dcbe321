/**
 * AWS's list prices as a table in the code: a plan must show its cost without credentials and without a network.
 * On-demand, Linux, USD. A price missing from the table is set high, with a warning, and never at zero.
 */

/**
 * Date of the price lists. T3, T4g and gp3 of us-east-1 were compared with published tables; the other regions were
 * written down without access to AWS and must be checked before money depends on them
 * (docs/decisions/0001-planning.md).
 */
export const PRICES_OF = '2025-06-01';

/**
 * Published at aws.amazon.com: /ec2/pricing/on-demand, /elasticloadbalancing/pricing, /ebs/pricing, /s3/pricing,
 * /vpc/pricing.
 */
interface RegionPrices {
  /** The price per hour of a nano; micro, small and medium cost two, four and eight times as much in every region. */
  t4gNano: number;
  t3Nano: number;
  /** The price per application load balancer and started hour. */
  balancerHour: number;
  lcuHour: number;
  gp3GbMonth: number;
  /** The price per 1,000 PUT, COPY, POST or LIST requests. */
  s3Put: number;
  /** The price per 1,000 GET requests. */
  s3Get: number;
  /** The price per GB from here to another region. */
  outGb: number;
}

// prettier-ignore
const REGIONS: Record<string, RegionPrices> = {
  'us-east-1':      { t4gNano: 0.0042, t3Nano: 0.0052, balancerHour: 0.0225, lcuHour: 0.008, gp3GbMonth: 0.08,   s3Put: 0.005,  s3Get: 0.0004, outGb: 0.02 },
  'us-west-2':      { t4gNano: 0.0042, t3Nano: 0.0052, balancerHour: 0.0225, lcuHour: 0.008, gp3GbMonth: 0.08,   s3Put: 0.005,  s3Get: 0.0004, outGb: 0.02 },
  'eu-west-1':      { t4gNano: 0.0046, t3Nano: 0.0057, balancerHour: 0.0252, lcuHour: 0.008, gp3GbMonth: 0.088,  s3Put: 0.005,  s3Get: 0.0004, outGb: 0.02 },
  'eu-central-1':   { t4gNano: 0.0048, t3Nano: 0.006,  balancerHour: 0.027,  lcuHour: 0.008, gp3GbMonth: 0.0952, s3Put: 0.0054, s3Get: 0.00043, outGb: 0.02 },
  'ap-northeast-1': { t4gNano: 0.0054, t3Nano: 0.0068, balancerHour: 0.0243, lcuHour: 0.008, gp3GbMonth: 0.096,  s3Put: 0.0047, s3Get: 0.00037, outGb: 0.09 },
  'ap-northeast-3': { t4gNano: 0.0054, t3Nano: 0.0068, balancerHour: 0.0243, lcuHour: 0.008, gp3GbMonth: 0.096,  s3Put: 0.0047, s3Get: 0.00037, outGb: 0.09 },
};

/** The same in every region: https://aws.amazon.com/blogs/aws/new-aws-public-ipv4-address-charge-public-ip-insights/ */
export const IPV4_HOUR = 0.005;

/** An unknown price is assumed to be this multiple of the highest known one. */
const UNKNOWN_FACTOR = 1.5;

const SIZE_FACTOR: Record<string, number> = { nano: 1, micro: 2, small: 4, medium: 8 };

export interface Price {
  usd: number;
  /** A warning when the figure is a guess. */
  warning: string | null;
}

/** USD per hour of an instance: from the region's list if it has the type, else from the table. */
export function hourlyPrice(region: string, instanceType: string, prices?: Prices | null): Price {
  const fetched = listOf(region, prices)?.hourly[instanceType];
  if (fetched !== undefined) return { usd: fetched, warning: null };
  const known = REGIONS[region];
  const listed = known ? listedPrice(known, instanceType) : null;
  if (listed !== null) return { usd: listed, warning: null };
  const elsewhere = Object.values(REGIONS).map((r) => listedPrice(r, instanceType) ?? guessBySize(r, instanceType));
  const usd = UNKNOWN_FACTOR * Math.max(...elsewhere);
  return {
    usd,
    warning: `The price of ${instanceType} in ${region} is not known here; $${usd.toFixed(4)} per hour is assumed.`,
  };
}

function listedPrice(region: RegionPrices, instanceType: string): number | null {
  const [family = '', size = ''] = instanceType.split('.');
  const factor = SIZE_FACTOR[size];
  if (factor === undefined) return null;
  if (family === 't4g') return region.t4gNano * factor;
  return family === 't3' ? region.t3Nano * factor : null;
}

/** Other families cost about twice a T3 of the same size; sizes above medium double from step to step. */
function guessBySize(region: RegionPrices, instanceType: string): number {
  const size = instanceType.split('.')[1] ?? '';
  const multiple = Number(/^(\d+)xlarge$/.exec(size)?.[1] ?? (size === 'xlarge' ? 1 : 0));
  const factor = multiple > 0 ? 32 * multiple : (SIZE_FACTOR[size] ?? 16);
  return 2 * region.t3Nano * factor;
}

export interface ServicePrices extends Omit<RegionPrices, 't4gNano' | 't3Nano'> {
  ipv4Hour: number;
  warning: string | null;
}

const guessed = (what: string): string =>
  `The ${what} are not known here; the dearest known ones are taken, times ${UNKNOWN_FACTOR}.`;

/** All prices except those of instances; from the region's list where it has them. */
export function servicePrices(region: string, prices?: Prices | null): ServicePrices {
  const { region: _, hourly: _hourly, of: _of, ...fetched } = listOf(region, prices) ?? { region, hourly: {}, of: '' };
  const table = tablePrices(region);
  const isComplete = SERVICES.every(([key]) => fetched[key] !== undefined);
  const warning =
    table.warning !== null && isComplete ? guessed(`prices of S3 and of traffic in ${region}`) : table.warning;
  return { ...table, ...fetched, warning };
}

/** Date of the prices used for a region. */
export const datePriced = (region: string, prices?: Prices | null): string => listOf(region, prices)?.of ?? PRICES_OF;

const listOf = (region: string, prices?: Prices | null): PriceList | undefined =>
  [prices ?? []].flat().find((list) => list.region === region);

/** Maximum factor between an API price and the shipped one: beyond it the API price was more likely misread. */
const MAX_FACTOR = 10;

/**
 * The plausible prices of the API: positive, finite, and within a factor of ten of the shipped ones. Every other one is
 * dropped with a warning.
 */
export function checkPrices(list: PriceList): { list: PriceList; warnings: string[] } {
  const { region, of } = list;
  const warnings: string[] = [];
  const isBelievable = (name: string, usd: number, known: number): boolean => {
    if (Number.isFinite(usd) && usd > 0 && usd <= known * MAX_FACTOR && usd >= known / MAX_FACTOR) return true;
    warnings.push(`The price API says $${usd} for ${name} in ${region}; the shipped price, $${known}, is used.`);
    return false;
  };
  const hourly = Object.entries(list.hourly).filter(([type, usd]) =>
    isBelievable(`an hour of ${type}`, usd, hourlyPrice(region, type).usd),
  );
  const checked: PriceList = { region, of, hourly: Object.fromEntries(hourly) };
  const shipped = tablePrices(region);
  for (const [key, name] of SERVICES) {
    const usd = list[key];
    if (usd !== undefined && isBelievable(name, usd, shipped[key])) checked[key] = usd;
  }
  return { list: checked, warnings };
}

const SERVICES = [
  ['ipv4Hour', 'an hour of a public IPv4 address'],
  ['gp3GbMonth', 'a GB-month of gp3'],
  ['balancerHour', 'an hour of a load balancer'],
  ['lcuHour', 'an hour of a capacity unit'],
] as const;

function tablePrices(region: string): ServicePrices {
  const dearest = (key: keyof RegionPrices): number =>
    UNKNOWN_FACTOR * Math.max(...Object.values(REGIONS).map((r) => r[key]));
  const known = REGIONS[region];
  const priceOf = (key: keyof RegionPrices): number => known?.[key] ?? dearest(key);
  return {
    ipv4Hour: IPV4_HOUR,
    balancerHour: priceOf('balancerHour'),
    lcuHour: priceOf('lcuHour'),
    gp3GbMonth: priceOf('gp3GbMonth'),
    s3Put: priceOf('s3Put'),
    s3Get: priceOf('s3Get'),
    outGb: priceOf('outGb'),
    warning: known ? null : guessed(`prices of ${region}`),
  };
}

/** One list per region. A single list is what earlier versions stored in the plan of a run. */
export type Prices = PriceList | readonly PriceList[];

/** Prices from the price API, on-demand, Linux, USD, all of one region; the shipped table fills every gap. */
export interface PriceList {
  region: string;
  /** When they were fetched, ISO date. */
  of: string;
  /** The price per hour, by instance type. */
  hourly: Record<string, number>;
  ipv4Hour?: number;
  gp3GbMonth?: number;
  balancerHour?: number;
  lcuHour?: number;
}

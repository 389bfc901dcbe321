/**
 * Queries AWS's price list for what a fleet costs. checkPrices validates the result.
 * https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
 */
import type { Pricing } from '@aws-sdk/client-pricing';
import { AppError } from '../../../shared/domain/errors.ts';
import { partitionOf } from '../../../shared/domain/partition.ts';
import type { PriceList } from '../plan/price-table.ts';
import { type AwsOptions, callOnce, lazyPricing, until } from './sdk-clients.ts';

/** The API is served in us-east-1, eu-central-1 and ap-south-1, for all regions. */
const API_REGION = 'us-east-1';

export interface PriceQuestion extends Pick<AwsOptions, 'credentials' | 'proxy'> {
  region: string;
  instanceTypes: readonly string[];
  nowMs: number;
  /** The endpoint; null for AWS. Tests name one. */
  endpoint: string | null;
  /** The time limit for all queries together. */
  timeoutMs: number;
}

/**
 * On-demand prices in USD. Throws when a query fails or an instance type cannot be priced; a service's price that does
 * not have the expected form is left out.
 */
export async function askPrices(question: PriceQuestion): Promise<PriceList> {
  const { region, endpoint, credentials, proxy, timeoutMs, nowMs } = question;
  const { name } = partitionOf(region);
  if (name !== 'aws' && endpoint === null)
    throw new AppError('aws-invalid', `it is not served for the keys of partition ${name}`);
  const options = {
    region: API_REGION,
    endpoint,
    proxy,
    timeoutMs,
    maxAttempts: 2,
    ...(credentials ? { credentials } : {}),
  };
  return callOnce(lazyPricing, options, 'GetProducts', async (pricing) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const ask = (query: Query): Promise<number | undefined> => findPrice(pricing, query, region, signal);
    const services = Promise.all(Object.entries(SERVICES).map(async ([key, q]) => [key, await ask(q)]));
    const hourly = Promise.all(
      question.instanceTypes.map(async (type) => {
        const usd = await ask(instanceQuery(type));
        if (usd === undefined) throw new AppError('aws-invalid', `the price API has no price of ${type} in ${region}`);
        return [type, usd] as const;
      }),
    );
    const all = Promise.all([hourly, services]);
    const [types, others] = await until(signal, `no prices within ${timeoutMs} ms`, all);
    return {
      region,
      of: new Date(nowMs).toISOString().slice(0, 10),
      hourly: Object.fromEntries(types),
      ...(Object.fromEntries(others.filter(([, usd]) => usd !== undefined)) as Partial<PriceList>),
    };
  });
}

interface Query {
  service: string;
  filters: Record<string, string>;
  unit: string;
  /** Suffix of the product's `usagetype`, which may begin with a region's short name. */
  usage: RegExp;
}

const instanceQuery = (instanceType: string): Query => ({
  service: 'AmazonEC2',
  filters: {
    instanceType,
    operatingSystem: 'Linux',
    tenancy: 'Shared',
    preInstalledSw: 'NA',
    capacitystatus: 'Used',
  },
  unit: 'Hrs',
  usage: /^([A-Z0-9]+-)?BoxUsage:/,
});

const SERVICES: Record<'ipv4Hour' | 'gp3GbMonth' | 'balancerHour' | 'lcuHour', Query> = {
  ipv4Hour: {
    service: 'AmazonVPC',
    filters: { group: 'VPCPublicIPv4Address' },
    unit: 'Hrs',
    usage: /^([A-Z0-9]+-)?PublicIPv4:InUseAddress$/,
  },
  gp3GbMonth: {
    service: 'AmazonEC2',
    filters: { productFamily: 'Storage', volumeApiName: 'gp3' },
    unit: 'GB-Mo',
    usage: /^([A-Z0-9]+-)?EBS:VolumeUsage\.gp3$/,
  },
  balancerHour: {
    service: 'AWSELB',
    filters: { productFamily: 'Load Balancer-Application' },
    unit: 'Hrs',
    usage: /^([A-Z0-9]+-)?LoadBalancerUsage$/,
  },
  lcuHour: {
    service: 'AWSELB',
    filters: { productFamily: 'Load Balancer-Application' },
    unit: 'LCU-Hrs',
    usage: /^([A-Z0-9]+-)?LCUUsage$/,
  },
};

/** The highest matching price: free tiers and special offers appear as further prices. */
async function findPrice(
  pricing: Pricing,
  query: Query,
  region: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const reply = await pricing.getProducts(
    {
      ServiceCode: query.service,
      Filters: Object.entries({ ...query.filters, regionCode: region }).map(([Field, Value]) => ({
        Type: 'TERM_MATCH' as const,
        Field,
        Value,
      })),
      MaxResults: 100,
    },
    { abortSignal: signal },
  );
  const prices = (reply.PriceList ?? []).flatMap((text: unknown) => pricesIn(JSON.parse(String(text)), query, region));
  return prices.length === 0 ? undefined : Math.max(...prices);
}

interface Offer {
  product?: { attributes?: Record<string, string> };
  terms?: { OnDemand?: Record<string, { priceDimensions?: Record<string, Dimension> }> };
}

interface Dimension {
  unit?: string;
  beginRange?: string;
  pricePerUnit?: { USD?: string };
}

function pricesIn(document: unknown, query: Query, region: string): number[] {
  const { product, terms } = document as Offer;
  const attributes = product?.attributes ?? {};
  // The filters are checked again: an endpoint that ignores one would return another machine's price.
  const fits =
    query.usage.test(attributes.usagetype ?? '') &&
    (attributes.regionCode ?? region) === region &&
    (query.filters.instanceType === undefined || attributes.instanceType === query.filters.instanceType);
  if (!fits) return [];
  return Object.values(terms?.OnDemand ?? {})
    .flatMap((term) => Object.values(term.priceDimensions ?? {}))
    .filter((d) => d.unit === query.unit && (d.beginRange ?? '0') === '0')
    .map((d) => Number(d.pricePerUnit?.USD))
    .filter((usd) => usd > 0);
}

/** Prices from the price API, used before the shipped table (price-table.ts), which fills every gap. */

/** On-demand, Linux, USD; all of one region. */
export interface PriceList {
  region: string;
  /** When they were fetched, ISO date. */
  of: string;
  /** Per hour, by instance type. */
  hourly: Record<string, number>;
  ipv4Hour?: number;
  gp3GbMonth?: number;
  balancerHour?: number;
  lcuHour?: number;
}

/** Maximum factor between an API price and the shipped one: beyond it the API price was more likely misread. */
const MAX_FACTOR = 10;

/**
 * The plausible prices: positive, finite, and within a factor of ten of the shipped ones. Every other one is dropped
 * with a warning.
 */
export function believablePrices(
  list: PriceList,
  shipped: { hourly: (type: string) => number } & Required<Omit<PriceList, 'region' | 'of' | 'hourly'>>,
): { list: PriceList; warnings: string[] } {
  const warnings: string[] = [];
  const believe = (name: string, usd: number | undefined, known: number): number | undefined => {
    if (usd === undefined) return undefined;
    if (Number.isFinite(usd) && usd > 0 && usd <= known * MAX_FACTOR && usd >= known / MAX_FACTOR) return usd;
    warnings.push(`The price API says $${usd} for ${name} in ${list.region}; the shipped price, $${known}, is used.`);
    return undefined;
  };
  const hourly: Record<string, number> = {};
  for (const [type, usd] of Object.entries(list.hourly)) {
    const price = believe(`an hour of ${type}`, usd, shipped.hourly(type));
    if (price !== undefined) hourly[type] = price;
  }
  const checked: PriceList = { region: list.region, of: list.of, hourly };
  const services = [
    ['ipv4Hour', 'an hour of a public IPv4 address'],
    ['gp3GbMonth', 'a GB-month of gp3'],
    ['balancerHour', 'an hour of a load balancer'],
    ['lcuHour', 'an hour of a capacity unit'],
  ] as const;
  for (const [key, name] of services) {
    const price = believe(name, list[key], shipped[key]);
    if (price !== undefined) checked[key] = price;
  }
  return { list: checked, warnings };
}

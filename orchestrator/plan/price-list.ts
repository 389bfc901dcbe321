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

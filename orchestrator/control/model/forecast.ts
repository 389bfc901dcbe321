/** When the fleet will be through, and what evening it out would move: worked out once a heartbeat. */

export interface WorkerEnd {
  slot: number;
  epoch: number;
  p50Ms: number;
  p95Ms: number;
}
/** Wall-clock moments; null when nobody is there who could crawl what is left. */

export interface EndForecast {
  p50Ms: number | null;
  p95Ms: number | null;
  workers: WorkerEnd[];
}
export interface Balance {
  /** Chunks that each slot is to give back. */
  give: ReadonlyMap<number, number>;
  /** Chunks that each slot would be given of those. */
  get: ReadonlyMap<number, number>;
  /** When the last one would be through without and with this. */
  endMs: number;
  evenEndMs: number;
}
export interface Forecast {
  atMs: number;
  end: EndForecast;
  balance: Balance;
  /** True when equal shares of what waits would leave somebody behind. */
  byTime: boolean;
}

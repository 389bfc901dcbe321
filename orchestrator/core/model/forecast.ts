/** When the fleet will finish, and which transfers would even it out: computed once per heartbeat. */

export interface WorkerEnd {
  slot: number;
  epoch: number;
  p50Ms: number;
  p95Ms: number;
}

/** Wall-clock times; null when no worker could crawl the open products. */
export interface EndForecast {
  p50Ms: number | null;
  p95Ms: number | null;
  workers: WorkerEnd[];
}

export interface Balance {
  /** Chunks that each slot has to return. */
  give: ReadonlyMap<number, number>;
  /** Chunks of those that each slot would receive. */
  get: ReadonlyMap<number, number>;
  /** When the last worker would finish without and with these transfers. */
  endMs: number;
  evenEndMs: number;
}

export interface Forecast {
  atMs: number;
  end: EndForecast;
  balance: Balance;
  /** True when equal shares of the waiting chunks would leave a worker behind. */
  byTime: boolean;
}

export interface LimitsByTime {
  /** Maximum chunks of each slot; slots that are not listed may take none. */
  maxChunks: ReadonlyMap<number, number>;
  /** Highest limit of the running slots with room; 0 when the waiting chunks are for instances still to come. */
  maxOfServing: number;
}

/** How much each slot may own. */
export interface ChunkLimits {
  /** The equal share. */
  equal: number;
  /** Takes precedence while shares are balanced by time. */
  byTime: LimitsByTime | null;
  /** Of many hosts takes precedence over both: maximum products of each slot; those not listed may take none. */
  maxProducts: ReadonlyMap<number, number> | null;
}

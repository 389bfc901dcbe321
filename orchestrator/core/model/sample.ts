/** The counters of a run at one moment: the points of its charts. All of them only grow, except where noted. */
export interface RunSample {
  atMs: number;
  stored: number;
  gone: number;
  failed: number;
  /** Products without an outcome that wait after a first try; samples of earlier versions have none. */
  waiting?: number;
  requests: number;
  /** Replies to the fleet by status; `timeout`, `network` … where there was none. */
  replies: Record<string, number>;
  /** Smallest gap of any address so far; null before a second request. */
  minGapMs: number | null;
  /** Instances that crawl at this moment. */
  crawling: number;
  /** Addresses with an open ban at this moment. */
  banned: number;
  /** When the crawl will probably end; null without an estimate. */
  endP50Ms: number | null;
  endP95Ms: number | null;
  /** Cost so far, in USD. */
  usd: number;
}

/** Time between two samples: at most 240 in the time of the run, at least one a minute. */
export const samplePauseMs = (windowMs: number): number => Math.min(60_000, Math.max(1_000, windowMs / 240));

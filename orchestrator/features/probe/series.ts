/**
 * Which series of requests a probe sends next, and when it ends. Pure.
 *
 *   an interval ──no ban──▶ the next shorter interval
 *   an interval ──ban──▶ the same interval, from another address ──ban──▶ the end
 *                                                               ──no ban──▶ the next shorter interval
 */

export interface ProbeLimits {
  /** Longest first. */
  intervalsMs: readonly number[];
  /** The requests of one series. */
  requests: number;
  /** Maximum requests of the whole probe. */
  budget: number;
  /** How often an address is tried again while it is banned. */
  retryEveryMs: number;
  /** How long the end of a ban is waited for. */
  maxBanMs: number;
}

/** Requests from one address at one interval. */
export interface Series {
  intervalMs: number;
  requests: number;
  /** What is left of the budget: redirects, canary pages and second tries come on top of `requests`. */
  maxRequests: number;
  /** True to wait for the end of a ban. */
  measuresBan: boolean;
}

export interface Ban {
  /** The rule by which the instance recognised it. */
  rule: string;
  /** Requests that the site answered before it. */
  afterRequests: number;
  /** Bounds of its length; null: it had not ended when the series did, or was not waited for. */
  minMs: number;
  maxMs: number | null;
}

export interface SeriesResult {
  intervalMs: number;
  /** The address; null when no instance came up. */
  address: string | null;
  /** All that were sent, refused ones and second tries too. */
  requests: number;
  ban: Ban | null;
  /** False when it was cut short of both a ban and its last request: it proves nothing. */
  isComplete: boolean;
}

/**
 * `banned`: two series ended in a ban. `finished`: no interval is left. `budget`: not enough for one more series.
 * `interrupted`: by the user. `cut-short`: a series had neither a ban nor all of its requests.
 */
export type ProbeEnd = 'banned' | 'finished' | 'budget' | 'interrupted' | 'cut-short';

export const sentBy = (results: readonly SeriesResult[]): number => results.reduce((sum, r) => sum + r.requests, 0);

export function nextSeries(limits: ProbeLimits, results: readonly SeriesResult[]): Series | ProbeEnd {
  const last = results.at(-1);
  if (last?.isComplete === false) return 'cut-short';
  const bans = results.filter((r) => r.ban !== null).length;
  if (bans > 1) return 'banned';
  const intervalMs = last?.ban ? last.intervalMs : limits.intervalsMs.find((ms) => ms < (last?.intervalMs ?? Infinity));
  if (intervalMs === undefined) return 'finished';
  const maxRequests = limits.budget - sentBy(results);
  if (maxRequests < limits.requests) return 'budget';
  // A second ban ends the probe: one address is enough to see how long a ban lasts.
  return { intervalMs, requests: limits.requests, maxRequests, measuresBan: bans === 0 };
}

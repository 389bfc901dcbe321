/** What the series of a probe prove, and the settings that follow. Pure. */
import { type Ban, type ProbeEnd, sentBy, type SeriesResult } from './series.ts';

/** How sure the bound on the ban rate is. */
export const CONFIDENCE = 0.95;

/** A cool-down below this is rounded up to seconds, a longer one to minutes. */
const COARSE_MS = 120_000;

export interface Findings {
  /** The series in the order in which they were sent. */
  series: SeriesResult[];
  requests: number;
  end: ProbeEnd;
  /** The shortest interval without a ban at it or at any longer one; null when there is none. */
  interval: {
    ms: number;
    /** Requests without a ban at this interval. */
    requests: number;
    /** Upper bound of the share of requests that lead to a ban, at CONFIDENCE. */
    maxBanRate: number;
    /** A shorter interval led to a ban, so the limit lies between the two. */
    isBounded: boolean;
  } | null;
  /** Long enough for the longest ban whose end was seen; null when none was. */
  coolDown: { ms: number; minMs: number; maxMs: number } | null;
}

export function findingsOf(series: readonly SeriesResult[], end: ProbeEnd): Findings {
  const proofs = series.filter((s) => s.isComplete && s.requests > 0);
  const longestBannedMs = Math.max(0, ...proofs.filter((s) => s.ban !== null).map((s) => s.intervalMs));
  const tolerated = proofs.filter((s) => s.intervalMs > longestBannedMs);
  const ms = Math.min(...tolerated.map((s) => s.intervalMs));
  const requests = sentBy(tolerated.filter((s) => s.intervalMs === ms));
  const interval =
    tolerated.length === 0 ? null : { ms, requests, maxBanRate: maxBanRate(requests), isBounded: longestBannedMs > 0 };
  return { series: [...series], requests: sentBy(series), end, interval, coolDown: coolDownOf(proofs) };
}

/**
 * The ban rate at which as many requests in a row as these go without a ban in 1 of 20 cases: 1 - 0.05^(1/n), by the
 * rule of three about 3/n. It takes each request to be as likely as any other to lead to a ban.
 */
export const maxBanRate = (requests: number): number => 1 - (1 - CONFIDENCE) ** (1 / requests);

function coolDownOf(series: readonly SeriesResult[]): Findings['coolDown'] {
  const ended = series.flatMap(({ ban }) => (ban !== null && hasEnded(ban) ? [ban] : []));
  const longest = ended.sort((a, b) => b.maxMs - a.maxMs)[0];
  if (longest === undefined) return null;
  const { minMs, maxMs } = longest;
  const stepMs = maxMs < COARSE_MS ? 1_000 : 60_000;
  return { ms: Math.ceil(maxMs / stepMs) * stepMs, minMs, maxMs };
}

const hasEnded = (ban: Ban): ban is Ban & { maxMs: number } => ban.maxMs !== null;

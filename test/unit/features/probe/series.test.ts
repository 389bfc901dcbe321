/** Which series a probe sends, when it ends, and what its series prove. */
import { describe, expect, it } from 'vitest';
import { findingsOf, maxBanRate } from '../../../../orchestrator/features/probe/findings.ts';
import {
  type Ban,
  nextSeries,
  type ProbeLimits,
  type SeriesResult,
} from '../../../../orchestrator/features/probe/series.ts';

const LIMITS: ProbeLimits = {
  intervalsMs: [30_000, 10_000, 5_000],
  requests: 200,
  budget: 1_000,
  retryEveryMs: 180_000,
  maxBanMs: 7_200_000,
};
const BAN: Ban = { rule: 'status-403', afterRequests: 60, minMs: 1_620_000, maxMs: 1_860_000 };
const NOT_MEASURED: Ban = { ...BAN, minMs: 0, maxMs: null };

const calm = (intervalMs: number, change: Partial<SeriesResult> = {}): SeriesResult => ({
  intervalMs,
  address: '192.0.2.1',
  requests: 200,
  ban: null,
  isComplete: true,
  ...change,
});
const banned = (intervalMs: number, ban = BAN): SeriesResult => calm(intervalMs, { requests: 62, ban });

describe('the next series', () => {
  it('is at the longest interval first, then at the next shorter one while there is no ban', () => {
    expect(nextSeries(LIMITS, [])).toEqual({
      intervalMs: 30_000,
      requests: 200,
      maxRequests: 1_000,
      measuresBan: true,
    });
    expect(nextSeries(LIMITS, [calm(30_000)])).toMatchObject({ intervalMs: 10_000, maxRequests: 800 });
  });

  it('repeats the interval of the first ban from another address, which is not tried until its ban ends', () => {
    const results = [calm(10_000), banned(5_000)];
    expect(nextSeries(LIMITS, results)).toMatchObject({ intervalMs: 5_000, measuresBan: false });
  });

  it('goes on after a ban that another address does not confirm', () => {
    const results = [banned(30_000), calm(30_000)];
    expect(nextSeries(LIMITS, results)).toMatchObject({ intervalMs: 10_000, measuresBan: false });
  });

  it.each<[string, Partial<ProbeLimits>, SeriesResult[]]>([
    ['banned', {}, [banned(10_000), banned(10_000, NOT_MEASURED)]],
    ['banned', {}, [banned(30_000), calm(30_000), banned(10_000)]],
    ['finished', {}, [calm(30_000), calm(10_000), calm(5_000)]],
    ['budget', { budget: 399 }, [calm(30_000)]],
    ['cut-short', {}, [calm(30_000, { requests: 7, isComplete: false })]],
  ])('is none: %s', (end, change, results) => {
    expect(nextSeries({ ...LIMITS, ...change }, results)).toBe(end);
  });
});

describe('the findings', () => {
  it('recommend the shortest interval without a ban at it or at a longer one', () => {
    const series = [calm(30_000), calm(10_000), banned(5_000), banned(5_000, NOT_MEASURED)];
    const { interval, coolDown, requests } = findingsOf(series, 'banned');
    expect(interval).toEqual({ ms: 10_000, requests: 200, maxBanRate: maxBanRate(200), isBounded: true });
    expect(coolDown).toEqual({ ms: 1_860_000, minMs: 1_620_000, maxMs: 1_860_000 });
    expect(requests).toBe(524);
  });

  it('recommend no interval that banned one of two addresses, and none shorter', () => {
    const series = [calm(30_000), banned(10_000), calm(10_000), calm(5_000)];
    expect(findingsOf(series, 'finished').interval?.ms).toBe(30_000);
    expect(findingsOf(series.slice(1), 'finished').interval).toBeNull();
  });

  it('count no series that was cut short', () => {
    const series = [calm(30_000), calm(10_000, { requests: 20, isComplete: false })];
    expect(findingsOf(series, 'interrupted').interval).toMatchObject({ ms: 30_000, isBounded: false });
  });

  it('recommend no cool-down when no ban was seen to end', () => {
    expect(findingsOf([banned(30_000, NOT_MEASURED)], 'interrupted').coolDown).toBeNull();
  });

  it('round a cool-down up: to seconds below two minutes, else to minutes', () => {
    const coolDownOf = (maxMs: number) => findingsOf([banned(1_000, { ...BAN, maxMs })], 'banned').coolDown?.ms;
    expect([1_200, 119_001, 120_001].map(coolDownOf)).toEqual([2_000, 120_000, 180_000]);
  });

  it('bound the ban rate by the rule of three', () => {
    expect(maxBanRate(200)).toBeCloseTo(3 / 200, 3);
    expect(maxBanRate(1)).toBeCloseTo(0.95);
  });
});

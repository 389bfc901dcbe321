import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  arrivalAllowanceMs,
  easedIntervalMs,
  easingMs,
  nextStartMs,
  paceMarginMs,
  plannedSpacingMs,
  restAfterBanMs,
} from '../../../shared/domain/pacing.ts';

describe('nextStartMs', () => {
  it.each([
    ['adds the margin to a fast reply', [1_000, 1_002, 2], 200, 1_205],
    ['counts from the first byte when that is later than the margin', [1_000, 1_012, 2], 200, 1_213],
    ['assumes that a page of usual speed arrived within the allowance', [1_000, 4_000, 2_950], 200, 1_301],
    ['counts the extra time over the fastest page as lateness', [1_000, 4_000, 2_600], 200, 1_606],
    ['counts from the end without other answers', [1_000, 4_000, 0], 200, 4_201],
    ['keeps one percent on long intervals', [0, 10, 8], 20_000, 20_200],
  ] as const)('%s', (_name, [startedMs, answeredMs, fastestMs], interval, next) => {
    expect(nextStartMs({ startedMs, answeredMs, fastestMs }, interval)).toBe(next);
  });

  const aRequest = fc.record({
    interval: fc.integer({ min: 10, max: 60_000 }),
    delay: fc.integer({ min: 0, max: 5_000 }),
    served: fc.integer({ min: 0, max: 5_000 }),
    fastest: fc.integer({ min: 0, max: 5_000 }),
  });

  it('keeps the interval between arrivals when the site is never faster than its fastest answer', () => {
    fc.assert(
      fc.property(aRequest, ({ interval, delay, served, fastest }) => {
        const answeredMs = delay + served;
        const next = nextStartMs({ startedMs: 0, answeredMs, fastestMs: Math.min(fastest, served) }, interval);
        expect(next - delay).toBeGreaterThanOrEqual(interval);
      }),
    );
  });

  it('keeps the interval between arrivals within the allowance, whatever the time of other answers', () => {
    fc.assert(
      fc.property(aRequest, ({ interval, delay, served, fastest }) => {
        const late = Math.min(delay, arrivalAllowanceMs(interval));
        const answeredMs = late + served;
        const next = nextStartMs({ startedMs: 0, answeredMs, fastestMs: Math.min(fastest, answeredMs) }, interval);
        expect(next - late).toBeGreaterThanOrEqual(interval);
        expect(next).toBeGreaterThanOrEqual(interval + paceMarginMs(interval));
      }),
    );
  });

  it('never waits longer than the interval plus the margin after the first byte', () => {
    fc.assert(
      fc.property(aRequest, ({ interval, delay, served, fastest }) => {
        const answeredMs = delay + served;
        const next = nextStartMs({ startedMs: 0, answeredMs, fastestMs: Math.min(fastest, answeredMs) }, interval);
        expect(next).toBeLessThanOrEqual(answeredMs + interval + Math.max(1, paceMarginMs(interval)));
      }),
    );
  });
});

describe('a ban', () => {
  const MINUTE_MS = 60_000;

  it.each([
    [1, 30],
    [2, 60],
    [5, 480],
    [7, 1_440],
    [2_000, 1_440],
  ])('number %i of an address rests it for %i minutes', (bans, minutes) => {
    expect(restAfterBanMs(30 * MINUTE_MS, bans)).toBe(minutes * MINUTE_MS);
  });

  it('never rests an address for less than the cool-down, however long that is', () => {
    expect(restAfterBanMs(2_880 * MINUTE_MS, 3)).toBe(2_880 * MINUTE_MS);
  });

  it.each([
    [0, 2_000],
    [19, 2_000],
    [20, 1_500],
    [40, 1_250],
    [139, 1_015.625],
    [140, 1_000],
  ])('leaves after %i right pages an interval of %f ms', (pages, intervalMs) => {
    expect(easedIntervalMs(1_000, pages)).toBe(intervalMs);
  });

  it('costs what the longer intervals add up to', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 400 }), (pages) => {
        let sum = 0;
        for (let page = 0; page < pages; page++) sum += easedIntervalMs(1_000, page) - 1_000;
        expect(easingMs(1_000, pages)).toBeCloseTo(sum, 6);
      }),
    );
  });
});

describe('plannedSpacingMs', () => {
  it('plans at most 3 % more for a page of 800 ms than for an instant one, at 10 s', () => {
    expect(plannedSpacingMs(10_000, 800) / plannedSpacingMs(10_000, 0)).toBeLessThanOrEqual(1.03);
    expect(plannedSpacingMs(10_000, 800)).toBe(10_206);
  });

  it('plans a fast site with its real spacing', () => {
    expect(plannedSpacingMs(200, 50)).toBe(251);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arrivalAllowanceMs, nextStartMs, paceMarginMs, plannedSpacingMs } from '../../../shared/domain/pacing.ts';

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

describe('plannedSpacingMs', () => {
  it('plans at most 3 % more for a page of 800 ms than for an instant one, at 10 s', () => {
    expect(plannedSpacingMs(10_000, 800) / plannedSpacingMs(10_000, 0)).toBeLessThanOrEqual(1.03);
    expect(plannedSpacingMs(10_000, 800)).toBe(10_206);
  });

  it('plans a fast site with its real spacing', () => {
    expect(plannedSpacingMs(200, 50)).toBe(251);
  });
});

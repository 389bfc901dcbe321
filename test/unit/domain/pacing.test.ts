import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arrivalAllowanceMs, nextStartMs, paceMarginMs } from '../../../shared/domain/pacing.ts';

describe('nextStartMs', () => {
  it.each([
    ['adds the margin to a quick reply', 1_000, 1_002, 200, 1_205],
    ['counts from the first byte when that is later than the margin', 1_000, 1_012, 200, 1_213],
    ['takes a slow page to have arrived within the allowance', 1_000, 4_000, 200, 1_301],
    ['takes a page without a reply to have arrived within the allowance', 1_000, null, 200, 1_301],
    ['keeps one percent on long intervals', 0, 10, 20_000, 20_200],
  ])('%s', (_name, started, firstByte, interval, next) => {
    expect(nextStartMs(started, firstByte, interval)).toBe(next);
  });

  it('never lets two arrivals come closer than the interval when the reply proves the first one', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 10, max: 60_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (interval, position) => {
          const firstByte = arrivalAllowanceMs(interval) * position;
          const arrivedAtLatest = firstByte;
          expect(nextStartMs(0, firstByte, interval) - arrivedAtLatest).toBeGreaterThanOrEqual(interval);
          expect(nextStartMs(0, firstByte, interval)).toBeGreaterThanOrEqual(interval + paceMarginMs(interval));
        },
      ),
    );
  });
});

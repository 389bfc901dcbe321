import { describe, expect, it } from 'vitest';
import { limitsFor } from '../../../shared/domain/limits.ts';

describe('the silence of a running instance', () => {
  it.each([
    ['45 s: a sixth of the run', 45_000, 7_500],
    ['60 s: a sixth of the run', 60_000, 10_000],
    ['two minutes', 120_000, 20_000],
    ['eight minutes: 20 s, where twelve heartbeats are 6 s', 480_000, 20_000],
    ['an hour: twelve heartbeats', 3_600_000, 45_000],
    ['four hours: twelve heartbeats', 14_400_000, 180_000],
  ])('%s', (_name, deadlineMs, lostMs) => {
    expect(limitsFor(deadlineMs).lostMs).toBe(lostMs);
  });
});

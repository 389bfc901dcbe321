import { expect, it } from 'vitest';
import { backoffMs } from '../../../shared/domain/backoff.ts';

const LIMITS = { firstMs: 100, maxMs: 1_000 };

it.each([
  [-1, 1, 100],
  [0, 1, 100],
  [3, 1, 800],
  [4, 1, 1_000],
  [5_000, 1, 1_000],
  [3, 0, 400],
  [3, 0.5, 600],
])('after %i failures, with random value %d: %i ms', (failures, random, ms) => {
  expect(backoffMs(failures, LIMITS, random)).toBe(ms);
});

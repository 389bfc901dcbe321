/** Exponential back-off with a ceiling: the one formula for every pause before another try. Pure. */

export interface BackoffLimits {
  firstMs: number;
  maxMs: number;
}

/**
 * firstMs · 2^failures, never above maxMs; `failures` counts from 0. `luck`, from 0 to 1, takes up to half of it away
 * as jitter, so that those who failed together do not try again together; without it the pause is exact.
 */
export function backoffMs(failures: number, { firstMs, maxMs }: BackoffLimits, luck = 1): number {
  const fullMs = Math.min(maxMs, firstMs * 2 ** Math.min(Math.max(0, failures), 30));
  return fullMs / 2 + (fullMs / 2) * luck;
}

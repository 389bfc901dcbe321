/** Exponential back-off with a ceiling: the formula for all pauses before a retry. Pure. */

export interface BackoffLimits {
  firstMs: number;
  maxMs: number;
}

/**
 * firstMs · 2^failures, never above maxMs; `failures` counts from 0. `random`, from 0 to 1, is jitter: it
 * removes up to half of the pause, so that callers that failed together do not retry together. Default: no jitter.
 */
export function backoffMs(failures: number, { firstMs, maxMs }: BackoffLimits, random = 1): number {
  const fullMs = Math.min(maxMs, firstMs * 2 ** Math.min(Math.max(0, failures), 30));
  return fullMs / 2 + (fullMs / 2) * random;
}

/** Exponential backoff with a ceiling, and with jitter so that a fleet does not retry in step. */
import type { Random } from '../../shared/ports/random.ts';

export interface BackoffLimits {
  firstMs: number;
  maxMs: number;
}

/** Between half and the whole of firstMs · 2^failures, never above maxMs. `failures` counts from 0. */
export function backoffMs(failures: number, limits: BackoffLimits, random: Random): number {
  const fullMs = Math.min(limits.maxMs, limits.firstMs * 2 ** Math.min(failures, 30));
  return fullMs / 2 + (fullMs / 2) * random.next();
}

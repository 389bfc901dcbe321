/** Keeps our calls under a rate that AWS enforces, instead of running into its throttling. */
import type { Clock } from '../../shared/ports/clock.ts';

/**
 * A bucket that holds `burst` calls and gets `perSecond` new ones. The returned function resolves when a call may be made;
 * callers are served in order.
 */
export function createTokenBucket(clock: Clock, burst: number, perSecond: number): () => Promise<void> {
  let nextFreeMs = -Infinity;
  const gapMs = 1_000 / perSecond;
  return async () => {
    const now = clock.monotonic();
    // The bucket is full when nobody has called for burst x gap.
    nextFreeMs = Math.max(nextFreeMs, now - (burst - 1) * gapMs);
    const waitMs = nextFreeMs - now;
    nextFreeMs += gapMs;
    if (waitMs > 0) await clock.sleep(waitMs);
  };
}

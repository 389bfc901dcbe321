/** Keeps our calls under a rate that AWS enforces, instead of running into its throttling. */
import type { Clock } from '../../../shared/ports/clock.ts';
import type { LaunchTurn } from '../model/core.ts';

/** The longest gap between two calls. */
const SLOWEST_MS = 8_000;
/** Each answer takes this much off a gap that throttling has made longer. */
const RECOVERY = 0.75;

/**
 * A bucket that holds `burst` calls and gets `perSecond` new ones; callers are served in order. Throttled, it is empty and fills
 * half as fast; others of the account use the same limit, so the full rate is won back slowly.
 */
export function createTokenBucket(clock: Clock, burst: number, perSecond: number): LaunchTurn {
  let nextFreeMs = -Infinity;
  const fullGapMs = 1_000 / perSecond;
  let gapMs = fullGapMs;
  const take = async (): Promise<void> => {
    const now = clock.monotonic();
    // The bucket is full when nobody has called for burst x gap. While AWS throttles there is no burst to be had.
    const saved = gapMs > fullGapMs ? 0 : burst - 1;
    nextFreeMs = Math.max(nextFreeMs, now - saved * gapMs);
    const waitMs = nextFreeMs - now;
    nextFreeMs += gapMs;
    if (waitMs > 0) await clock.sleep(waitMs);
  };
  return Object.assign(take, {
    throttled(): void {
      gapMs = Math.min(SLOWEST_MS, gapMs * 2);
      nextFreeMs = Math.max(nextFreeMs, clock.monotonic() + gapMs);
    },
    answered(): void {
      gapMs = Math.max(fullGapMs, gapMs * RECOVERY);
    },
  });
}

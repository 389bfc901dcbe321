/** The real clock. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../ports/clock.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    if (ms <= 0 || signal?.aborted) return;
    await delay(ms, undefined, signal ? { signal } : {}).catch(() => undefined);
  },
};

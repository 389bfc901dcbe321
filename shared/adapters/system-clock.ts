/** The real clock. */
import type { Clock } from '../ports/clock.ts';

/** A longer timer fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // By hand, because the one of timers/promises makes two errors for every sleep that is broken off: one for each page.
  sleep(ms, signal) {
    const endMs = performance.now() + ms;
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const wake = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const wait = (): void => {
        const leftMs = endMs - performance.now();
        if (leftMs > 0) timer = setTimeout(wait, Math.min(leftMs, MAX_TIMER_MS));
        else wake();
      };
      if (signal?.aborted) {
        resolve();
        return;
      }
      signal?.addEventListener('abort', wake, { once: true });
      wait();
    });
  },
};

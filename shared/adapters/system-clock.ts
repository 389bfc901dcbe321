/** The real clock. */
import type { Clock } from '../ports/clock.ts';

/** Node fires a longer timer at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // Hand-written, because the one of timers/promises creates two errors per aborted sleep, and each page aborts one.
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

/** No call to the browser is waited for without end: any of them may hang for ever. */
import type { Clock } from '../../../shared/ports/clock.ts';

/** Resolves as `promise`; rejects after `ms`. The promise itself continues; its result is ignored. */
export async function withTimeout<T>(clock: Clock, ms: number, what: string, promise: Promise<T>): Promise<T> {
  const done = new AbortController();
  // Whoever comes too late must not be an unhandled rejection.
  promise.catch(() => {});
  const late = clock.sleep(ms, done.signal).then((): never => {
    throw new Error(`${what} took more than ${ms} ms`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    done.abort();
  }
}

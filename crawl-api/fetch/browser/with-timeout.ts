/** A time limit for calls to the browser: any of them may hang. */
import type { Clock } from '../../../shared/ports/clock.ts';

/** Resolves as `promise`; rejects after `ms`. The promise itself continues; its result is ignored. */
export async function withTimeout<T>(clock: Clock, ms: number, what: string, promise: Promise<T>): Promise<T> {
  const done = new AbortController();
  // A rejection after the timeout must not count as unhandled.
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

/** Waits for an eventual result, without a fixed sleep. */
import { setTimeout as delay } from 'node:timers/promises';

const LIMIT_MS = 20_000;

/** The first value that is not null; at the time limit an error that names what is missing. */
export async function eventually<T>(what: string, look: () => Promise<T | null>, limitMs = LIMIT_MS): Promise<T> {
  const until = performance.now() + limitMs;
  while (performance.now() < until) {
    const value = await look();
    if (value !== null) return value;
    await delay(50);
  }
  throw new Error(`did not come in ${limitMs / 1_000} s: ${what}`);
}

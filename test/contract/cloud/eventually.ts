/** Waits for what comes by itself, without a fixed sleep. */
import { setTimeout as delay } from 'node:timers/promises';

/** The first value that is not null; an error that names what did not come after 20 s. */
export async function eventually<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const until = performance.now() + 20_000;
  while (performance.now() < until) {
    const value = await look();
    if (value !== null) return value;
    await delay(50);
  }
  throw new Error(`did not come in 20 s: ${what}`);
}

/** The system's random source, and a seeded one for plans and tests that must be reproducible. */
import type { Random } from '../ports/random.ts';

export const systemRandom: Random = { next: () => Math.random() };

/** mulberry32: 32 bits of state, good enough for Monte Carlo, the same on every machine. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
    },
  };
}

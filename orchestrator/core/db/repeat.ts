/** The pauses between the attempts at what a database refuses for a while. */
import { backoffMs } from '../../../shared/domain/backoff.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Random } from '../../../shared/ports/random.ts';

/** Half of it jitter: two transactions that collided must not collide again. */
const DELAYS = { firstMs: 20, maxMs: 2_000 };

interface Repetition {
  /** The time from the first attempt to the start of the last. */
  forMs: number;
  /** Whether the error may be gone at the next attempt; all others are thrown at once. */
  passes: (error: unknown) => boolean;
  /** Called before the first pause. */
  onWait?: (error: unknown) => void;
}

/** Repeats `work` with growing, jittered pauses. Throws its last error as it is. */
export async function repeat<T>(
  { clock, random }: { clock: Clock; random: Random },
  work: () => Promise<T>,
  { forMs, passes, onWait }: Repetition,
): Promise<T> {
  const startedMs = clock.monotonic();
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const delayMs = backoffMs(attempt, DELAYS, random.next());
      if (!passes(error) || clock.monotonic() - startedMs + delayMs > forMs) throw error;
      if (attempt === 0) onWait?.(error);
      await clock.sleep(delayMs);
    }
  }
}

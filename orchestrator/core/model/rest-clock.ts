/**
 * Keeps the rests of hosts right that are stored as moments, when the clock of this machine is set: each ends as much
 * later, or sooner. A machine that was asleep looks the same, and its rests take longer by that.
 */
import { isAnyHost } from '../../../shared/domain/domains.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { RunRecord, WorkStore } from './stores.ts';

/** Less is rounding: clocks are set in steps, and drift alike. */
const LEAST_MS = 50;

export class RestClock {
  /** The wall clock minus the monotonic one by which what is stored is right; null before the first look. */
  #offsetMs: number | null = null;
  #moving: Promise<void> | null = null;

  /**
   * To be called before anything that depends on a rest. Rejects where the store does, and is to be repeated then. In a
   * run of one site there are none.
   */
  async keep(
    { clock, work }: { clock: Clock; work: Pick<WorkStore, 'moveRests'> },
    { settings }: Pick<RunRecord, 'settings'>,
  ): Promise<void> {
    if (!isAnyHost(settings.site.productUrl)) return;
    const offsetMs = clock.now() - clock.monotonic();
    this.#offsetMs ??= offsetMs;
    const byMs = Math.round(offsetMs - this.#offsetMs);
    if (this.#moving === null && Math.abs(byMs) >= LEAST_MS)
      this.#moving = work
        .moveRests(byMs, clock.now() - byMs)
        .then(() => void (this.#offsetMs = offsetMs))
        .finally(() => (this.#moving = null));
    await this.#moving;
  }
}

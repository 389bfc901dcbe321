/** A wake-up signal with many senders and one waiter; a signal raised while nothing waits is kept. */
import type { Clock } from '../../shared/ports/clock.ts';

export class SignalFlag {
  #raised = false;
  #wake: (() => void) | null = null;

  raise(): void {
    this.#raised = true;
    this.#wake?.();
  }

  /** True at the next raise, or at one since the last wait; false after `ms` or on abort. */
  async wait(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#raised && !signal.aborted) {
      const timer = new AbortController();
      const onAbort = (): void => timer.abort();
      signal.addEventListener('abort', onAbort, { once: true });
      this.#wake = onAbort;
      await clock.sleep(ms, timer.signal);
      this.#wake = null;
      signal.removeEventListener('abort', onAbort);
    }
    const raised = this.#raised;
    this.#raised = false;
    return raised;
  }
}

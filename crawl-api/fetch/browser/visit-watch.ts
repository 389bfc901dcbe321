/** Watches a visit from outside: a page that keeps the browser busy cannot be asked how it is. */
import type { Clock } from '../../../shared/ports/clock.ts';

const WATCH_MS = 1_000;

/** Why a visit is not waited for any longer; `over` when it has ended by itself. */
export type VisitEnd = 'over' | 'stopped' | 'dead' | 'late' | 'too-large';

export interface WatchedVisit {
  clock: Clock;
  timeoutMs: number;
  memoryLimitBytes: number;
  session: { readonly dead: AbortSignal; memoryBytes(): number };
  /** The caller does not want the page any more. */
  stop: AbortSignal;
  /** The visit has ended. */
  over: AbortSignal;
}

/** Resolves at the first end there is. */
export async function watchVisit(visit: WatchedVisit): Promise<VisitEnd> {
  const { clock, timeoutMs, memoryLimitBytes, session, stop, over } = visit;
  const deadline = clock.monotonic() + timeoutMs;
  const wake = AbortSignal.any([stop, session.dead, over]);
  for (;;) {
    await clock.sleep(Math.min(WATCH_MS, Math.max(0, deadline - clock.monotonic())), wake);
    if (over.aborted) return 'over';
    if (stop.aborted) return 'stopped';
    if (session.dead.aborted) return 'dead';
    if (clock.monotonic() >= deadline) return 'late';
    if (session.memoryBytes() > memoryLimitBytes) return 'too-large';
  }
}

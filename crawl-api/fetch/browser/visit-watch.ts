/** Watches a visit from outside: a page that keeps the browser busy does not answer. */
import type { Clock } from '../../../shared/ports/clock.ts';

const WATCH_MS = 1_000;

/** Why a visit is no longer waited for; `over` when it has ended on its own. */
export type VisitEnd = 'over' | 'stopped' | 'dead' | 'late' | 'too-large';

export interface WatchedVisit {
  clock: Clock;
  timeoutMs: number;
  memoryLimitBytes: number;
  session: { readonly dead: AbortSignal; memoryBytes(): number };
  /** The caller no longer wants the page. */
  stop: AbortSignal;
  /** The visit has ended. */
  over: AbortSignal;
}

/** Resolves at the first of these ends. */
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

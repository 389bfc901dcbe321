/** Reasons why this address must not send any request, whatever is in the queue. */
import type { Queue } from './queue.ts';

/** `untilMs` (wall clock) is null when only an order ends the barrier. */
export interface Barrier {
  kind: 'incident' | 'pause' | 'robots' | 'disk';
  untilMs: number | null;
}

/** Null when requests may be sent, at the pace. */
export function findBarrier(queue: Queue, robots: 'respect' | 'ignore', nowMs: number): Barrier | null {
  const { incident, pausedUntilMs, robots: policy } = queue.state;
  if (incident) return { kind: 'incident', untilMs: incident.untilMs };
  if (pausedUntilMs > nowMs) return { kind: 'pause', untilMs: pausedUntilMs };
  if (robots === 'respect' && (policy === null || policy.access === 'none')) return { kind: 'robots', untilMs: null };
  return queue.hasRoom() ? null : { kind: 'disk', untilMs: nowMs + 1_000 };
}

/** What becomes of the due times that have passed since the schedule last looked. */

/** A daemon on a busy machine may look seconds late; that is not yet a missed due time. */
export const ON_TIME_MS = 60_000;

export interface DueTimes {
  /** The one to be started now; null when there is none, or it is too old. */
  due: number | null;
  /** Its delay, for the record; 0 when it is on time. */
  lateMs: number;
  /** Nobody was there for them, and they are not made up for. */
  missed: number[];
}

/**
 * Of several the newest alone may still be started: two crawls in a row for one night's delay would ask the site twice. It is,
 * when it is no older than `catchUpMs`.
 */
export function sortDueTimes(times: readonly number[], nowMs: number, catchUpMs: number): DueTimes {
  const newest = times.at(-1);
  if (newest === undefined) return { due: null, lateMs: 0, missed: [] };
  const lateMs = Math.max(0, nowMs - newest);
  if (lateMs > Math.max(ON_TIME_MS, catchUpMs)) return { due: null, lateMs: 0, missed: [...times] };
  return { due: newest, lateMs: lateMs > ON_TIME_MS ? lateMs : 0, missed: times.slice(0, -1) };
}

/**
 * When a schedule is due: a cron expression read in a time zone, by croner. A time that does not exist on the day the
 * clocks go forward is due at the first one after the gap, and one that comes twice in autumn is due once, so a daily
 * schedule is daily.
 */
import { Cron } from 'croner';

export type Timetable = ReturnType<typeof createTimetable>;

/** Throws an error of croner for an expression that it cannot read. */
export function createTimetable(cron: string, timezone: string) {
  // With no function to call it sets no timer. `no-wildcard`: also 0 2,14 * * * comes once when a clock hour comes
  // twice.
  const read = new Cron(cron.trim(), { timezone, fixedTimeRule: 'no-wildcard' });
  return {
    cron,
    timezone,
    /** The first due time after this moment; null when none comes any more. */
    next: (afterMs: number): number | null => read.nextRun(new Date(afterMs))?.getTime() ?? null,
    /** Due times after `fromMs` up to and with `toMs`, the newest `limit` of them, oldest first. */
    between(fromMs: number, toMs: number, limit: number): number[] {
      const times: number[] = [];
      // Back from the end, so that weeks of sleep cost no more than `limit` steps. The reference itself does not count.
      for (let before = toMs + 1; times.length < limit; before = times[0]!) {
        const [date] = read.previousRuns(1, new Date(before));
        if (!date || date.getTime() <= fromMs) break;
        times.unshift(date.getTime());
      }
      return times;
    },
  };
}

/**
 * When a schedule is due: a cron expression read in a time zone, by croner. A time that does not exist on the day the clocks go
 * forward is due at the first one after the gap, and one that comes twice in autumn is due once, so a daily schedule is daily.
 */
import { Cron } from 'croner';

export interface Timetable {
  cron: string;
  timezone: string;
  /** The first due time after this moment; null when none comes any more. */
  next(afterMs: number): number | null;
  /** Due times after `fromMs` up to and with `toMs`, the newest `limit` of them, oldest first. */
  between(fromMs: number, toMs: number, limit: number): number[];
}

/** Throws what findCronFault and findTimezoneFault tell of. */
export function createTimetable(cron: string, timezone: string): Timetable {
  const read = readCron(cron, timezone);
  return {
    cron,
    timezone,
    next: (afterMs) => read.nextRun(new Date(afterMs))?.getTime() ?? null,
    between: (fromMs, toMs, limit) => lookBack(read, fromMs, toMs, limit),
  };
}

/** What is wrong with a cron expression; null when nothing is. */
export function findCronFault(cron: string): string | null {
  try {
    const read = readCron(cron, 'UTC');
    // A single date that is past makes no other command fail: the file that names it stays readable.
    if (read.nextRun() === null && read.getOnce() === null) return `is never due: ${cron}`;
    return null;
  } catch (error) {
    const said = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    return `must be a cron expression such as 0 2 * * * (minute, hour, day, month, weekday): ${said}`;
  }
}

/** What is wrong with the name of a time zone; null when nothing is. */
export function findTimezoneFault(timezone: string): string | null {
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone });
    return null;
  } catch {
    return `must be a time zone such as Asia/Tokyo or UTC, not ${JSON.stringify(timezone)}`;
  }
}

/** `2026-11-22 02:00:00 Asia/Tokyo`: a due time as the people of that zone read it. */
export function showLocal(ms: number, timezone: string): string {
  const parts = new Intl.DateTimeFormat('en-CA', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  }).formatToParts(ms);
  const part = (type: string): string => parts.find((p) => p.type === type)?.value ?? '';
  const time = `${part('hour')}:${part('minute')}:${part('second')}`;
  return `${part('year')}-${part('month')}-${part('day')} ${time} ${timezone}`;
}

/** Step by step from the end, so that weeks of sleep cost no more than `limit` steps, and a rare time is not looked for in past centuries. */
function lookBack(read: Cron, fromMs: number, toMs: number, limit: number): number[] {
  const times: number[] = [];
  // The reference itself does not count, so it is one later.
  for (let before = toMs + 1; times.length < limit; before = times[0]!) {
    const [date] = read.previousRuns(1, new Date(before));
    if (!date || date.getTime() <= fromMs) break;
    times.unshift(date.getTime());
  }
  return times;
}

/** With no function to call croner sets no timer: it only counts. */
function readCron(cron: string, timezone: string): Cron {
  // `no-wildcard`: also 0 2,14 * * * comes once when a clock hour comes twice.
  return new Cron(cron.trim(), { timezone, fixedTimeRule: 'no-wildcard' });
}

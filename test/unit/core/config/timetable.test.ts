/** When a schedule is due: daily is daily, in every zone, on the days when the clocks change too. */
import { describe, expect, it } from 'vitest';
import { createTimetable } from '../../../../orchestrator/core/config/timetable.ts';
import { showLocal } from '../../../../shared/domain/local-time.ts';

const at = (iso: string): number => Date.parse(iso);
const iso = (ms: number): string => new Date(ms).toISOString();
const DAY = 86_400_000;

/** Every due time in a span, one after the other, as the daemon asks for them. */
function allBetween(cron: string, zone: string, from: number, to: number): number[] {
  const timetable = createTimetable(cron, zone);
  const times: number[] = [];
  for (let ms = timetable.next(from); ms !== null && ms <= to; ms = timetable.next(ms)) times.push(ms);
  return times;
}

describe('F53 a daily schedule', () => {
  const zones = ['Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'Australia/Lord_Howe', 'UTC'];
  const crons = ['0 2 * * *', '30 2 * * *', '30 1 * * *', '0 0 * * *', '0 3 * * *', '59 23 * * *'];

  it.each(zones.flatMap((zone) => crons.map((cron) => ({ zone, cron }))))(
    'is due once on every day of a leap year: $cron in $zone',
    ({ zone, cron }) => {
      const days = allBetween(cron, zone, at('2028-01-01T12:00:00Z'), at('2029-01-01T12:00:00Z')).map((ms) =>
        showLocal(ms, zone).slice(0, 10),
      );
      expect(new Set(days).size).toBe(days.length);
      expect(days).toHaveLength(366);
      expect(days).toContain('2028-02-29');
    },
  );

  it.each([
    ['a time that does not exist comes after the gap', 'Europe/Berlin', '2026-03-29T01:00:00.000Z'],
    ['the first of two', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
    ['a time that does not exist comes after the gap', 'America/New_York', '2026-03-08T07:00:00.000Z'],
    ['where the clocks never change', 'Asia/Tokyo', '2026-03-28T17:30:00.000Z'],
  ])('30 2 * * *: %s in %s', (_what, zone, due) => {
    expect(iso(createTimetable('30 2 * * *', zone).next(at(due) - 1)!)).toBe(due);
    expect(createTimetable('30 2 * * *', zone).next(at(due))! - at(due)).toBeGreaterThan(22 * 3_600_000);
  });

  it('with two times a day has two on the day an hour comes twice', () => {
    const times = allBetween('0 2,14 * * *', 'Europe/Berlin', at('2026-10-24T20:00:00Z'), at('2026-10-25T20:00:00Z'));
    expect(times.map(iso)).toEqual(['2026-10-25T00:00:00.000Z', '2026-10-25T13:00:00.000Z']);
  });

  it('that is hourly goes on hour by hour', () => {
    const times = allBetween('0 * * * *', 'Europe/Berlin', at('2026-10-24T20:30:00Z'), at('2026-10-25T20:30:00Z'));
    expect(times).toHaveLength(24);
  });
});

describe('looking back', () => {
  it.each(['0 2 * * *', '30 2 * * *', '0 2-3 * * *', '*/20 * * * *', '15 4 29 2 *'])(
    'finds what looking ahead finds: %s',
    (cron) => {
      for (const zone of ['Europe/Berlin', 'America/New_York', 'Asia/Tokyo'])
        for (const day of ['2026-03-08', '2026-03-29', '2026-10-25', '2026-11-01', '2028-02-28']) {
          const [from, to] = [at(`${day}T00:00:00Z`) - DAY / 4, at(`${day}T00:00:00Z`) + DAY];
          expect(createTimetable(cron, zone).between(from, to, 10_000)).toEqual(allBetween(cron, zone, from, to));
        }
    },
  );

  it('counts the end and not the beginning, and gives the newest ones', () => {
    const timetable = createTimetable('0 2 * * *', 'UTC');
    const [from, to] = [at('2026-11-01T02:00:00Z'), at('2026-11-21T02:00:00Z')];
    expect(timetable.between(from, to, 2).map(iso)).toEqual(['2026-11-20T02:00:00.000Z', '2026-11-21T02:00:00.000Z']);
    expect(timetable.between(from, to, 100)).toHaveLength(20);
    expect(timetable.between(to, to, 100)).toEqual([]);
    expect(timetable.between(to, from, 100)).toEqual([]);
  });
});

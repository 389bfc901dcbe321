/** The gaps between the requests of an address, from the lines of its request logs. */
import { describe, expect, it } from 'vitest';
import { type Gap, Gaps } from '../../../orchestrator/core/verify/gaps.ts';
import { readLine, writeLine } from '../../../shared/wire/request-log.ts';

const FLOOR_MS = 1_000;
const at = (second: number): string => new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString();
const HOST = 'host 0 0 shop.example';

/** The gaps of logs of instances with one address, each a list of objects. */
function gapsOf(...instances: string[][]): Gap[] {
  const found: Gap[] = [];
  const gaps = new Gaps({ floorMs: FLOOR_MS, domains: 2 }, (gap) => found.push(gap));
  for (const objects of instances) {
    gaps.beginInstance();
    for (const object of objects) {
      gaps.beginObject();
      for (const line of object.split('\n')) gaps.take(readLine(line.trim()));
    }
  }
  gaps.end();
  return found;
}

const lines = (...all: string[]): string => all.join('\n');
const inShort = ({ ms, offMs, intervalMs }: Gap): number[] => [ms, Math.round(offMs), intervalMs];

describe('gaps', () => {
  it('of one process are exact, also over objects, and by domain', () => {
    const first = lines(
      `process 0 ${at(0)}`,
      HOST,
      '> 0 0 p',
      '< 40 0 200',
      'host 1 1 other.example',
      '> 10 1 p',
      '> 1500 0 p',
    );
    const second = lines(
      `process 0 ${at(0)}`,
      'host 0 1 other.example',
      '> 1100 0 f',
      'host 1 0 shop.example',
      '> 2400 1 p',
    );
    const found = gapsOf([first, second]);
    expect(found.map(inShort)).toEqual([
      [1_500, 0, FLOOR_MS],
      [1_090, 0, FLOOR_MS],
      [900, 0, FLOOR_MS],
    ]);
    expect(found.map(({ host }) => host)).toEqual(['shop.example', 'other.example', 'shop.example']);
  });

  it('of a domain count at whichever of its hosts a request went', () => {
    const text = lines(`process 0 ${at(0)}`, HOST, '> 0 0 p', 'host 1 0 reviews.example', '> 400 1 f');
    expect(gapsOf([text]).map(inShort)).toEqual([[400, 0, FLOOR_MS]]);
  });

  it('are due at the interval in force, a request that had its turn before a change at the shorter one', () => {
    const pace = (ms: number): string => `pace 0 ${ms}`;
    const text = lines(
      `process 0 ${at(0)}`,
      HOST,
      pace(2_000),
      '> 0 0 p',
      '> 2000 0 p',
      pace(5_000),
      '> 4000 0 p',
      '> 9000 0 p',
      pace(3_000),
      '> 12000 0 p',
      '> 15000 0 p',
    );
    const due = gapsOf([text, lines(`process 0 ${at(0)}`, HOST, pace(3_000), '> 18000 0 p')]).map(
      (gap) => gap.intervalMs,
    );
    expect(due).toEqual([2_000, 2_000, 5_000, 3_000, 3_000, 3_000]);
  });

  it('are never due at less than the interval of the run', () => {
    const text = lines(`process 0 ${at(0)}`, HOST, 'pace 0 10', '> 0 0 p', '> 100 0 p');
    expect(gapsOf([text]).map(inShort)).toEqual([[100, 0, FLOOR_MS]]);
  });

  it('of two processes are by the main server’s clock, whatever those of the processes showed', () => {
    // The second process has a clock that is an hour ahead.
    const first = [`process 0 ${at(0)}`, HOST, 'clock 0 200 20', '> 1000 0 p'];
    const second = [`process 1 ${at(3_600 + 2)}`, '> 500 0 p', 'clock 600 -3600000 10'];
    const [gap, ...more] = gapsOf([lines(...first, ...second)]);
    expect([gap!.ms, more]).toEqual([1_300, []]);
    // Half of both round trips, what clocks may drift, and whole milliseconds.
    expect(gap!.offMs).toBeCloseTo(10 + 5 + 0.5 + 0.05 + 2, 5);
  });

  it('of two processes with one number are those of two: a damaged journal has forgotten the first', () => {
    const lost = lines(`process 1 ${at(0)}`, HOST, '> 5000 0 p');
    const again = lines(`process 1 ${at(4)}`, HOST, '> 2000 0 p');
    expect(gapsOf([lost, again]).map(({ offMs }) => offMs)).toEqual([Infinity]);
  });

  it('of two processes are open where a clock is not known', () => {
    const [gap] = gapsOf([lines(`process 0 ${at(0)}`, HOST, '> 1000 0 p', `process 1 ${at(9)}`, '> 500 0 p')]);
    expect(gap!.offMs).toBe(Infinity);
  });

  it('of two instances at one address are compared, too', () => {
    const of = (second: number): string => lines(`process 0 ${at(second)}`, HOST, 'clock 0 0 0', '> 0 0 p');
    expect(gapsOf([of(0)], [of(30)]).map(inShort)).toEqual([[30_000, 2, FLOOR_MS]]);
    expect(gapsOf([of(30)], [of(0)]).map(inShort)).toEqual([[-30_000, 2, FLOOR_MS]]);
  });

  it.each([
    ['a request without a process', '> 1 0 p'],
    ['a request to a host without a name', lines(`process 0 ${at(0)}`, '> 1 0 p')],
    ['a clock without a process', 'clock 1 2 3'],
  ])('cannot come from %s', (_what, text) => {
    expect(() => gapsOf([text])).toThrow(/before its process/);
  });

  it.each(['host 0 2 other.example', 'host 0 -1 x', 'host 0 0.5 x', 'pace 7 1000'])(
    'are of no other domain: %s',
    (line) => {
      expect(() => gapsOf([lines(`process 0 ${at(0)}`, line)])).toThrow(/the site has no domain/);
    },
  );
});

describe('a line of a request log', () => {
  it.each([
    'process 1 2026-11-28T01:02:03.456Z',
    'clock -5 35 12',
    'host 3 1 shop.example:8080',
    'pace 0 1500.5',
    '> 62003 0 pb',
    '< 62350 0 timeout',
  ])('is read as it was written: %s', (text) => {
    expect(writeLine(readLine(text))).toBe(text);
  });

  it.each(['', '>', '> x 0 p', '> 1 0 p more', 'process 0 yesterday', '{"n":1}', 'clock 1 2', '> 1e300 0 p'])(
    'is not: %j',
    (text) => {
      expect(() => readLine(text)).toThrow(/no line of a request log/);
    },
  );
});

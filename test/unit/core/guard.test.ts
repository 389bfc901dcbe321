import { describe, expect, it } from 'vitest';
import type { FillRates } from '../../../orchestrator/core/model/report.ts';
import { aRun } from './builders.ts';
import { findSuspicion, mayStoreNothing, storedShare } from '../../../orchestrator/core/decide/end/guard.ts';

const run = (stored: number, fields: FillRates['fields'] = {}): FillRates => ({ stored, fields });

describe('storedShare', () => {
  const outcomes = { stored: 60, gone: 10, failed: 30, reasons: {} };

  it('is the stored share of the crawled products', () => {
    expect(storedShare({ ...outcomes, reasons: { parse: 30 } })).toBe(0.6);
  });

  it.each(['deadline', 'cancelled', 'lost-instance', 'budget', 'banned', 'upload', 'robots', 'site-changed'] as const)(
    'excludes products that were not crawled (%s), which are no evidence about the site',
    (reason) => {
      expect(storedShare({ stored: 30, gone: 10, failed: 60, reasons: { [reason]: 50, parse: 10 } })).toBe(0.6);
    },
  );

  it('is unknown when nothing was crawled', () => {
    expect(storedShare({ stored: 0, gone: 0, failed: 5, reasons: { deadline: 5 } })).toBeNull();
  });
});

describe('findSuspicion', () => {
  it('accepts the first run of a table, whatever its results', () => {
    expect(findSuspicion(run(0), [], 0.5)).toBeNull();
  });

  it.each<[string, FillRates, FillRates[], string | null]>([
    ['as full as before', run(0.9, { title: 1 }), [run(0.95, { title: 1 })], null],
    ['exactly at the share', run(0.5, { title: 0.5 }), [run(1, { title: 1 })], null],
    ['fewer products stored', run(0.4, { title: 1 }), [run(1, { title: 1 })], 'products stored 40 % (before: 100 %)'],
    [
      'one field emptier',
      run(1, { title: 1, price: 0.1 }),
      [run(1, { title: 1, price: 0.8 })],
      'field price filled 10 % (before: 80 %)',
    ],
    ['a field that was always rare', run(1, { note: 0.02 }), [run(1, { note: 0.03 })], null],
    ['a new field', run(1, { title: 1, brand: 0 }), [run(1, { title: 1 })], null],
    ['nothing stored, unlike earlier runs', run(0), [run(0.01)], 'products stored 0 % (before: 1 %)'],
    ['nothing stored, as in earlier runs', run(0), [run(0)], null],
    ['judged by the mean', run(0.4), [run(1), run(0.5), run(0.6)], null],
    ['judged by the mean, below', run(0.34), [run(1), run(0.5), run(0.6)], 'products stored 34 % (before: 70 %)'],
  ])('F35: %s', (_what, now, earlier, expected) => {
    const found = findSuspicion(now, earlier, 0.5);
    if (expected === null) expect(found).toBeNull();
    else expect(found).toContain(expected);
  });

  it('checks only the fields of a retry, because its products have failed before', () => {
    expect(findSuspicion(run(0, { title: 1 }), [run(1, { title: 1 })], 0.5, true)).toBeNull();
    expect(findSuspicion(run(1, { title: 0 }), [run(1, { title: 1 })], 0.5, true)).toContain('field title');
  });

  it('names every fault and the number of runs', () => {
    const text = findSuspicion(run(0.1, { a: 0, b: 0.9 }), [run(1, { a: 1, b: 1 }), run(1, { a: 1, b: 1 })], 0.5)!;
    expect(text).toContain('the last 2 completed runs');
    expect(text).toMatch(/products stored 10 %.*field a filled 0 %/);
    expect(text).not.toContain('field b');
  });
});

describe('a small night', () => {
  const listed = { key: 'k', usual: null, accepted: false };
  const counts = { stored: 1, gone: 60, failed: 38 };
  it.each([
    ['of what is due of a list', { ...listed, length: 5_000 }, counts, true],
    ['of a hundred', { ...listed, length: 5_000 }, { ...counts, stored: 2 }, false],
    ['of a whole list', listed, counts, false],
    ['of other products', undefined, counts, false],
  ])('%s', (_what, list, outcomes, expected) => {
    const run = aRun();
    const settings = { ...run.settings, ...(list === undefined ? {} : { list }) };
    expect(mayStoreNothing({ parentId: null, settings }, outcomes)).toBe(expected);
  });

  it('is one of a discovery with few new products', () => {
    const settings = { ...aRun().settings, discover: { pages: 1_000 } as never };
    expect(mayStoreNothing({ parentId: null, settings }, counts)).toBe(true);
    expect(mayStoreNothing({ parentId: null, settings }, { ...counts, stored: 2 })).toBe(false);
  });

  it('is a retry, too, however many it has', () => {
    expect(mayStoreNothing({ parentId: 'r1', settings: aRun().settings }, { stored: 0, gone: 500, failed: 0 })).toBe(
      true,
    );
  });
});

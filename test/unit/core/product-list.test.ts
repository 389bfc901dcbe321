import { describe, expect, it } from 'vitest';
import { dropOf, findListFaults, listKeyOf, usualLength } from '../../../orchestrator/core/decide/end/product-list.ts';

const run = (products: number, accepted = false) => ({ products, accepted });
const LIMITS = { minRows: 1, maxDrop: 0.5 };
const faultsOf = (products: number, usual: number | null, more = {}, accepted = false) =>
  findListFaults(products, { usual, accepted }, { ...LIMITS, ...more });

describe('the usual length of a list', () => {
  it.each([
    ['is unknown without an earlier run', [], null],
    ['is that of a single earlier run', [run(60)], 60],
    ['is the mean of the last five', [10, 20, 30, 40, 50, 9_999].map((n) => run(n)), 30],
    ['starts at the last run whose length was accepted', [run(20), run(30, true), run(300), run(300)], 25],
    ['is that of the accepted run immediately after it', [run(20, true), run(300)], 20],
    ['includes an empty list that was allowed', [run(0), run(30)], 15],
  ])('%s', (_what, earlier, usual) => {
    expect(usualLength(earlier)).toBe(usual);
  });
});

describe('a product list', () => {
  it.each([
    ['is long enough without an earlier list', 1, null, 0],
    ['may be shorter by exactly max_drop', 50, 100, 0],
    ['may not be shorter by more than max_drop', 49, 100, 1],
    ['may be longer', 9_999, 100, 0],
    ['may not be empty', 0, null, 1],
    ['has both faults when it is newly empty', 0, 100, 2],
  ])('%s', (_what, products, usual, faults) => {
    expect(faultsOf(products, usual).faults).toHaveLength(faults);
  });

  it.each([0.1, 0.29, 0.3, 0.7])('is judged without rounding errors at a limit of %d', (maxDrop) => {
    for (let usual = 100; usual <= 1_000; usual += 100)
      expect(faultsOf(Math.round(usual * (1 - maxDrop)), usual, { maxDrop }).faults).toEqual([]);
  });

  it('reports both numbers, the limit and the remedy', () => {
    expect(faultsOf(20, 303)).toEqual({
      faults: [
        'products.query yields 20 products, 93.4 % fewer than the usual 303 (mean of the last whole runs, at most 5); products.max_drop is 50 %',
      ],
      remedies: ['--accept-drop'],
    });
    expect(faultsOf(0, null)).toEqual({
      faults: ['products.query yields no product; products.min_rows is 1'],
      remedies: ['products.min_rows: 0'],
    });
  });

  it('passes when its drop is accepted or max_drop is off, but min_rows still applies', () => {
    expect(faultsOf(3, 300, {}, true).faults).toEqual([]);
    expect(faultsOf(3, 300, { maxDrop: null }).faults).toEqual([]);
    expect(faultsOf(3, 300, { minRows: 5 }, true).remedies).toEqual(['products.min_rows: 3']);
    expect(faultsOf(0, null, { minRows: 0 }).faults).toEqual([]);
  });

  it('is identified by its query and site, not by the page', () => {
    const key = listKeyOf('select 1 as id', 'https://shop.example/item/{id}');
    expect(listKeyOf(' select 1 as id\n', 'https://shop.example/p/{id}?x=1')).toBe(key);
    expect(listKeyOf('select 2 as id', 'https://shop.example/item/{id}')).not.toBe(key);
    expect(listKeyOf('select 1 as id', 'https://other.example/item/{id}')).not.toBe(key);
  });

  it('has not dropped at its usual length', () => {
    expect(dropOf(5, 5)).toBeNull();
    expect(dropOf(5, null)).toBeNull();
  });
});

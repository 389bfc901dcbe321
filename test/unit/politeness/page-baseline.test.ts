import { describe, expect, it } from 'vitest';
import { PageBaseline } from '../../../crawl-api/politeness/page-baseline.ts';
import type { Row } from '../../../shared/domain/mapping.ts';

const rows = (row: Row) => [{ key: null, row }];
const full: Row = { title: 'a', price: 1, brand: 'b', tags: ['x'] };

function after(pages: number, row: Row = full): PageBaseline {
  const baseline = new PageBaseline();
  for (let i = 0; i < pages; i++) baseline.note(rows(row));
  return baseline;
}

describe('PageBaseline', () => {
  it.each<[string, Row, boolean]>([
    ['nothing missing', full, false],
    ['one of four missing', { ...full, brand: null }, false],
    ['half of them missing', { ...full, brand: null, price: null }, true],
    ['an empty list is no value', { title: 'a', price: 1, brand: null, tags: [] }, true],
    ['one field left', { title: 'Busy', price: null, brand: null, tags: null }, true],
  ])('compares a page with the usual fields: %s', (_name, row, thin) => {
    expect(after(10).isThin(rows(row))).toBe(thin);
  });

  it('has no baseline before ten pages', () => {
    expect(after(9).isThin(rows({ title: 'a' }))).toBe(false);
  });

  it('ignores fields that are often missing', () => {
    const baseline = after(8);
    for (let i = 0; i < 2; i++) baseline.note(rows({ ...full, price: null, brand: null }));
    expect(baseline.isThin(rows({ ...full, price: null, brand: null }))).toBe(false);
  });

  it('adapts to a slowly changing catalogue', () => {
    const baseline = after(100);
    for (let i = 0; i < 60; i++) baseline.note(rows({ ...full, price: null, brand: null }));
    expect(baseline.isThin(rows({ ...full, price: null, brand: null }))).toBe(false);
  });

  it('considers all records of a page, and ignores a page without any', () => {
    const baseline = after(10);
    expect(
      baseline.isThin([
        { key: '1', row: { title: 'a', price: 1 } },
        { key: '2', row: { brand: 'b' } },
      ]),
    ).toBe(false);
    expect(baseline.isThin([])).toBe(false);
  });

  it('starts over after a reset', () => {
    const baseline = after(50);
    baseline.reset();
    expect(baseline.isThin(rows({ title: 'a' }))).toBe(false);
  });
});

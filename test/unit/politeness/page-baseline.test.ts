import { describe, expect, it } from 'vitest';
import { PageBaseline } from '../../../crawl-api/politeness/page-baseline.ts';
import type { Row } from '../../../shared/domain/mapping.ts';

const rows = (row: Row) => [{ key: null, row }];
const full: Row = { title: 'a', price: 1, brand: 'b', tags: ['x'] };

function after(pages: number, row: Row = full): PageBaseline {
  const habit = new PageBaseline();
  for (let i = 0; i < pages; i++) habit.note(rows(row));
  return habit;
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
    const habit = after(8);
    for (let i = 0; i < 2; i++) habit.note(rows({ ...full, price: null, brand: null }));
    expect(habit.isThin(rows({ ...full, price: null, brand: null }))).toBe(false);
  });

  it('adapts to a slowly changing catalogue', () => {
    const habit = after(100);
    for (let i = 0; i < 60; i++) habit.note(rows({ ...full, price: null, brand: null }));
    expect(habit.isThin(rows({ ...full, price: null, brand: null }))).toBe(false);
  });

  it('considers all records of a page, and ignores a page without any', () => {
    const habit = after(10);
    expect(
      habit.isThin([
        { key: '1', row: { title: 'a', price: 1 } },
        { key: '2', row: { brand: 'b' } },
      ]),
    ).toBe(false);
    expect(habit.isThin([])).toBe(false);
  });

  it('starts over after a reset', () => {
    const habit = after(50);
    habit.reset();
    expect(habit.isThin(rows({ title: 'a' }))).toBe(false);
  });
});

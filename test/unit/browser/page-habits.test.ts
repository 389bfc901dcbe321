import { describe, expect, it } from 'vitest';
import { PageHabits } from '../../../crawl-api/fetch/browser/page-habits.ts';
import type { KeyedRow } from '../../../shared/domain/mapping.ts';

const FIELDS = ['title', 'price', 'sale'];
const rows = (row: KeyedRow['row']): KeyedRow[] => [{ key: null, row }];

function habitsOf(pages: number, changedAfterMs = 0): PageHabits {
  const habits = new PageHabits();
  for (let n = 0; n < pages; n++)
    habits.note(rows({ title: 'a', price: 1, sale: n % 4 === 0 ? 1 : null }), changedAfterMs);
  return habits;
}

describe('what pages are known to do', () => {
  it('waits for every field on the first pages, then for those that pages usually have', () => {
    expect(habitsOf(0).missing(rows({ title: 'a', price: null }), FIELDS)).toEqual(['price', 'sale']);
    expect(habitsOf(12).missing(rows({ title: 'a', price: null }), FIELDS)).toEqual(['price']);
    expect(habitsOf(12).missing(rows({ title: 'a', price: 2 }), FIELDS)).toEqual([]);
    expect(habitsOf(12).missing([], FIELDS)).toEqual([]);
  });

  it('watches the first pages, and every fiftieth, for all of the time', () => {
    expect(habitsOf(9).windowMs(3_000)).toBe(3_000);
    expect(habitsOf(10).windowMs(3_000)).toBe(0);
    expect(habitsOf(49).windowMs(3_000)).toBe(0);
    expect(habitsOf(50).windowMs(3_000)).toBe(3_000);
    expect(habitsOf(51).windowMs(3_000)).toBe(0);
  });

  it('watches the others twice as long as any of the last pages took', () => {
    const habits = habitsOf(20, 10);
    expect(habits.windowMs(3_000)).toBe(0);
    habits.note(rows({ title: 'a' }), 600);
    expect(habits.windowMs(3_000)).toBe(1_200);
    habits.note(rows({ title: 'a' }), 2_000);
    expect(habits.windowMs(3_000)).toBe(3_000);
    for (let n = 0; n < 52; n++) habits.note(rows({ title: 'a' }), 0);
    expect(habits.windowMs(3_000)).toBe(0);
  });
});

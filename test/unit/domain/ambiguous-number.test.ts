import { describe, expect, it } from 'vitest';
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import { type ColumnCounts, decideMark } from '../../../shared/domain/ambiguous-number.ts';

type Shown = [points: number, commas: number];

const decide = ([points, commas]: Shown, facts: Partial<ColumnCounts>): DecimalMark | null =>
  decideMark({ '.': points, ',': commas }, { products: 1_000, numbers: 0, last: null, ...facts });

describe('The decimal mark of a column', () => {
  it.each<[string, Shown, Partial<ColumnCounts>, DecimalMark | null]>([
    ['three values and one in twenty', [0, 3], { numbers: 60 }, ','],
    ['many values', [950, 0], { numbers: 1_000 }, '.'],
    ['every one of three', [3, 0], { numbers: 3 }, '.'],
  ])('is decided by %s', (_, shown, facts, mark) => {
    expect(decide(shown, facts)).toBe(mark);
  });

  it.each<[string, Shown, Partial<ColumnCounts>]>([
    ['two values', [0, 2], { numbers: 2 }],
    ['fewer than one in twenty', [0, 3], { numbers: 61 }],
    ['a majority', [500, 1], { numbers: 600 }],
    ['nothing shown', [0, 0], { numbers: 600 }],
    ['the last run, of a large one', [0, 0], { numbers: 600, last: ',' }],
  ])('is not decided by %s', (_, shown, facts) => {
    expect(decide(shown, facts)).toBeNull();
  });

  it.each<[string, Shown, DecimalMark | null, DecimalMark | null]>([
    ['that of the last run', [0, 0], ',', ','],
    ['that of the last run, which it shows, too', [2, 0], '.', '.'],
    ['what one value shows, without a last run', [0, 1], null, ','],
    ['none if it shows another than the last run', [1, 0], ',', null],
    ['none if it shows both', [1, 1], ',', null],
    ['none if nothing shows any', [0, 0], null, null],
  ])('of a run under 20 products is %s', (_, shown, last, mark) => {
    expect(decide(shown, { products: 19, numbers: 19, last })).toBe(mark);
  });
});

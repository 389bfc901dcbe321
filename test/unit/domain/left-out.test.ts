import { describe, expect, it } from 'vitest';
import {
  countLeftOut,
  describeLeftOut,
  type LeftOut,
  LEFT_OUT_REASONS,
  pagesLeftOut,
  sumLeftOut,
} from '../../../shared/domain/left-out.ts';
import { pagesOf } from '../../../shared/domain/pages-per-product.ts';
import { itemResultSchema } from '../../../shared/wire/part.ts';

const robots = (pages: number, example: string) => ({ robots: { pages, example } });

describe('further pages that were left out', () => {
  const products: LeftOut[] = [robots(2, 'a'), { ...robots(1, 'b'), gone: { pages: 3, example: 'c' } }, {}];

  it('are counted by reason, with the first example', () => {
    expect(countLeftOut(products)).toEqual({
      robots: { products: 2, pages: 3, example: 'a' },
      gone: { products: 1, pages: 3, example: 'c' },
    });
    expect(products.map(pagesLeftOut)).toEqual([2, 4, 0]);
  });

  it('add up however they are grouped', () => {
    const [first, ...others] = products.map((product) => countLeftOut([product]));
    expect(sumLeftOut([first!, sumLeftOut(others)])).toEqual(countLeftOut(products));
    expect(sumLeftOut([])).toEqual({});
  });

  it('are described in a line for each reason', () => {
    expect(describeLeftOut(countLeftOut(products))).toEqual([
      '3 forbidden by robots.txt, of 2 products, such as a',
      '3 gone, of 1 product, such as c',
    ]);
    const all = Object.fromEntries(LEFT_OUT_REASONS.map((reason) => [reason, { products: 1, pages: 1, example: 'x' }]));
    expect(describeLeftOut(all)).toHaveLength(LEFT_OUT_REASONS.length);
  });

  it('are in the line of a part as they are, and an earlier version has none', () => {
    const common = { n: 1, id: 'p1', url: 'http://a.example/', at: '2026-01-01T00:00:00Z', attempts: 1 };
    const stored = { ...common, outcome: 'stored', rows: [] };
    expect(itemResultSchema.parse(stored)).toEqual(stored);
    const partial = { ...stored, leftOut: products[1], partial: true };
    expect(itemResultSchema.parse(partial)).toEqual(partial);
    expect(() => itemResultSchema.parse({ ...stored, leftOut: robots(0, 'a') })).toThrow(/leftOut/);
    expect(() => itemResultSchema.parse({ ...stored, leftOut: { other: { pages: 1, example: 'a' } } })).toThrow();
  });
});

it.each([
  [1, { mean: 1, max: 20 }],
  [10, { mean: 10, max: 20 }],
  [10.2, { mean: 10.2, max: 21 }],
  [36, { mean: 36, max: 72 }],
  [
    { mean: 3, max: 4 },
    { mean: 3, max: 4 },
  ],
])('pages_per_product %j is mean and limit', (configured, pages) => {
  expect(pagesOf(configured)).toEqual(pages);
});

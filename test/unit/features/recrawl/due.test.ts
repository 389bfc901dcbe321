import { describe, expect, it } from 'vitest';
import {
  type CrawledProduct,
  dueAtMs,
  intervalMs,
  learnedFactor,
  type RecrawlPolicy,
} from '../../../../orchestrator/features/recrawl/due.ts';
import type { ListedProduct } from '../../../../orchestrator/core/db/product-source.ts';

const DAY = 86_400_000;
const POLICY: RecrawlPolicy = { baseMs: 30 * DAY, k: 2, everyMs: { daily: DAY }, maxShare: 1 };
const listed = (change: Partial<ListedProduct> = {}): ListedProduct => ({
  id: 'p1',
  score: 0,
  changedAtMs: null,
  priority: 0,
  category: null,
  ...change,
});
const crawled = (change: Partial<CrawledProduct> = {}): CrawledProduct => ({
  atMs: 100 * DAY,
  outcome: 'stored',
  inARow: 1,
  watchedMs: 0,
  changes: 0,
  ...change,
});
const days = (product: Partial<ListedProduct>, found: Partial<CrawledProduct>): number =>
  (dueAtMs(listed(product), crawled(found), POLICY) - 100 * DAY) / DAY;

describe('a product', () => {
  it.each([
    [0, 30],
    [0.5, 11.04],
    [0.9, 4.96],
    [1, 4.06],
    [7, 4.06],
    [-1, 30],
  ])('of score %d is due after %d days', (score, expected) => {
    expect(days({ score }, {})).toBeCloseTo(expected, 2);
  });

  it('of a category with its own base uses that base', () => {
    expect(days({ category: 'daily' }, {})).toBeCloseTo(1, 6);
    expect(days({ category: 'daily', score: 0.5 }, {})).toBeCloseTo(Math.exp(-1), 6);
  });

  it('is due at once when it was never crawled, or has changed since', () => {
    expect(dueAtMs(listed(), null, POLICY)).toBe(-Infinity);
    expect(dueAtMs(listed({ changedAtMs: 100 * DAY + 1 }), crawled(), POLICY)).toBe(-Infinity);
    expect(days({ changedAtMs: 100 * DAY }, {})).toBeCloseTo(30, 6);
  });

  it('that failed is due early, later after each failure, and never later than usual', () => {
    const after = [1, 2, 3, 4, 5, 6, 7, 60].map((inARow) => days({}, { outcome: 'failed', inARow }));
    expect(after).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
    expect(days({ score: 0.9 }, { outcome: 'failed', inARow: 20 })).toBeCloseTo(4.96, 2);
  });

  it('that is gone is due after growing intervals of up to eight bases, and never sooner than usual', () => {
    expect([1, 2, 3, 4, 50].map((inARow) => days({}, { outcome: 'gone', inARow }))).toEqual([60, 120, 240, 240, 240]);
    expect(days({ category: 'daily' }, { outcome: 'gone', inARow: 9 })).toBe(240);
  });

  it('is due sooner the more often it has changed, later when it never has, within a factor of four', () => {
    const factor = (watched: number, changes: number): number =>
      learnedFactor(crawled({ watchedMs: watched * DAY, changes }), intervalMs(listed(), POLICY));
    expect(factor(0, 0)).toBe(1);
    expect(factor(30, 1)).toBeCloseTo(1, 6);
    expect(factor(30, 0)).toBeGreaterThan(1);
    expect(factor(300, 40)).toBeLessThan(factor(300, 20));
    expect(factor(300, 20)).toBeLessThan(1);
    expect(factor(300_000, 0)).toBe(4);
    expect(factor(300, 300_000)).toBe(1 / 4);
  });
});

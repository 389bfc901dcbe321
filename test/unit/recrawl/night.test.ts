import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CrawledProduct, ListedProduct, RecrawlPolicy } from '../../../orchestrator/recrawl/due.ts';
import { Night } from '../../../orchestrator/recrawl/night.ts';

const DAY = 86_400_000;
const NOW = 1_000 * DAY;
const POLICY: RecrawlPolicy = { baseMs: 30 * DAY, k: 2, everyMs: {}, maxShare: 1 };

type Given = Partial<ListedProduct> & { id: string; daysAgo?: number };

function nightOf(products: readonly Given[], policy = POLICY): Night {
  const night = new Night(policy, NOW);
  for (const { daysAgo, ...listed } of products) {
    const crawled: CrawledProduct | null =
      daysAgo === undefined
        ? null
        : { atMs: NOW - daysAgo * DAY, outcome: 'stored', inARow: 1, watchedMs: 0, changes: 0 };
    night.add({ score: 0, changedAtMs: null, priority: 0, category: null, ...listed }, crawled);
  }
  return night;
}

describe('a night', () => {
  it('takes products never crawled, then the most overdue by their own interval, and none that is not due', () => {
    const night = nightOf([
      { id: 'late', daysAgo: 40 },
      { id: 'young', daysAgo: 29 },
      { id: 'scored', daysAgo: 10, score: 0.9 },
      { id: 'new' },
      { id: 'very late', daysAgo: 70 },
    ]);
    expect(night.choose(10)).toEqual({
      ids: ['new', 'very late', 'scored', 'late'],
      carriedOver: { products: 0, byCategory: 0, dueSinceMs: null },
    });
    expect(night.backlog).toMatchObject({ listed: 5, unseen: 1, due: 4 });
    expect(night.backlog.productsPerDay).toBeCloseTo(4 / 30 + 1 / 4.959, 3);
  });

  it('carries over what exceeds its capacity, with the time since which it is due', () => {
    const choice = nightOf([
      { id: 'a', daysAgo: 45 },
      { id: 'b', daysAgo: 60 },
      { id: 'c', daysAgo: 31 },
    ]).choose(1);
    expect(choice).toEqual({
      ids: ['b'],
      carriedOver: { products: 2, byCategory: 0, dueSinceMs: NOW - 15 * DAY },
    });
  });

  it('takes a higher priority first among the due', () => {
    const night = nightOf([{ id: 'a' }, { id: 'b', daysAgo: 31, priority: 2 }, { id: 'c', daysAgo: 1, priority: 9 }]);
    expect(night.choose(5).ids).toEqual(['b', 'a']);
  });

  it('gives no category more than its share; products without one have no limit', () => {
    const many = (category: string | null, count: number): Given[] =>
      Array.from({ length: count }, (_, i) => ({ id: `${category}${i}`, category }));
    const policy = { ...POLICY, maxShare: 0.5 };
    const { ids, carriedOver } = nightOf([...many('toys', 20), ...many('books', 3)], policy).choose(10);
    expect(ids.filter((id) => id.startsWith('toys'))).toHaveLength(5);
    expect(ids).toHaveLength(8);
    expect(carriedOver).toMatchObject({ products: 15, byCategory: 15 });
    expect(nightOf(many(null, 20), policy).choose(10).ids).toHaveLength(10);
  });

  it('loses no due product and takes none twice, whatever the list', () => {
    const product = fc.record({
      daysAgo: fc.option(fc.double({ min: 0, max: 500, noNaN: true }), { nil: undefined }),
      score: fc.double({ min: -1, max: 2, noNaN: true }),
      priority: fc.integer({ min: -2, max: 2 }),
      category: fc.constantFrom(null, 'a', 'b'),
    });
    fc.assert(
      fc.property(fc.array(product, { maxLength: 60 }), fc.nat(70), (products, capacity) => {
        const given = products.map((p, i) => ({ id: `p${i}`, ...p })) as Given[];
        const night = nightOf(given, { ...POLICY, maxShare: 0.4 });
        const { ids, carriedOver } = night.choose(capacity);
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids.length).toBeLessThanOrEqual(capacity);
        expect(ids.length + carriedOver.products).toBe(night.backlog.due);
        expect(nightOf(given, { ...POLICY, maxShare: 0.4 }).choose(capacity).ids).toEqual(ids);
      }),
    );
  });
});

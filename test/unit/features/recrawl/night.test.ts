import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CrawledProduct, RecrawlPolicy } from '../../../../orchestrator/features/recrawl/due.ts';
import { Night } from '../../../../orchestrator/features/recrawl/night.ts';
import type { ListedProduct } from '../../../../orchestrator/core/db/product-source.ts';

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

  it('takes changed products by how long they have waited, not in the order of the list', () => {
    const night = nightOf([
      { id: 'yesterday', daysAgo: 1, changedAtMs: NOW },
      { id: 'long ago', daysAgo: 20, changedAtMs: NOW },
      { id: 'important', daysAgo: 4, score: 0.9, changedAtMs: NOW },
      { id: 'overdue', daysAgo: 36 },
      { id: 'long overdue', daysAgo: 60 },
    ]);
    expect(night.choose(9).ids).toEqual(['long overdue', 'important', 'long ago', 'overdue', 'yesterday']);
  });

  it('takes products never crawled by score, and lets them share a night with the others half and half', () => {
    const night = nightOf([
      ...Array.from({ length: 9 }, (_, i) => ({ id: `new ${i}`, score: i / 10 })),
      ...Array.from({ length: 9 }, (_, i) => ({ id: `changed ${i}`, daysAgo: 1 + i, changedAtMs: NOW })),
    ]);
    const half = ['new 8', 'changed 8', 'new 7', 'changed 7', 'new 6', 'changed 6'];
    expect(night.choose(6).ids).toEqual(half);
    expect(night.choose(7).ids).toEqual([...half, 'new 5']);
    expect(night.choose(18).ids).toHaveLength(18);
  });

  it('keeps the halves when a category has used up its share, and lets a higher priority go before both', () => {
    const toys = Array.from({ length: 6 }, (_, i) => ({ id: `toy ${i}`, category: 'toys', score: 0.9 }));
    const night = nightOf(
      [
        ...toys,
        ...Array.from({ length: 4 }, (_, i) => ({ id: `new ${i}` })),
        ...Array.from({ length: 9 }, (_, i) => ({ id: `old ${i}`, daysAgo: 90 })),
        { id: 'urgent', daysAgo: 31, priority: 1 },
      ],
      { ...POLICY, maxShare: 0.25 },
    );
    const { ids, carriedOver } = night.choose(8);
    expect(ids).toEqual(['urgent', 'toy 0', 'old 0', 'toy 1', 'old 1', 'new 0', 'old 2', 'new 1']);
    expect(carriedOver.byCategory).toBe(4);
  });

  const CATALOGUES: [string, (i: number) => { daysAgo?: number; isChanging: boolean }][] = [
    ['change every day', () => ({ daysAgo: 1, isChanging: true })],
    ['were never crawled', () => ({ isChanging: false })],
    ['change every day, or were never crawled', (i) => ({ ...(i % 2 ? { daysAgo: 1 } : {}), isChanging: true })],
    ['change every day, or are due by their intervals', (i) => ({ daysAgo: 31, isChanging: i % 2 === 0 })],
  ];

  it.each(CATALOGUES)('crawls each of 40 products within 5 nights of 10, where they %s', (_, kindOf) => {
    const kinds = Array.from({ length: 40 }, (_, i) => kindOf(i));
    const crawledAt = kinds.map(({ daysAgo }) => (daysAgo === undefined ? null : NOW - daysAgo * DAY));
    const seen = new Set<string>();
    for (let n = 0; n < 5; n++) {
      const nowMs = NOW + n * DAY;
      const night = new Night(POLICY, nowMs);
      kinds.forEach(({ isChanging }, i) => {
        const atMs = crawledAt[i];
        const crawled =
          atMs === null ? null : { atMs: atMs!, outcome: 'stored' as const, inARow: 1, watchedMs: 0, changes: 0 };
        const changedAtMs = isChanging ? nowMs - 3_600_000 : null;
        night.add({ id: String(i), score: 0, changedAtMs, priority: 0, category: null }, crawled);
      });
      for (const id of night.choose(10).ids) {
        seen.add(id);
        crawledAt[Number(id)] = nowMs;
      }
    }
    expect(seen.size).toBe(40);
  });

  it('keeps up with what changes each day, and with the others by their intervals', () => {
    const { backlog } = nightOf([
      ...Array.from({ length: 40 }, (_, i) => ({ id: `daily ${i}`, daysAgo: 5, changedAtMs: NOW - DAY / 2 })),
      // As soon as they are crawled, they are no longer due; they changed today all the same.
      { id: 'crawled since', daysAgo: 0.1, changedAtMs: NOW - DAY / 2 },
      { id: 'new', changedAtMs: NOW - DAY / 2 },
      { id: 'last week', daysAgo: 9, changedAtMs: NOW - 7 * DAY },
    ]);
    expect(backlog.productsPerDay).toBeCloseTo(42 + 1 / 30, 6);
    expect(backlog.due).toBe(42);
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

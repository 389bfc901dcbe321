/** What earlier runs tell `products.recrawl` of each product. */
import { expect, it } from 'vitest';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import { noteCrawls, readCrawls } from '../../../../orchestrator/features/recrawl/crawls.ts';
import { createProductSource } from '../../../../orchestrator/core/db/product-source.ts';
import { NOW, createRun, failed, gone, load, onBothEngines, publish, settings, stored } from '../../core/db/harness.ts';

const DAY = 86_400_000;

onBothEngines('The table of crawls', (bench, engine) => {
  const night = async (table: string, day: number, results: readonly ItemResult[]): Promise<string> => {
    const { id } = await createRun(
      bench(),
      results.map((result) => result.id),
      { settings: settings(table, { history: 'changes' }) },
    );
    await load(bench(), id, results);
    // Loaded that day.
    await bench()
      .db.knex('crawlfleet_items')
      .where({ run_id: id })
      .update({ settled_at: NOW + day * DAY });
    await publish(bench(), id, NOW + day * DAY);
    return id;
  };
  const crawls = async (table: string): Promise<Record<string, unknown>> => {
    await noteCrawls(bench().db, table, NOW);
    return Object.fromEntries(await readCrawls(bench().db, table));
  };

  it('counts outcomes in a row, the time a page was watched, and its changes', async () => {
    const table = `crawled_${engine}`;
    expect((await readCrawls(bench().db, table)).size).toBe(0);
    await night(table, 0, [stored(1), stored(2), gone(3), failed(4)]);
    await night(table, 3, [stored(1, 'p1', { title: 'new' }), gone(2), gone(3), failed(4)]);
    const known = await crawls(table);
    const at = NOW + 3 * DAY;
    expect(known).toEqual({
      p1: { atMs: at, outcome: 'stored', inARow: 2, watchedMs: 3 * DAY, changes: 1 },
      p2: { atMs: at, outcome: 'gone', inARow: 1, watchedMs: 0, changes: 0 },
      p3: { atMs: at, outcome: 'gone', inARow: 2, watchedMs: 0, changes: 0 },
      p4: { atMs: at, outcome: 'failed', inARow: 2, watchedMs: 0, changes: 0 },
    });
    expect(await crawls(table)).toEqual(known);
    await night(table, 5, [stored(1, 'p1', { title: 'new' })]);
    expect((await crawls(table)).p1).toEqual({
      atMs: NOW + 5 * DAY,
      outcome: 'stored',
      inARow: 3,
      watchedMs: 5 * DAY,
      changes: 1,
    });
  });

  it('leaves out what was not crawled, and what a cancelled run did', async () => {
    const table = `uncrawled_${engine}`;
    await night(table, 0, [{ ...failed(1), reason: 'deadline' } as ItemResult, stored(2)]);
    const own = settings(table);
    const { id } = await createRun(bench(), ['p9'], { settings: own });
    await load(bench(), id, [stored(1, 'p9')]);
    await bench().stores.runs.setRequest(id, 'cancel');
    await publish(bench(), id);
    expect(Object.keys(await crawls(table))).toEqual(['p2']);
  });

  it('is not set back by an older run that is published late', async () => {
    const table = `late_${engine}`;
    await night(table, 5, [stored(1)]);
    await crawls(table);
    await night(table, 2, [gone(1)]);
    expect(await crawls(table)).toMatchObject({ p1: { atMs: NOW + 5 * DAY, outcome: 'stored', inARow: 1 } });
  });
});

onBothEngines('products.query with what recrawl goes by', (bench) => {
  const listed = async (query: string) => {
    const rows = [];
    for await (const row of createProductSource(bench().url, query).listed('popularity')) rows.push(row);
    return rows;
  };

  it('yields score, time of change, priority and category, as far as the query has them', async () => {
    const changed = Date.UTC(2026, 10, 21, 2, 15, 30);
    expect(
      await listed(
        `select 'a' as ID, 0.5 as Popularity, '2026-11-21 02:15:30' as changed_at, 2 as priority, 'toys' as category
         union all select 'b', null, '${changed / 1_000}', null, null
         union all select 'c', '1e-1', '2026-11-21T02:15:30Z', -1, ''`,
      ),
    ).toEqual([
      { id: 'a', score: 0.5, changedAtMs: changed, priority: 2, category: 'toys' },
      { id: 'b', score: 0, changedAtMs: changed, priority: 0, category: null },
      { id: 'c', score: 0.1, changedAtMs: changed, priority: -1, category: '' },
    ]);
    expect(await listed(`select 7 as id, null as popularity`)).toEqual([
      { id: '7', score: 0, changedAtMs: null, priority: 0, category: null },
    ]);
  });

  it.each([
    [`select 'a' as id`, 'yields no column popularity, which products.recrawl.score names'],
    [`select 'a' as id, 'much' as popularity`, 'popularity is "much", no number'],
    [`select 'a' as id, 0 as popularity, 'soon' as changed_at`, 'changed_at is "soon", no time'],
  ])('refuses %s', async (query, message) => {
    await expect(listed(query)).rejects.toMatchObject({
      code: 'products-query',
      message: expect.stringContaining(message) as string,
    });
  });
});

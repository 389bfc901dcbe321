/** What stored products share, and stored products that are refused before they are published. */
import { expect, it } from 'vitest';
import type { Row } from '../../../../shared/domain/mapping.ts';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import type { Refusal } from '../../../../orchestrator/core/model/stores.ts';
import { noteCrawls, readCrawls } from '../../../../orchestrator/features/recrawl/crawls.ts';
import {
  allRows,
  bound,
  COMPLETE,
  createRun,
  failed,
  itWithSql,
  load,
  NOW,
  onEveryEngine,
  publish,
  readFacts,
  ROWS_MAPPING,
  keyed,
  settings,
  stored,
  storedRows,
  toLoading,
} from '../../core/db/harness.ts';
import { historyTable } from '../../../../orchestrator/core/db/result-table.ts';

const SHOP = 'https://shop.example';

/** A stored product whose request ended there. */
const landed = (n: number, path: string, row: Row = {}): ItemResult => {
  return { ...stored(n, `p${n}`, row), finalUrl: `${SHOP}${path}` } as ItemResult;
};
const consent = (n: number): ItemResult => landed(n, `/consent?return=/item/p${n}`, { title: 'Before you continue' });
const withUrl = (result: ItemResult): ItemResult => ({ ...result, url: `${SHOP}/item/${result.id}` });
const redirected = (id: string): Refusal => ({ id, outcome: 'failed', reason: 'redirect', detail: 'a common page' });

onEveryEngine('Products that ended on one page', (bench, engine) => {
  it('are found over all parts, whatever repeats the request in its address; their own pages are none', async () => {
    const { id, results } = await createRun(bench(), 6);
    await load(bench(), id, [consent(1), consent(2), landed(4, '/de/item/p4'), landed(5, '/teapot')].map(withUrl));
    await load(bench(), id, [consent(3), stored(6)].map(withUrl), { slot: 1, seq: 0 });
    const { pages } = await results.sharedResults(3);
    expect(pages).toEqual([
      {
        page: 'shop.example/consent?return=',
        products: 3,
        examples: ['p1', 'p2', 'p3'],
        ownerId: null,
        lacks: [],
        titles: 1,
      },
    ]);
    expect((await results.productsOn('shop.example/consent?return=')).sort()).toEqual(['p1', 'p2', 'p3']);
  });

  it('leave result table, counts and facts in order once they are refused', async () => {
    const { id, table, results, work, run } = await createRun(bench(), 5);
    await load(bench(), id, [stored(1), stored(2), failed(3)]);
    await load(bench(), id, [stored(4), stored(5)], { slot: 1, seq: 0 });
    const refused = ['p2', 'p3', 'p4', 'p9'].map(redirected);
    const again: Refusal = { id: 'p5', outcome: 'gone', reason: null, detail: 'the same page as p1' };
    expect(await results.refuse([...refused, again], 'three products are refused')).toBe(3);
    expect(await results.refuse([...refused, again], 'three products are refused')).toBe(0);
    expect(await results.totals()).toMatchObject({ stored: 1, gone: 1, failed: 3, loaded: 2 });
    expect(await work.outcomes()).toMatchObject({
      stored: 1,
      gone: 1,
      failed: 3,
      reasons: { redirect: 2, 'http-status': 1 },
    });
    expect((await run.events(10, 'alarm')).map(({ detail }) => detail)).toEqual(['three products are refused']);
    expect((await work.failedProducts(0, 10)).map(({ id: product, detail }) => [product, detail])).toEqual([
      ['p2', 'a common page'],
      ['p3', 'HTTP 500'],
      ['p4', 'a common page'],
    ]);
    await toLoading(bench(), id);
    expect(await results.publish('completed', COMPLETE)).toEqual({ rows: 1 });
    expect((await allRows(bench(), table)).map((row) => row.product_id)).toEqual(['p1']);
    const nothing = { count: 0, examples: [] };
    expect(await readFacts(bench(), id)).toMatchObject({
      refused: 3,
      partsOff: nothing,
      withoutPart: nothing,
      storedWithoutRow: nothing,
      rowsWithoutItem: nothing,
      ledgerRows: 1,
      resultRows: 1,
    });
  });

  itWithSql(engine)('with many rows each take all of them along', async () => {
    const { id, table, results } = await createRun(bench(), 2, {
      settings: settings(`refused_rows_${engine}`, {}, ROWS_MAPPING),
    });
    await load(bench(), id, [storedRows(1, [keyed('a'), keyed('b')]), storedRows(2, [keyed('a')])]);
    expect(await results.refuse([redirected('p1')], 'one')).toBe(1);
    await publish(bench(), id);
    expect((await allRows(bench(), table)).map((row) => row.product_id)).toEqual(['p2']);
    expect(await readFacts(bench(), id)).toMatchObject({ partsOff: { count: 0 }, ledgerRows: 1, resultRows: 1 });
  });

  itWithSql(engine)('enter neither the history nor the crawl dates; their old rows stay', async () => {
    const table = `refused_history_${engine}`;
    const own = () => settings(table, { history: 'changes' });
    const first = await createRun(bench(), 2, { settings: own() });
    await load(bench(), first.id, [stored(1), stored(2)]);
    await publish(bench(), first.id);
    await noteCrawls(bench().db, table, NOW);
    const before = (await readCrawls(bench().db, table)).get('p1');
    const next = await createRun(bench(), 2, { settings: own() });
    await load(bench(), next.id, [stored(1, 'p1', { title: 'Before you continue' }), stored(2)]);
    await next.results.refuse([redirected('p1')], 'one');
    await publish(bench(), next.id, NOW + 86_400_000);
    await noteCrawls(bench().db, table, NOW + 86_400_000);
    expect((await readCrawls(bench().db, table)).get('p1')).toEqual(before);
    expect(await bench().db.knex(historyTable(table))).toEqual([]);
    expect((await allRows(bench(), table)).map((row) => [row.title, row.run_id])).toEqual([
      ['Title 1', first.id],
      ['Title 2', next.id],
    ]);
  });

  itWithSql(engine)(
    'are distinguished from products that ended on the page of another one, with what that page lacks',
    async () => {
      const own = settings(`landed_${engine}`);
      const { id, results } = await createRun(bench(), 9, { settings: own });
      const others = [4, 5, 6, 7, 8, 9].map((n) => stored(n));
      await load(
        bench(),
        id,
        [1, 2, 3]
          .map((n) => landed(n, '/item/p9', { price: null }))
          .concat(others)
          .map(withUrl),
      );
      const [page] = (await results.sharedResults(3)).pages;
      expect(page).toMatchObject({ page: 'shop.example/item/p9', ownerId: 'p9', lacks: ['price'] });
    },
  );

  itWithSql(engine)('count as one row under many IDs only where they have the same values', async () => {
    const own = settings(`same_rows_${engine}`);
    const placeholder: Row = { title: 'Sold out', price: 7, weight: null, tags: [] };
    const night = async (price: number) => {
      const run = await createRun(bench(), 6, { settings: own });
      const same = [1, 2, 3].map((n) => stored(n, `p${n}`, { ...placeholder, price, weight: 1.5 }));
      const thin = [4, 5].map((n) => stored(n, `p${n}`, { title: 'Sold out', price: null, weight: null, tags: [] }));
      await load(bench(), run.id, [...same, ...thin, stored(6)]);
      return run;
    };
    const first = await night(7);
    expect((await first.results.sharedResults(3)).rows).toEqual([
      { products: 3, examples: ['p1', 'p2', 'p3'], before: 0 },
    ]);
    await publish(bench(), first.id);
    // Its price has changed since.
    const second = await night(8);
    expect((await second.results.sharedResults(3)).rows).toMatchObject([{ products: 3, before: 5 }]);
  });

  itWithSql(engine)('are not looked for in a staging table of an earlier version', async () => {
    const { id } = await createRun(bench(), 3);
    const columns = ['_landing', '_content'];
    for (const column of columns)
      await bench().db.knex.raw('alter table ?? drop column ??', [`crawlfleet_staging_${id}`, column]);
    await load(bench(), id, [consent(1), consent(2), consent(3)].map(withUrl));
    expect(await bound(bench(), id).results.sharedResults(3)).toEqual({ pages: [], rows: [] });
    expect(await publish(bench(), id)).toEqual({ rows: 3 });
  });
});

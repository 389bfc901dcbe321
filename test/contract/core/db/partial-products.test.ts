/** Products that were stored without some of their further pages: with `rows`, their older rows stay. */
import { expect, it } from 'vitest';
import type { LeftOut } from '../../../../shared/domain/left-out.ts';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import { readVerifyFacts } from '../../../../orchestrator/core/db/verify-queries.ts';
import { History } from '../../../../orchestrator/core/db/history.ts';
import { readProduct } from '../../../../orchestrator/core/read/product-document.ts';
import {
  bound,
  createRun,
  failed,
  keyed,
  load,
  NOW,
  onBothEngines,
  onEveryEngine,
  publish,
  readFacts,
  ROWS_MAPPING,
  settings,
  stored,
  storedRows,
} from './harness.ts';

const FORBIDDEN: LeftOut = { robots: { pages: 2, example: 'https://shop.example/item/1?page=2' } };

/** A product with these records, stored without pages that may have more. */
const partial = (n: number, keys: string[], leftOut: LeftOut = FORBIDDEN): ItemResult => {
  const result = storedRows(
    n,
    keys.map((key) => keyed(key)),
  );
  return { ...result, leftOut, partial: true } as ItemResult;
};
const whole = (n: number, keys: string[]): ItemResult =>
  storedRows(
    n,
    keys.map((key) => keyed(key)),
  );
const none = { count: 0, examples: [] };

onBothEngines('A partial product', (bench, engine) => {
  let nights = 0;
  const newTable = (): string => `partial_${engine}_${++nights}`;

  async function night(table: string, results: readonly ItemResult[]): Promise<string> {
    const own = settings(table, { history: 'changes' }, ROWS_MAPPING);
    const ids = results.map((result) => result.id);
    const { id } = await createRun(bench(), ids, { settings: own });
    await load(
      bench(),
      id,
      results.map((result, i) => ({ ...result, n: i + 1 })),
    );
    await publish(bench(), id, NOW + ++nights * 86_400_000);
    return id;
  }

  const rowsIn = async (table: string): Promise<string[]> => {
    const rows = (await bench().db.knex(table).orderBy(['product_id', 'row_key'])) as Record<string, unknown>[];
    return rows.map((r) => `${String(r.product_id)}/${String(r.row_key)} ${String(r.run_id)}`);
  };

  const changes = async (table: string): Promise<unknown[][]> => {
    const rows = (await bench().db.knex(`${table}_history`).whereNull('field').orderBy('id')) as Record<
      string,
      unknown
    >[];
    return rows.map((row) => [row.product_id, row.old_value, row.new_value]);
  };

  it('keeps its older rows, until a whole night deletes them', async () => {
    const table = newTable();
    const first = await night(table, [whole(1, ['a', 'b', 'c']), whole(2, ['a', 'b'])]);
    const second = await night(table, [partial(1, ['a', 'd']), whole(2, ['b'])]);
    expect(await rowsIn(table)).toEqual([
      `p1/a ${second}`,
      `p1/b ${first}`,
      `p1/c ${first}`,
      `p1/d ${second}`,
      `p2/b ${second}`,
    ]);
    const third = await night(table, [whole(1, ['d']), whole(2, ['b'])]);
    expect(await rowsIn(table)).toEqual([`p1/d ${third}`, `p2/b ${third}`]);
  });

  it('keeps them when it has no rows at all', async () => {
    const table = newTable();
    const first = await night(table, [whole(1, ['a'])]);
    const second = await night(table, [partial(1, [])]);
    expect(await rowsIn(table)).toEqual([`p1/a ${first}`]);
    const facts = await readVerifyFacts(bench().db, first);
    expect(facts).toMatchObject({ storedWithoutRow: none, rowsOff: none, overwritten: none, resultRows: 1 });
    expect(await readVerifyFacts(bench().db, second)).toMatchObject({ ledgerRows: 0, partial: { count: 1 } });
  });

  it('is named by verify, which holds for its night, the nights before and those after', async () => {
    const table = newTable();
    const first = await night(table, [whole(1, ['a', 'b', 'c'])]);
    const second = await night(table, [partial(1, ['a', 'd'])]);
    const balanced = { storedWithoutRow: none, rowsOff: none, rowsWithoutItem: none, partsOff: none };
    expect(await readVerifyFacts(bench().db, first)).toMatchObject({
      ...balanced,
      partial: none,
      ledgerRows: 3,
      replacedRows: 1,
      resultRows: 2,
      overwritten: { count: 1, examples: ['p1'] },
    });
    expect(await readVerifyFacts(bench().db, second)).toMatchObject({
      ...balanced,
      partial: { count: 1, examples: ['p1'] },
      ledgerRows: 2,
      resultRows: 2,
    });
    await night(table, [whole(1, ['d'])]);
    for (const id of [first, second])
      expect(await readVerifyFacts(bench().db, id)).toMatchObject({
        ...balanced,
        resultRows: 0,
        overwritten: { count: 1 },
      });
  });

  it('does not excuse rows that another hand has deleted', async () => {
    const table = newTable();
    const { knex } = bench().db;
    const id = await night(table, [partial(1, ['a', 'b'])]);
    await knex(table).where({ row_key: 'b' }).delete();
    expect(await readVerifyFacts(bench().db, id)).toMatchObject({ rowsOff: { count: 1, examples: ['p1'] } });
    await knex('crawlfleet_parts').where({ run_id: id }).update({ partial: 2 });
    expect(await readVerifyFacts(bench().db, id)).toMatchObject({ partsOff: { count: 1 } });
  });

  it('is named by the history when it becomes one, and when it is whole again', async () => {
    const table = newTable();
    await night(table, [whole(1, ['a']), partial(2, ['a'])]);
    expect(await changes(table)).toEqual([['p2', 'stored', 'partial']]);
    await night(table, [partial(1, ['a']), partial(2, ['a'])]);
    await night(table, [failed(1), whole(2, ['a'])]);
    expect((await changes(table)).slice(1)).toEqual([
      ['p1', 'stored', 'partial'],
      ['p2', 'partial', 'stored'],
    ]);
  });

  it('is named by `product`', async () => {
    const table = newTable();
    const id = await night(table, [partial(7, ['a'])]);
    const { stores, db } = bench();
    const { nights: seen } = await readProduct('p7', { stores, history: new History(db) });
    expect(seen.find(({ run }) => run === id)).toMatchObject({
      outcome: 'stored',
      detail: 'partial: stored without 2 of its further pages',
    });
  });
});

onEveryEngine('Further pages that were left out', (bench, engine) => {
  const gonePage: LeftOut = { gone: { pages: 1, example: 'https://shop.example/3' } };

  async function begin(results: readonly ItemResult[]) {
    const own = settings(`left_out_${engine}`, {}, ROWS_MAPPING);
    const run = await createRun(bench(), 6, { settings: own });
    await load(bench(), run.id, results);
    return run;
  }

  it('are counted part by part, each product once, with the first example of each reason', async () => {
    const { id, results } = await begin([partial(1, ['a']), whole(2, ['a'])]);
    await load(bench(), id, [partial(1, ['b']), partial(3, ['a'], gonePage)], { slot: 1, seq: 0 });
    await load(bench(), id, [partial(4, ['a'])], { slot: 1, seq: 1 });
    expect(await results.leftOut()).toEqual({
      robots: { products: 2, pages: 4, example: FORBIDDEN.robots!.example },
      gone: { products: 1, ...gonePage.gone },
    });
    expect(await results.totals()).toMatchObject({ stored: 4, partial: 3 });
    expect(await results.partialProducts(2)).toEqual(['p1', 'p3']);
    expect(await readFacts(bench(), id)).toMatchObject({ partsOff: none, partial: { count: 3 } });
  });

  it('are counted of products that are no less whole for them', async () => {
    const { id, results } = await begin([{ ...whole(1, ['a']), leftOut: FORBIDDEN } as ItemResult, stored(2)]);
    expect(await results.leftOut()).toMatchObject({ robots: { products: 1, pages: 2 } });
    expect(await results.totals()).not.toHaveProperty('partial');
    expect(await readFacts(bench(), id)).toMatchObject({ partial: none });
  });

  it('count no longer for a product that is refused', async () => {
    const { id, results } = await begin([partial(1, ['a']), partial(2, ['a'])]);
    await results.refuse([{ id: 'p1', outcome: 'failed', reason: 'load', detail: 'a rule' }], 'one is refused');
    expect(await bound(bench(), id).results.totals()).toMatchObject({ stored: 1, partial: 1 });
    expect(await readFacts(bench(), id)).toMatchObject({ partsOff: none, partial: { count: 1, examples: ['p2'] } });
  });
});

/** `results.history: changes`: what publishing writes into the table of changes. */
import { expect, it } from 'vitest';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import {
  NOW,
  ROWS_MAPPING,
  MAPPING,
  createRun,
  failed,
  gone,
  keyed,
  load,
  onBothEngines,
  publish,
  settings,
  stored,
  storedRows,
} from '../../core/db/harness.ts';

onBothEngines('The history of a result table', (bench, engine) => {
  let nights = 0;

  /** A whole run over these results into the table. */
  async function night(
    table: string,
    results: readonly ItemResult[],
    mapping = MAPPING,
    how: Parameters<typeof settings>[1] = { history: 'changes' },
  ): Promise<string> {
    const own = settings(table, how, mapping);
    const { id } = await createRun(
      bench(),
      results.map((result) => result.id),
      { settings: own },
    );
    await load(bench(), id, results);
    await publish(bench(), id, NOW + ++nights * 86_400_000);
    return id;
  }

  async function changes(table: string): Promise<unknown[][]> {
    const rows = (await bench().db.knex(`${table}_history`).orderBy(['id'])) as Record<string, unknown>[];
    return rows.map((row) =>
      [row.product_id, row.row_key, row.field, row.old_value, row.new_value].filter((value) => value !== undefined),
    );
  }

  it('has a row for each change of a field, and none for what is new, the same or failed', async () => {
    const table = `changing_${engine}`;
    await night(table, [stored(1), stored(2), stored(3)]);
    expect(await changes(table)).toEqual([]);
    const second = await night(table, [
      stored(1, 'p1', { title: 'title 1', price: null }),
      stored(2),
      failed(3),
      stored(4),
    ]);
    expect(await changes(table)).toEqual([
      ['p1', 'title', 'Title 1', 'title 1'],
      ['p1', 'price', '100', null],
    ]);
    const [row] = (await bench().db.knex(`${table}_history`)) as Record<string, unknown>[];
    expect(row!.run_id).toBe(second);
    const result = (await bench().db.knex(table).where({ product_id: 'p1' }).first()) as Record<string, unknown>;
    expect(row!.changed_at).toEqual(result.crawled_at);
    await night(table, [stored(1, 'p1', { title: 'title 1', price: 7, tags: ['b'] })]);
    expect((await changes(table)).slice(2)).toEqual([
      ['p1', 'price', null, '7'],
      ['p1', 'tags', expect.any(String), '["b"]'],
    ]);
  });

  it('says once when a product vanishes, and once when it is back', async () => {
    const table = `vanishing_${engine}`;
    await night(table, [stored(1), stored(2)]);
    await night(table, [gone(1), stored(2)]);
    await night(table, [gone(1), failed(2)]);
    expect(await changes(table)).toEqual([['p1', null, 'stored', 'gone']]);
    await night(table, [stored(1), stored(2)]);
    await night(table, [stored(1), gone(2)]);
    expect((await changes(table)).slice(1)).toEqual([
      ['p1', null, 'gone', 'stored'],
      ['p2', null, 'stored', 'gone'],
    ]);
  });

  it.runIf(engine === 'mysql')('reads the rows of a product, not all of them for each product', async () => {
    const table = `counted_${engine}`;
    const numbers = Array.from({ length: 300 }, (_, i) => i + 1);
    const rowsRead = async (): Promise<number> => {
      const sql = 'select rows_read from information_schema.table_statistics where table_name = ?';
      const [[row] = []] = (await bench().db.knex.raw(sql, [`${table}_history`])) as { rows_read: bigint }[][];
      return Number(row?.rows_read ?? 0);
    };
    await bench().db.knex.raw('set global userstat = 1');
    const priced = (price: number) => numbers.map((n) => stored(n, `p${n}`, { price }));
    // In the second of these nights the server has no statistics of the new table.
    await night(table, priced(1), MAPPING, {});
    await night(table, priced(2));
    const first = await rowsRead();
    await night(table, priced(3));
    expect(first).toBeGreaterThan(0);
    expect(Math.max(first, (await rowsRead()) - first)).toBeLessThan(20 * numbers.length);
  });

  it('compares each record of a product by its key', async () => {
    const table = `records_${engine}`;
    await night(table, [storedRows(1, [keyed('a', { title: 'x' }), keyed('b', { title: 'y' })])], ROWS_MAPPING);
    await night(table, [storedRows(1, [keyed('b', { title: 'z' }), keyed('c', { title: 'x' })])], ROWS_MAPPING);
    expect(await changes(table)).toEqual([['p1', 'b', 'title', 'y', 'z']]);
  });

  it.each([
    ['a big integer', 'bigint not null', ['9007199254740992', '9007199254740993']],
    [
      'a text that ignores case',
      engine === 'mysql' ? 'varchar(100) collate latin1_swedish_ci' : 'text collate nocase',
      ['SKU-1', 'ＳＫＵ'].slice(0, 1),
    ],
  ])('finds the predecessor where product_id is %s', async (_what, type, ids) => {
    const table = `keyed_${++nights}_${engine}`;
    await bench().db.knex.raw(
      `create table ${table} (product_id ${type} primary key, title text, price bigint, weight double precision, tags text, run_id varchar(64), url text, crawled_at varchar(30))`,
    );
    await night(
      table,
      ids.map((id, i) => stored(i + 1, id)),
    );
    await night(
      table,
      ids.map((id, i) => stored(i + 1, id.toLowerCase(), { title: `new ${id}` })),
    );
    expect(await changes(table)).toEqual(
      ids.map((id, i) => [id.toLowerCase(), 'title', `Title ${i + 1}`, `new ${id}`]),
    );
  });

  it('keeps an older run from changing what a newer one has settled', async () => {
    const table = `overtaken_${engine}`;
    await night(table, [stored(1)]);
    const own = settings(table, { history: 'changes' });
    const late = await createRun(bench(), ['p1'], { settings: own });
    await load(bench(), late.id, [stored(1, 'p1', { title: 'late' })]);
    await night(table, [stored(1, 'p1', { title: 'newer' })]);
    await publish(bench(), late.id, NOW);
    expect(await changes(table)).toEqual([['p1', 'title', 'Title 1', 'newer']]);
  });
});

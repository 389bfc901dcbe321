/** A mapping with `rows`: one product, many rows of the result table. */
import { expect, it } from 'vitest';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import { readVerifyFacts } from '../../../../orchestrator/core/db/verify-queries.ts';
import {
  NOW,
  ROWS_MAPPING,
  createRun,
  failed,
  gone,
  keyed,
  load,
  onBothEngines,
  settings,
  storedRows,
  toLoading,
  bound,
  COMPLETE,
  publish,
} from './harness.ts';

onBothEngines('A mapping with rows', (bench, engine) => {
  let tables = 0;
  const newTable = (): string => `reviews_${engine}_${++tables}`;
  const withRows = (table: string, onGone: 'keep' | 'delete' = 'keep') => settings(table, { onGone }, ROWS_MAPPING);

  const rowsIn = async (table: string): Promise<string[]> => {
    const rows = (await bench().db.knex(table).orderBy(['product_id', 'row_key'])) as Record<string, unknown>[];
    return rows.map((r) => `${String(r.product_id)}/${String(r.row_key)}: ${String(r.title)}`);
  };
  const staged = (id: string): Promise<string[]> => rowsIn(`crawlfleet_staging_${id}`);

  /** A whole run of one part into the table. */
  async function crawl(table: string, results: readonly ItemResult[], onGone: 'keep' | 'delete' = 'keep') {
    const ids = results.map((r) => r.id);
    const { id } = await createRun(bench(), ids, { settings: withRows(table, onGone) });
    await load(bench(), id, results);
    const published = await publish(bench(), id, NOW + ++tables);
    return { id, ...published };
  }

  /** A table of the user's that refuses a row with `poison`; in staging, SQLite checks types only by NOT NULL. */
  async function strictTable() {
    const table = newTable();
    const mysql = engine === 'mysql';
    const text = mysql ? 'varchar(100) collate utf8mb4_nopad_bin' : 'text';
    const price = mysql ? 'price smallint' : 'price int not null';
    await bench().db.knex.raw(
      `create table ${table} (product_id ${text} not null, row_key ${text} not null, title text, ${price}, weight double precision, tags text, run_id varchar(64), url text, crawled_at varchar(30), primary key (product_id, row_key))`,
    );
    return { table, poison: { price: mysql ? 40_000 : null } };
  }

  it('stores every record of a product, none for a page without any, and counts them in the ledger', async () => {
    const { id } = await createRun(bench(), 4, { settings: withRows(newTable()) });
    const results = [
      storedRows(1, [keyed('b', { title: 'second' }), keyed('a', { title: 'first' }), keyed('A', { title: 'other' })]),
      storedRows(2, []),
      storedRows(3, [keyed('a ', { title: null }), keyed('a', { title: '日本語' })]),
      gone(4),
    ];
    expect(await load(bench(), id, results)).toEqual({ stored: 3, gone: 1, failed: 0 });
    expect(new Set(await staged(id))).toEqual(
      new Set(['p1/A: other', 'p1/a: first', 'p1/b: second', 'p3/a: 日本語', 'p3/a : null']),
    );
    const { knex } = bench().db;
    const items = (await knex('crawlfleet_items').where({ run_id: id }).orderBy('n')) as { result_rows: unknown }[];
    expect(items.map((i) => i.result_rows)).toEqual([3, 0, 2, null]);
    expect(await knex('crawlfleet_parts').where({ run_id: id }).first('result_rows')).toEqual({ result_rows: 5 });
  });

  it('keeps the first of two records with the same key', async () => {
    const { id } = await createRun(bench(), 1, { settings: withRows(newTable()) });
    const rows = [keyed('a', { title: 'first' }), keyed('a', { title: 'again' }), keyed('b', { title: 'x' })];
    await load(bench(), id, [storedRows(1, rows)]);
    expect(await staged(id)).toEqual(['p1/a: first', 'p1/b: x']);
  });

  it('changes nothing when a part is loaded again, and keeps the first outcome of a product', async () => {
    const { id } = await createRun(bench(), 2, { settings: withRows(newTable()) });
    const first = await load(bench(), id, [storedRows(1, [keyed('a', { title: 'first' })])]);
    const again = [storedRows(1, [keyed('a', { title: 'late' }), keyed('b', { title: 'late' })]), storedRows(2, [])];
    expect(await load(bench(), id, again)).toEqual(first);
    expect(await load(bench(), id, again, { slot: 1, seq: 0 })).toEqual({ stored: 1, gone: 0, failed: 0 });
    expect(await staged(id)).toEqual(['p1/a: first']);
  });

  it('fails a product if one of its rows is refused, with none of its rows stored', async () => {
    const { table, poison } = await strictTable();
    const { knex } = bench().db;
    const run = await createRun(bench(), 300, { settings: withRows(table), chunkSize: 100 });
    const bad = new Map([
      [7, 0],
      [8, 9],
      [150, 5],
      [300, 9],
    ]);
    const results = Array.from({ length: 300 }, (_, i) => {
      const rows = Array.from({ length: 10 }, (__, k) =>
        keyed(`k${k}`, { price: 1, ...(bad.get(i + 1) === k ? poison : {}) }),
      );
      return storedRows(i + 1, rows);
    });
    expect(await load(bench(), run.id, results)).toEqual({ stored: 296, gone: 0, failed: 4 });
    const items = await knex('crawlfleet_items').where({ run_id: run.id, outcome: 'failed' }).orderBy('n');
    expect(items.map((i) => Number(i.n))).toEqual([...bad.keys()]);
    expect(items[0]).toMatchObject({ reason: 'load', result_rows: null });
    expect(items[0]?.detail).toMatch(/ in column price$/);
    const rows = await staged(run.id);
    expect(rows).toHaveLength(2_960);
    expect(rows.filter((r) => /^p(7|8|150|300)\//.test(r))).toEqual([]);
    expect(await knex('crawlfleet_parts').where({ run_id: run.id }).first('result_rows')).toEqual({
      result_rows: 2_960,
    });
  });

  it('stores no row of a part of which every row is refused, with one delete for all of its products', async () => {
    const { table, poison } = await strictTable();
    const { knex } = bench().db;
    const run = await createRun(bench(), 50, { settings: withRows(table), chunkSize: 100 });
    const rows = Array.from({ length: 100 }, (_, k) => keyed(`k${k}`, poison));
    let statements = 0;
    const count = (): void => void statements++;
    knex.on('query', count);
    const results = Array.from({ length: 50 }, (_, i) => storedRows(i + 1, rows));
    try {
      expect(await load(bench(), run.id, results)).toEqual({ stored: 0, gone: 0, failed: 50 });
    } finally {
      knex.off('query', count);
    }
    expect(await staged(run.id)).toEqual([]);
    // The inserts do not pass through knex.
    expect(statements).toBeLessThan(50);
  });

  it('fails products whose records have no key, one that is too long, or a value of the wrong type', async () => {
    const { id } = await createRun(bench(), 5, { settings: withRows(newTable()) });
    const results = [
      storedRows(1, [keyed('x'.repeat(255))]),
      storedRows(2, [keyed('a'), keyed('x'.repeat(256))]),
      storedRows(3, [keyed('a'), keyed(null)]),
      storedRows(4, [keyed('a'), keyed('b', { price: 'much' })]),
      storedRows(5, [keyed('日'.repeat(255))]),
    ];
    expect(await load(bench(), id, results)).toEqual({ stored: 2, gone: 0, failed: 3 });
    const items = await bench().db.knex('crawlfleet_items').where({ run_id: id, reason: 'load' }).orderBy('n');
    expect(items.map((i) => i.detail)).toEqual([
      'more than 255 characters in column row_key',
      'a record without a key for column row_key',
      'not a whole number in column price',
    ]);
    expect((await staged(id)).map((r) => r.slice(0, 3))).toEqual(['p1/', 'p5/']);
  });

  it('fails a product of a mapping without rows that comes with many records or a key', async () => {
    const { id } = await createRun(bench(), 4);
    const results = [
      storedRows(1, [keyed(null), keyed(null)]),
      storedRows(2, []),
      storedRows(3, [keyed('a')]),
      storedRows(4, [keyed(null)]),
    ];
    expect(await load(bench(), id, results)).toEqual({ stored: 1, gone: 0, failed: 3 });
    const items = await bench().db.knex('crawlfleet_items').where({ run_id: id, n: 1 });
    expect(items[0]?.detail).toBe('2 records, where the mapping gives one without a key');
  });

  it('publishes all rows once', async () => {
    const table = newTable();
    const { id, rows } = await crawl(table, [storedRows(1, [keyed('b'), keyed('a')]), storedRows(2, []), failed(3)]);
    expect(rows).toBe(2);
    expect(await rowsIn(table)).toEqual(['p1/a: Title 1', 'p1/b: Title 1']);
    await bench().db.knex(table).where({ row_key: 'a' }).update({ title: 'touched by the user' });
    expect(await bound(bench(), id).results.publish('completed', COMPLETE)).toEqual({ rows: 2 });
    expect(await rowsIn(table)).toEqual(['p1/a: touched by the user', 'p1/b: Title 1']);
    expect(await bound(bench(), id).results.resultRows(1)).toMatchObject({
      rows: 2,
      sample: [{ product_id: 'p1', row_key: 'a' }],
    });
  });

  it('replaces the rows of the products a run has stored, and keeps those of other products', async () => {
    const table = newTable();
    const title = (text: string) => ({ title: text });
    await crawl(table, [
      storedRows(1, [keyed('a', title('1')), keyed('b', title('1')), keyed('c', title('1'))]),
      storedRows(2, [keyed('a', title('1'))]),
      storedRows(3, [keyed('a', title('1'))]),
      storedRows(4, [keyed('a', title('1'))]),
    ]);
    const second = await crawl(table, [
      storedRows(1, [keyed('b', title('2')), keyed('d', title('2'))]),
      storedRows(2, []),
      failed(3),
      gone(4),
    ]);
    expect(second.rows).toBe(2);
    expect(await rowsIn(table)).toEqual(['p1/b: 2', 'p1/d: 2', 'p3/a: 1', 'p4/a: 1']);
  });

  it('deletes all rows of gone products when the configuration requires it', async () => {
    const table = newTable();
    await crawl(table, [storedRows(1, [keyed('a'), keyed('b')]), storedRows(2, [keyed('a')])]);
    await crawl(table, [gone(1), failed(2)], 'delete');
    expect(await rowsIn(table)).toEqual(['p2/a: Title 2']);
  });

  it('changes neither rows nor run where a row cannot be deleted, and says whose it is', async () => {
    const table = newTable();
    await crawl(table, [storedRows(1, [keyed('a', { title: '1' }), keyed('b', { title: '1' })])]);
    const { id, results } = await createRun(bench(), 1, { settings: withRows(table) });
    await load(bench(), id, [storedRows(1, [keyed('a', { title: '2' })])]);
    await toLoading(bench(), id);
    const { knex } = bench().db;
    const trigger =
      engine === 'mysql' ? `signal sqlstate '45000' set message_text = 'no'` : `select raise(abort, 'no')`;
    await knex.raw(`create trigger ${table}_no before delete on ${table} for each row begin ${trigger}; end`);
    expect(await results.publish('completed', COMPLETE)).toMatchObject({
      refused: { complete: true, refusals: [{ id: 'p1', reason: 'load' }] },
    });
    expect(await rowsIn(table)).toEqual(['p1/a: 1', 'p1/b: 1']);
    expect(await bench().stores.runs.get(id)).toMatchObject({ phase: 'loading' });
  });

  it('may have whole numbers as product_id and row_key', async () => {
    const table = newTable();
    await bench().db.knex.raw(
      `create table ${table} (product_id bigint not null, row_key bigint not null, title text, price bigint, weight double precision, tags text, run_id varchar(64), url text, crawled_at varchar(30), primary key (product_id, row_key))`,
    );
    const [one, two] = ['9007199254740993', '9007199254740992'];
    await crawl(table, [storedRows(1, [keyed('1'), keyed('2')], one), storedRows(2, [keyed('1')], two)]);
    // A row of the product that was written outside of any run.
    await bench().db.knex(table).where({ row_key: 1 }).whereNot({ title: 'Title 2' }).update({ run_id: null });
    const second = await crawl(table, [storedRows(1, [keyed('2')], one), storedRows(2, [keyed('01')], two)]);
    expect(second.rows).toBe(1);
    const cast = (column: string) => (engine === 'mysql' ? `cast(${column} as char)` : `cast(${column} as text)`);
    const found = (await bench()
      .db.knex(table)
      .select(bench().db.knex.raw(`${cast('product_id')} as id, ${cast('row_key')} as row_key`), 'run_id')
      .orderBy(['product_id', 'row_key'])) as { id: string; row_key: string; run_id: string }[];
    expect(found.map((r) => [r.id, r.row_key, r.run_id === second.id])).toEqual([
      [two, '1', false],
      [one, '2', true],
    ]);
  });

  it('is verified row by row, whatever later runs have replaced', async () => {
    const table = newTable();
    const first = await crawl(table, [
      storedRows(1, [keyed('a'), keyed('b')]),
      storedRows(2, []),
      storedRows(3, [keyed('a'), keyed('b'), keyed('c')]),
      storedRows(4, [keyed('a')]),
      storedRows(5, [keyed('a')]),
    ]);
    const none = { count: 0, examples: [] };
    expect(await readVerifyFacts(bench().db, first.id)).toMatchObject({
      outcomes: { stored: 5 },
      ledgerRows: 7,
      resultRows: 7,
      replacedRows: 0,
      partsOff: none,
      storedWithoutRow: none,
      rowsOff: none,
      overwritten: none,
      rowsWithoutItem: none,
    });
    const second = await crawl(
      table,
      [storedRows(3, [keyed('a')]), storedRows(4, []), gone(5)].map(renumber),
      'delete',
    );
    expect(await readVerifyFacts(bench().db, first.id)).toMatchObject({
      ledgerRows: 7,
      resultRows: 2,
      replacedRows: 5,
      storedWithoutRow: none,
      rowsOff: none,
      overwritten: { count: 3 },
    });
    expect(await readVerifyFacts(bench().db, second.id)).toMatchObject({ ledgerRows: 1, resultRows: 1, rowsOff: none });
  });

  it('fails verification when rows are gone or foreign, or the ledger of a part is wrong', async () => {
    const table = newTable();
    const { id } = await crawl(table, [
      storedRows(1, [keyed('a'), keyed('b')]),
      storedRows(2, [keyed('a')]),
      storedRows(3, []),
    ]);
    const { knex } = bench().db;
    await knex(table).where({ product_id: 'p1', row_key: 'b' }).delete();
    await knex(table).where({ product_id: 'p2' }).delete();
    const stranger = { run_id: id, url: '', crawled_at: '2026-01-01 00:00:00' };
    await knex(table).insert([
      { product_id: 'p3', row_key: 'x', ...stranger },
      { product_id: 'p9', row_key: 'x', ...stranger },
      { product_id: 'p9', row_key: 'y', ...stranger },
    ]);
    await knex('crawlfleet_parts').where({ run_id: id }).update({ result_rows: 4 });
    expect(await readVerifyFacts(bench().db, id)).toMatchObject({
      ledgerRows: 3,
      resultRows: 4,
      partsOff: { count: 1, examples: ['0/1/0'] },
      rowsOff: { count: 2, examples: ['p1', 'p3'] },
      storedWithoutRow: { count: 1, examples: ['p2'] },
      rowsWithoutItem: { count: 2, examples: ['p9'] },
    });
  });
});

/** The same results as the products 1, 2, 3 … of another plan. */
function renumber(result: ItemResult, index: number): ItemResult {
  return { ...result, n: index + 1 };
}

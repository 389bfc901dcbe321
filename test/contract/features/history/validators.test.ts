/** `site.conditional`: which products are asked for conditionally, and what a 304 does to their rows. */
import { expect, it } from 'vitest';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import type { RunSettings } from '../../../../orchestrator/core/model/run-settings.ts';
import type { Validators } from '../../../../shared/domain/validators.ts';
import {
  allRows,
  bound,
  createRun,
  field,
  keyed,
  load,
  mappingOf,
  NOW,
  onBothEngines,
  publish,
  readFacts,
  ROWS_MAPPING,
  settings,
  stored,
  storedRows,
  type TestRun,
} from '../../core/db/harness.ts';

const page = (n: number) => ({ etag: `"v${n}"`, modified: 'Sat, 21 Nov 2026 02:15:30 GMT', bytes: 1_000 + n });
const validators = (n: number): Validators => ({ etag: page(n).etag, modified: page(n).modified });
const named = (result: ItemResult): ItemResult => ({ ...result, page: page(result.n) }) as ItemResult;
/** The page has changed, and its name with it. */
const renewed = { etag: '"new"', bytes: 1 };
const changed = (n: number): ItemResult => ({ ...stored(n, `p${n}`, { title: 'new' }), page: renewed }) as ItemResult;
const LATER = '2026-11-22T02:15:30.123Z';
const unchanged = (n: number, of = validators(n)): ItemResult =>
  ({ ...storedRows(n, []), at: LATER, unchanged: of }) as ItemResult;
const AFTER_304 = '304), but its rows are no longer in the result table as they were';

onBothEngines('Conditional requests', (bench, engine) => {
  let tables = 0;
  const newTable = (): string => `kept_${engine}_${++tables}`;
  /** A run of p1, p2 … into the table, under the fingerprint f1 unless told otherwise. */
  const night = (
    table: string,
    products: number,
    more: Partial<RunSettings['results']> = {},
    mapping?: RunSettings['mapping'],
  ) =>
    createRun(bench(), products, {
      settings: settings(table, { conditional: 'f1', history: 'changes', ...more }, mapping),
    });
  const crawled = async (
    table: string,
    results: readonly ItemResult[],
    mapping?: RunSettings['mapping'],
  ): Promise<TestRun> => {
    const run = await night(table, results.length, {}, mapping);
    await load(bench(), run.id, results);
    await publish(bench(), run.id);
    return run;
  };
  const offered = async ({ id }: TestRun, nowMs = NOW): Promise<(Validators | undefined)[]> => {
    const chunks = await bound(bench(), id, { nowMs }).work.waiting(10, new Set());
    return chunks.flatMap((chunk) => chunk.products.map((p) => p.validators));
  };
  const withoutRun = (rows: Record<string, unknown>[]) => rows.map(({ run_id: _run, crawled_at: _at, ...row }) => row);
  const outcome = (run: TestRun, n: number) =>
    bench()
      .db.knex('crawlfleet_items')
      .where({ run_id: run.id, n })
      .first<{ outcome: string; reason: string; detail: string }>();

  it('are offered for products whose rows stand, under the same fingerprint', async () => {
    const table = newTable();
    expect(await offered(await night(table, 2))).toEqual([undefined, undefined]);
    await crawled(table, [named(stored(1)), stored(2), named(stored(3))]);
    expect(await offered(await night(table, 4))).toEqual([validators(1), undefined, validators(3), undefined]);
    expect(await offered(await night(table, 3, { conditional: 'f2' }))).toEqual([undefined, undefined, undefined]);
    const off = await createRun(bench(), 3, { settings: settings(table) });
    expect(await offered(off)).toEqual([undefined, undefined, undefined]);
  });

  it('are not offered once the row was deleted, or written by anything else', async () => {
    const table = newTable();
    await crawled(table, [named(stored(1)), named(stored(2)), named(stored(3))]);
    await bench().db.knex(table).where({ product_id: 'p1' }).delete();
    const other = await createRun(bench(), ['p2'], { settings: settings(table) });
    await load(bench(), other.id, [stored(1, 'p2', { title: 'by a run without conditions' })]);
    await publish(bench(), other.id);
    expect(await offered(await night(table, 3))).toEqual([undefined, undefined, validators(3)]);
  });

  it('leave the rows of an unchanged page as they are, and its name for the next night', async () => {
    const table = newTable();
    const first = [
      named(stored(1, 'p1', { title: "It's “ü”\n", price: null, tags: [] })),
      named(stored(2)),
      named(stored(3)),
    ];
    await crawled(table, first);
    const before = await allRows(bench(), table);
    const run = await night(table, 3);
    const part = [unchanged(1), changed(2), unchanged(3)];
    expect(await load(bench(), run.id, part)).toEqual({ stored: 3, gone: 0, failed: 0 });
    expect(await load(bench(), run.id, part)).toEqual({ stored: 3, gone: 0, failed: 0 });
    expect(await bound(bench(), run.id).results.totals()).toMatchObject({
      stored: 3,
      unchanged: { products: 2, savedBytes: 1_001 + 1_003 },
    });
    await publish(bench(), run.id);
    const after = await allRows(bench(), table);
    expect(withoutRun(after)).toEqual(withoutRun(before).map((row, i) => (i === 1 ? { ...row, title: 'new' } : row)));
    expect(after.map((row) => row.run_id)).toEqual([run.id, run.id, run.id]);
    expect(new Date(after[0]!.crawled_at as string).toISOString()).toBe(LATER);
    const changes = await bench().db.knex(`${table}_history`).select('product_id', 'field', 'new_value');
    expect(changes).toEqual([{ product_id: 'p2', field: 'title', new_value: 'new' }]);
    expect(await offered(await night(table, 3))).toEqual([validators(1), { etag: renewed.etag }, validators(3)]);
    expect(await readFacts(bench(), run.id)).toMatchObject({
      resultRows: 3,
      ledgerRows: 3,
      partsOff: { count: 0 },
      storedWithoutRow: { count: 0 },
      rowsWithoutItem: { count: 0 },
    });
  });

  it('copy rows of a table with types of its own', async () => {
    const table = newTable();
    const types =
      engine === 'mysql'
        ? 'product_id bigint not null primary key, title varchar(90) character set latin1, price decimal(9,2), weight float, tags json, run_id varchar(40) character set latin1 not null, url text not null, crawled_at timestamp(3) not null'
        : 'product_id integer not null primary key, title text, price numeric, weight real, tags text, run_id text collate nocase not null, url text not null, crawled_at numeric not null';
    await bench().db.knex.raw(`create table ${table} (${types})`);
    const one = (result: ItemResult): ItemResult => ({ ...result, id: '9007199254740993' });
    const of = settings(table, { conditional: 'f1' });
    for (const result of [named(stored(1, 'p1', { title: 'é', price: 7, weight: 0.1 })), unchanged(1), unchanged(1)]) {
      const run = await createRun(bench(), ['9007199254740993'], { settings: of });
      const before = await allRows(bench(), table);
      expect(await offered(run)).toEqual([before.length === 0 ? undefined : validators(1)]);
      await load(bench(), run.id, [one(result)]);
      await publish(bench(), run.id);
      if (before.length > 0) expect(withoutRun(await allRows(bench(), table))).toEqual(withoutRun(before));
    }
  });

  it('keep all records of a page, and count none without records', async () => {
    const table = newTable();
    const records = [keyed('a'), keyed('b', { price: 7 })];
    await crawled(table, [named(storedRows(1, records)), named(storedRows(2, []))], ROWS_MAPPING);
    const before = await bench().db.knex<Record<string, unknown>>(table).orderBy('row_key');
    const run = await night(table, 2, {}, ROWS_MAPPING);
    expect(await offered(run)).toEqual([validators(1), undefined]);
    await load(bench(), run.id, [unchanged(1), named(storedRows(2, [keyed('c')]))]);
    await publish(bench(), run.id);
    const after = await bench().db.knex<Record<string, unknown>>(table).where({ product_id: 'p1' }).orderBy('row_key');
    expect(withoutRun(after)).toEqual(withoutRun(before));
    await bench().db.knex(table).where({ row_key: 'b' }).delete();
    expect(await offered(await night(table, 2, {}, ROWS_MAPPING))).toEqual([undefined, validators(2)]);
  });

  it('fail a product whose row has vanished or changed meanwhile, and the next night reads it whole', async () => {
    const table = newTable();
    await crawled(table, [named(stored(1)), named(stored(2)), named(stored(3))]);
    const run = await night(table, 3);
    await bench().db.knex(table).where({ product_id: 'p1' }).delete();
    const part = [unchanged(1), unchanged(2, { etag: '"another"' }), unchanged(3)];
    expect(await load(bench(), run.id, part)).toEqual({ stored: 1, gone: 0, failed: 2 });
    for (const n of [1, 2]) {
      const { reason, detail } = await outcome(run, n);
      expect([reason, detail]).toEqual(['load', expect.stringContaining(AFTER_304) as string]);
    }
    expect(await bound(bench(), run.id).results.totals()).toMatchObject({
      unchanged: { products: 1, savedBytes: 1_003 },
    });
    await publish(bench(), run.id);
    expect((await allRows(bench(), table)).map((row) => row.product_id)).toEqual(['p2', 'p3']);
    // The row of p2 stands as the first night has read it.
    expect(await offered(await night(table, 3))).toEqual([undefined, validators(2), validators(3)]);
  });

  it('never speak for a run that was cancelled, or that a newer one has overtaken', async () => {
    const table = newTable();
    const old = await night(table, 2);
    await crawled(table, [named(stored(1))]);
    await load(bench(), old.id, [
      { ...named(stored(1)), page: { etag: '"old"', bytes: 1 } } as ItemResult,
      named(stored(2)),
    ]);
    await publish(bench(), old.id);
    expect(await offered(await night(table, 2))).toEqual([validators(1), validators(2)]);
    const cancelled = await night(table, 2);
    await load(bench(), cancelled.id, [{ ...named(stored(1)), page: { etag: '"no"', bytes: 1 } } as ItemResult]);
    await bench().stores.runs.setRequest(cancelled.id, 'cancel');
    await publish(bench(), cancelled.id);
    expect(await offered(await night(table, 2))).toEqual([validators(1), validators(2)]);
  });

  it('are no obstacle to loading the run again once its ledger is lost', async () => {
    const table = newTable();
    await crawled(table, [named(stored(1)), named(stored(2))]);
    const run = await night(table, 2);
    const part = [unchanged(1), changed(2)];
    await load(bench(), run.id, part);
    await publish(bench(), run.id);
    const before = await allRows(bench(), table);
    for (const family of ['runs', 'items', 'chunks', 'parts'])
      await bench()
        .db.knex(`crawlfleet_${family}`)
        .where(family === 'runs' ? { id: run.id } : { run_id: run.id })
        .delete();
    await bench().stores.runs.create(run.created, ['p1', 'p2'], bench().fence, run.created.startedAtMs);
    expect(await load(bench(), run.id, part)).toEqual({ stored: 2, gone: 0, failed: 0 });
    await publish(bench(), run.id);
    expect(await allRows(bench(), table)).toEqual(before);
    expect(await offered(await night(table, 2))).toEqual([validators(1), { etag: renewed.etag }]);
  });

  it('refuse a 304 in a run that asks without conditions', async () => {
    const { id } = await createRun(bench(), 1);
    expect(await load(bench(), id, [unchanged(1)])).toEqual({ stored: 0, gone: 0, failed: 1 });
  });

  it('are not offered for a page that was last read whole one to two weeks ago, by its ID', async () => {
    const table = newTable();
    const days = (count: number): number => NOW + count * 86_400_000;
    const numbers = Array.from({ length: 40 }, (_, i) => i + 1);
    await crawled(
      table,
      numbers.map((n) => named(stored(n))),
    );
    const run = await night(table, 40);
    const asked = async (nowMs: number): Promise<number> =>
      (await offered(run, nowMs)).filter((name) => name !== undefined).length;
    expect(await asked(days(6.9))).toBe(40);
    expect(await asked(days(10.5))).toBeGreaterThan(8);
    expect(await asked(days(10.5))).toBeLessThan(32);
    expect(await asked(days(14.1))).toBe(0);
    // A 304 does not make a page younger.
    await load(
      bench(),
      run.id,
      numbers.map((n) => unchanged(n)),
    );
    await publish(bench(), run.id);
    expect((await offered(await night(table, 40), days(14.1))).every((name) => name === undefined)).toBe(true);
  });

  it('end for the site when a page has other values under the same name, with one alarm', async () => {
    const table = newTable();
    await crawled(table, [named(stored(1)), named(stored(2)), named(stored(3)), named(stored(4))]);
    const run = await night(table, 4);
    expect(await offered(run)).toEqual([1, 2, 3, 4].map(validators));
    // The same page as before is no proof, nor is a new name with new values.
    await load(bench(), run.id, [named(stored(1)), changed(2)]);
    expect(await offered(run)).toEqual([3, 4].map(validators));
    await load(bench(), run.id, [named(stored(3, 'p3', { price: 1 }))], { slot: 0, seq: 1 });
    await load(bench(), run.id, [unchanged(4)], { slot: 0, seq: 2 });
    const alarms = await bound(bench(), run.id).run.events(10, 'alarm');
    expect(alarms.map(({ detail }) => detail)).toEqual([
      expect.stringContaining('the page of p3 has other values under the same ETag "v3"'),
    ]);
    await publish(bench(), run.id);
    expect((await allRows(bench(), table)).map((row) => Number(row.price))).toEqual([100, 200, 1, 400]);
    for (const conditional of ['f1', 'f2']) {
      const next = await night(table, 4, { conditional });
      expect(await offered(next)).toEqual([undefined, undefined, undefined, undefined]);
      await load(
        bench(),
        next.id,
        [1, 2, 3, 4].map((n) => named(stored(n))),
      );
      await publish(bench(), next.id);
    }
    // A new fingerprint begins anew.
    expect(await offered(await night(table, 4, { conditional: 'f2' }))).toEqual([1, 2, 3, 4].map(validators));
  });

  it('read ambiguous numbers as if every page had been read', async () => {
    const table = newTable();
    const mapping = mappingOf([field('price', { type: 'number' })]);
    const price = (n: number, row: object, mark?: ',' | '.'): ItemResult =>
      named({
        ...storedRows(n, []),
        rows: [{ key: null, row, ...(mark && { marks: { price: mark } }) }],
      } as ItemResult);
    const unread = { text: '1.234', point: 1.234, comma: 1_234 };
    await crawled(table, [price(1, { price: 9.5 }, ','), price(2, { price: unread })], mapping);
    const run = await night(table, 2, {}, mapping);
    // An ambiguous number may be read otherwise once the column shows more.
    expect(await offered(run)).toEqual([validators(1), undefined]);
    await load(bench(), run.id, [
      unchanged(1),
      price(2, { price: { ...unread, text: '2.345', point: 2.345, comma: 2_345 } }),
    ]);
    await publish(bench(), run.id);
    expect((await allRows(bench(), table)).map((row) => Number(row.price))).toEqual([9.5, 2_345]);
  });
});

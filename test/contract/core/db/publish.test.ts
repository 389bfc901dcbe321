import { expect, it } from 'vitest';
import { readVerifyFacts } from '../../../../orchestrator/core/db/verify-queries.ts';
import {
  NOW,
  allRows,
  createRun,
  failed,
  gone,
  itWithSql,
  load,
  onEveryEngine,
  readFacts,
  settings,
  stored,
  toLoading,
  touchRow,
  bound,
  COMPLETE,
  publish,
} from './harness.ts';

onEveryEngine('Publishing', (bench, engine) => {
  it('puts all rows into the result table together with the end of the run, once', async () => {
    const { runs } = bench().stores;
    const { id, table, results } = await createRun(bench(), 4);
    await load(bench(), id, [stored(2), stored(1), gone(3), failed(4)]);
    await toLoading(bench(), id);
    expect(await allRows(bench(), table)).toEqual([]);
    expect(await bound(bench(), id, { nowMs: NOW + 5 }).results.publish('completed', COMPLETE)).toEqual({ rows: 2 });
    expect(await runs.get(id)).toMatchObject({ phase: 'completed', exitCode: 0, reason: null, finishedAtMs: NOW + 5 });
    expect((await bench().stores.of(id).run.events(1))[0]).toMatchObject({ from: 'loading', to: 'completed' });
    const rows = await allRows(bench(), table);
    expect(rows.map((r) => [r.product_id, r.title, r.run_id, r.url])).toEqual([
      ['p1', 'Title 1', id, 'https://shop.example/item/1'],
      ['p2', 'Title 2', id, 'https://shop.example/item/2'],
    ]);

    await touchRow(bench(), table, 'p1', { title: 'touched by the user' });
    expect(
      await bound(bench(), id, { nowMs: NOW + 6 }).results.publish('failed', { exitCode: 12, reason: 'x' }),
    ).toEqual({
      rows: 2,
    });
    expect((await allRows(bench(), table))[0]?.title).toBe('touched by the user');
    expect(await runs.get(id)).toMatchObject({ phase: 'completed', exitCode: 0 });
    await results.dropStaging();
    await results.dropStaging();
    expect(await bound(bench(), id, { nowMs: NOW + 7 }).results.publish('completed', COMPLETE)).toEqual({ rows: 2 });
  });

  itWithSql(engine)('updates rows of earlier runs and keeps products it did not store', async () => {
    const own = settings(`shared_${engine}`);
    const first = await createRun(bench(), 3, { settings: own });
    await load(bench(), first.id, [stored(1), stored(2), stored(3)]);
    await publish(bench(), first.id);
    const second = await createRun(bench(), 3, { settings: own });
    await load(bench(), second.id, [stored(1, 'p1', { title: null }), failed(2), gone(3)]);
    expect(await publish(bench(), second.id)).toEqual({
      rows: 1,
    });
    const rows = await allRows(bench(), own.results.table);
    expect(rows.map((r) => [r.product_id, r.title, r.run_id])).toEqual([
      ['p1', null, second.id],
      ['p2', 'Title 2', first.id],
      ['p3', 'Title 3', first.id],
    ]);
    expect(await first.results.resultRows(1)).toMatchObject({
      rows: 2,
      sample: [{ product_id: 'p2', crawled_at: '2026-11-21T02:15:30.123Z' }],
    });
  });

  itWithSql(engine)('deletes the rows of gone products when the configuration requires it', async () => {
    const table = `deleting_${engine}`;
    const ids = ['p1', 'p2', 'P2', 'p2 '];
    const first = await createRun(bench(), ids, { settings: settings(table) });
    await load(
      bench(),
      first.id,
      ids.map((id, i) => stored(i + 1, id)),
    );
    await publish(bench(), first.id);
    const second = await createRun(bench(), ['p2'], { settings: settings(table, { onGone: 'delete' }) });
    await load(bench(), second.id, [gone(1, 'p2')]);
    await publish(bench(), second.id);
    expect(new Set((await allRows(bench(), table)).map((r) => r.product_id))).toEqual(new Set(['p1', 'P2', 'p2 ']));
  });

  itWithSql(engine)('publishes into a table whose product_id is a big integer, exactly', async () => {
    const table = `numbers_${engine}`;
    await bench().db.knex.raw(
      `create table ${table} (product_id bigint not null primary key, title text, price bigint, weight double precision, tags text, run_id varchar(64), url text, crawled_at varchar(30))`,
    );
    const ids = ['9007199254740993', '9007199254740992', '7'];
    const first = await createRun(bench(), ids, { settings: settings(table) });
    await load(
      bench(),
      first.id,
      ids.map((id, i) => stored(i + 1, id)),
    );
    await publish(bench(), first.id);
    const second = await createRun(bench(), ids, { settings: settings(table, { onGone: 'delete' }) });
    await load(bench(), second.id, [gone(1, ids[0]), stored(2, ids[1])]);
    await publish(bench(), second.id);
    const cast = engine === 'mysql' ? 'char' : 'text';
    const rows = (await bench()
      .db.knex(table)
      .select(bench().db.knex.raw(`cast(product_id as ${cast}) as id`), 'run_id')
      .orderBy('product_id')) as unknown[];
    expect(rows).toEqual([
      { id: '7', run_id: first.id },
      { id: '9007199254740992', run_id: second.id },
    ]);
  });

  itWithSql(engine)('updates the case of product_id where the key ignores case', async () => {
    const table = `caseless_${engine}`;
    const key = engine === 'mysql' ? 'varchar(100) collate utf8mb4_general_ci' : 'text collate nocase';
    await bench().db.knex.raw(
      `create table ${table} (product_id ${key} not null primary key, title text, price bigint, weight double precision, tags text, run_id varchar(64), url text, crawled_at varchar(30))`,
    );
    for (const id of ['SKU-1', 'sku-1']) {
      const run = await createRun(bench(), [id], { settings: settings(table) });
      await load(bench(), run.id, [stored(1, id)]);
      await publish(bench(), run.id);
      expect((await allRows(bench(), table)).map((r) => r.product_id)).toEqual([id]);
      const facts = await readVerifyFacts(bench().db, run.id);
      expect(facts).toMatchObject({ resultRows: 1, rowsWithoutItem: { count: 0 }, storedWithoutRow: { count: 0 } });
    }
  });

  it('publishes no rows of a cancelled run, but those of a stopped one', async () => {
    for (const [request, rows] of [
      ['cancel', 0],
      ['stop', 1],
    ] as const) {
      const { id, table, results } = await createRun(bench(), 1);
      await load(bench(), id, [stored(1)]);
      await toLoading(bench(), id);
      await bench().stores.runs.setRequest(id, request);
      const end = { exitCode: 11, reason: request } as const;
      expect(await results.publish('cancelled', end)).toEqual({ rows });
      expect(await allRows(bench(), table)).toHaveLength(rows);
    }
  });

  it('ends cancelled when the cancel came after the end was decided', async () => {
    const { runs } = bench().stores;
    const { id, table, results } = await createRun(bench(), 1);
    await load(bench(), id, [stored(1)]);
    await toLoading(bench(), id);
    await runs.setRequest(id, 'cancel');
    expect(await results.publish('completed', COMPLETE)).toEqual({ rows: 0 });
    expect(await runs.get(id)).toMatchObject({ phase: 'cancelled', exitCode: 11, reason: 'cancelled' });
    expect(await allRows(bench(), table)).toEqual([]);
  });

  itWithSql(engine)('does not overwrite what a run that began later has found, whichever ends first', async () => {
    const own = settings(`later_${engine}`, { onGone: 'delete' });
    const older = await createRun(bench(), 5, { settings: own });
    const newer = await createRun(bench(), 5, { settings: own });
    await load(bench(), newer.id, [
      stored(1, 'p1', { title: 'new' }),
      gone(2),
      failed(3),
      stored(4, 'p4', { title: 'new' }),
    ]);
    await load(bench(), older.id, [
      stored(1, 'p1', { title: 'old' }),
      stored(2, 'p2', { title: 'old' }),
      stored(3, 'p3', { title: 'old' }),
      gone(4),
      stored(5, 'p5', { title: 'old' }),
    ]);
    expect(await older.results.newerRuns()).toEqual([]);
    for (const run of [newer, older]) {
      await publish(bench(), run.id, NOW + 9);
    }
    expect(await older.results.newerRuns()).toEqual([newer.id]);
    expect(await newer.results.newerRuns()).toEqual([]);
    expect((await allRows(bench(), own.results.table)).map((r) => [r.product_id, r.title])).toEqual([
      ['p1', 'new'],
      ['p3', 'old'],
      ['p4', 'new'],
      ['p5', 'old'],
    ]);
    const facts = await readFacts(bench(), older.id);
    expect(facts).toMatchObject({ storedWithoutRow: { count: 0 }, overwritten: { count: 2 }, resultRows: 2 });
  });

  itWithSql(engine)(
    'publishes a held run once, with the time at which it was held, and over newer rows only with force',
    async () => {
      const own = settings(`held_${engine}`);
      const { runs } = bench().stores;
      const older = await createRun(bench(), 1, { settings: own });
      const newer = await createRun(bench(), 1, { settings: own });
      await load(bench(), older.id, [stored(1, 'p1', { title: 'old' })]);
      await load(bench(), newer.id, [stored(1, 'p1', { title: 'new' })]);
      await toLoading(bench(), older.id);
      await bound(bench(), older.id, { nowMs: NOW + 1 }).run.move('loading', 'held', { exitCode: 13, reason: 'blank' });
      await publish(bench(), newer.id, NOW + 2);
      expect(await bound(bench(), older.id, { nowMs: NOW + 3 }).results.publish('completed', COMPLETE)).toEqual({
        rows: 0,
      });
      expect(await runs.get(older.id)).toMatchObject({ phase: 'held' });
      const end = { ...COMPLETE, held: true, overNewer: true };
      expect(await bound(bench(), older.id, { nowMs: NOW + 4 }).results.publish('completed', end)).toEqual({ rows: 1 });
      expect(await runs.get(older.id)).toMatchObject({ phase: 'completed', exitCode: 0, finishedAtMs: NOW + 1 });
      expect((await allRows(bench(), own.results.table)).map((r) => [r.title, r.run_id])).toEqual([['old', older.id]]);
      expect(await bound(bench(), older.id, { nowMs: NOW + 5 }).results.publish('completed', end)).toEqual({ rows: 1 });
    },
  );

  it('refuses a run that is still crawling', async () => {
    const { results } = await createRun(bench(), 1);
    const publishing = results.publish('completed', COMPLETE);
    await expect(publishing).rejects.toMatchObject({ code: 'internal' });
  });

  itWithSql(engine)('changes neither table nor run when the upsert fails half-way', async () => {
    const { id, table, results } = await createRun(bench(), 2);
    await load(bench(), id, [stored(1), stored(2)]);
    await toLoading(bench(), id);
    const column = engine === 'mysql' ? 'drop column url' : 'rename column url to other';
    await bench().db.knex.raw(`alter table ${table} ${column}`);
    const publishing = results.publish('completed', COMPLETE);
    await expect(publishing).rejects.toMatchObject({ code: 'database-failed' });
    expect(await allRows(bench(), table)).toEqual([]);
    expect(await bench().stores.runs.get(id)).toMatchObject({ phase: 'loading' });
  });
});

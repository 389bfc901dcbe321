import { expect, it } from 'vitest';
import {
  type Bench,
  bound,
  createRun,
  failed,
  gone,
  itWithSql,
  load,
  NOW,
  onEveryEngine,
  publish,
  readFacts,
  settings,
  stored,
  toLoading,
  touchRow,
} from './harness.ts';

async function published(bench: Bench, table: string): Promise<string> {
  const ids = ['p1', 'p2', 'P2', 'p4 ', '日本語'];
  const { id } = await createRun(bench, ids, { settings: settings(table) });
  await load(bench, id, [stored(1), stored(2), stored(3, 'P2')]);
  await load(bench, id, [gone(4, 'p4 ')], { slot: 1, seq: 0 });
  await load(bench, id, [failed(5, 'x', '日本語')], { slot: 1, seq: 1 });
  await publish(bench, id);
  return id;
}

const EMPTY = { count: 0, examples: [] };

onEveryEngine('The facts for verify', (bench, engine) => {
  it('show no difference after a run without faults', async () => {
    const id = await published(bench(), `whole_${engine}`);
    expect(await readFacts(bench(), id)).toEqual({
      phase: 'completed',
      planned: 5,
      items: 5,
      outcomes: { stored: 3, gone: 1, failed: 1, open: 0 },
      reasons: { 'http-status': 1 },
      partial: { count: 0, examples: [] },
      refused: 0,
      duplicates: EMPTY,
      parts: { seen: 0, loaded: 3, failed: 0 },
      partsOff: EMPTY,
      withoutPart: EMPTY,
      ungranted: EMPTY,
      putAside: EMPTY,
      published: true,
      ledgerRows: 3,
      resultRows: 3,
      replacedRows: 0,
      storedWithoutRow: EMPTY,
      overwritten: EMPTY,
      rowsOff: EMPTY,
      rowsWithoutItem: EMPTY,
    });
  });

  itWithSql(engine)('name the products whose row is gone, came from elsewhere or belongs to a later run', async () => {
    const table = `holed_${engine}`;
    const id = await published(bench(), table);
    const { knex } = bench().db;
    await knex(table).where({ product_id: 'P2' }).delete();
    await knex(table).where({ product_id: 'p1' }).update({ run_id: 'later' });
    await knex(table).insert({ product_id: 'stranger', run_id: id, url: '', crawled_at: '2026-01-01 00:00:00' });
    expect(await readFacts(bench(), id)).toMatchObject({
      resultRows: 2,
      storedWithoutRow: { count: 1, examples: ['P2'] },
      overwritten: { count: 1, examples: ['p1'] },
      rowsWithoutItem: { count: 1, examples: ['stranger'] },
    });
  });

  itWithSql(engine)('count a row as replaced only when its run wins: older rows in its place are a loss', async () => {
    const table = `older_${engine}`;
    const older = await published(bench(), table);
    const newer = await published(bench(), table);
    expect(await readFacts(bench(), newer)).toMatchObject({ storedWithoutRow: EMPTY, overwritten: EMPTY });
    expect(await readFacts(bench(), older)).toMatchObject({ storedWithoutRow: EMPTY, overwritten: { count: 3 } });
    // As if the newer run's upsert had not written these.
    await touchRow(bench(), table, 'p1', { run_id: older });
    await touchRow(bench(), table, 'p2', { run_id: 'a person' });
    expect(await readFacts(bench(), newer)).toMatchObject({
      storedWithoutRow: { count: 1, examples: ['p1'] },
      overwritten: { count: 1, examples: ['p2'] },
    });
  });

  itWithSql(engine)('count rows as replaced that a person has released over them', async () => {
    const table = `forced_${engine}`;
    const { id, run } = await createRun(bench(), 1, { settings: settings(table) });
    await load(bench(), id, [stored(1)]);
    await toLoading(bench(), id);
    await run.move('loading', 'held', { exitCode: 13 });
    const newer = await published(bench(), table);
    const end = { exitCode: 0, reason: null, held: true, overNewer: true } as const;
    await bound(bench(), id, { nowMs: NOW + 1 }).results.publish('completed', end);
    const expected = { storedWithoutRow: EMPTY, overwritten: { count: 1, examples: ['p1'] } };
    expect(await readFacts(bench(), newer)).toMatchObject(expected);
  });

  itWithSql(engine)('name the parts whose counts do not match their items, and items without a part', async () => {
    const id = await published(bench(), `off_${engine}`);
    const { knex } = bench().db;
    await knex('crawlfleet_items').where({ run_id: id, n: 2 }).update({ outcome: null });
    await knex('crawlfleet_items').where({ run_id: id, n: 4 }).update({ seq: null });
    await knex('crawlfleet_items').where({ run_id: id, n: 5 }).update({ product_id: 'p1' });
    expect(await readFacts(bench(), id)).toMatchObject({
      outcomes: { open: 1 },
      duplicates: { count: 1, examples: ['p1'] },
      partsOff: { count: 2, examples: ['0/1/0', '1/1/0'] },
      withoutPart: { count: 1, examples: ['no part named'] },
    });
  });

  it('refuse a run that does not exist', async () => {
    await expect(readFacts(bench(), 'nope')).rejects.toMatchObject({ code: 'run-unknown' });
  });
});

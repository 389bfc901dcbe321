import { expect, it } from 'vitest';
import { readVerifyFacts } from '../../../orchestrator/db/verify-queries.ts';
import type { Bench } from './harness.ts';
import { NOW, createRun, failed, gone, load, onBothEngines, settings, stored, toLoading } from './harness.ts';

async function published(bench: Bench, table: string): Promise<string> {
  const ids = ['p1', 'p2', 'P2', 'p4 ', '日本語'];
  const { id } = await createRun(bench, ids, { settings: settings(table) });
  await load(bench, id, { slot: 0, seq: 0 }, [stored(1), stored(2), stored(3, 'P2')]);
  await load(bench, id, { slot: 1, seq: 0 }, [gone(4, 'p4 ')]);
  await load(bench, id, { slot: 1, seq: 1 }, [failed(5, 'x', '日本語')]);
  await toLoading(bench, id);
  await bench.stores.results.publish(id, 'completed', { exitCode: 0, reason: null }, bench.fence, NOW);
  return id;
}

const EMPTY = { count: 0, examples: [] };

onBothEngines('The facts for verify', (bench, engine) => {
  it('show no difference after a run without faults', async () => {
    const id = await published(bench(), `whole_${engine}`);
    expect(await readVerifyFacts(bench().db, id)).toEqual({
      phase: 'completed',
      planned: 5,
      items: 5,
      outcomes: { stored: 3, gone: 1, failed: 1, open: 0 },
      reasons: { 'http-status': 1 },
      duplicates: EMPTY,
      parts: { seen: 0, loaded: 3, failed: 0 },
      partsOff: EMPTY,
      withoutPart: EMPTY,
      published: true,
      resultRows: 3,
      storedWithoutRow: EMPTY,
      overwritten: EMPTY,
      rowsWithoutItem: EMPTY,
    });
  });

  it('name the products whose row is gone, came from elsewhere or belongs to a later run', async () => {
    const table = `holed_${engine}`;
    const id = await published(bench(), table);
    const { knex } = bench().db;
    await knex(table).where({ product_id: 'P2' }).delete();
    await knex(table).where({ product_id: 'p1' }).update({ run_id: 'later' });
    await knex(table).insert({ product_id: 'stranger', run_id: id, url: '', crawled_at: '2026-01-01 00:00:00' });
    expect(await readVerifyFacts(bench().db, id)).toMatchObject({
      resultRows: 2,
      storedWithoutRow: { count: 1, examples: ['P2'] },
      overwritten: { count: 1, examples: ['p1'] },
      rowsWithoutItem: { count: 1, examples: ['stranger'] },
    });
  });

  it('name the parts whose counts are not those of their items, and items without a part', async () => {
    const id = await published(bench(), `off_${engine}`);
    const { knex } = bench().db;
    await knex('crawlfleet_items').where({ run_id: id, n: 2 }).update({ outcome: null });
    await knex('crawlfleet_items').where({ run_id: id, n: 4 }).update({ seq: null });
    await knex('crawlfleet_items').where({ run_id: id, n: 5 }).update({ product_id: 'p1' });
    expect(await readVerifyFacts(bench().db, id)).toMatchObject({
      outcomes: { open: 1 },
      duplicates: { count: 1, examples: ['p1'] },
      partsOff: { count: 2, examples: ['0/1/0', '1/1/0'] },
      withoutPart: { count: 1, examples: ['no part named'] },
    });
  });

  it('refuse a run that is not there', async () => {
    await expect(readVerifyFacts(bench().db, 'nope')).rejects.toMatchObject({ code: 'run-unknown' });
  });
});

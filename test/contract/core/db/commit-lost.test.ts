/** F47: the connection dies in the COMMIT. The rows show whether it happened; nothing is done twice or lost. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/mariadb/database.ts';
import { type CommitCutter, type CutAt, startCommitCutter } from './commit-cutter.ts';
import {
  allRows,
  type Bench,
  bound,
  createInstance,
  createRun,
  gone,
  load,
  manyStored,
  NOW,
  openBench,
  partRef,
  REQUEST,
  storedRows,
  toLoading,
} from './harness.ts';
import { lockRequest } from '../../../support/lock-request.ts';
import { features } from '../../../support/features.ts';

describe.each<CutAt>(['before', 'after'])('F47: the connection dies %s the server has the COMMIT', (at) => {
  let database: TestDatabase;
  /** Undisturbed, for setup and checks. */
  let bench: Bench;
  let cutter: CommitCutter;
  let db: Database;
  /** The bench whose commits are cut. */
  let hurt: Bench;
  beforeAll(async () => {
    database = await createTestDatabase('mysql');
    bench = await openBench(database);
    cutter = await startCommitCutter(database.url);
    db = await openDatabase(cutter.url);
    hurt = { ...bench, db, stores: createStores(db, features), url: cutter.url };
  });
  afterAll(async () => {
    await db.close();
    await cutter.close();
    await bench.db.close();
    await database.drop();
  });

  /** Runs `work` with its next two commits cut. */
  async function cutting<T>(work: () => Promise<T>): Promise<T> {
    const before = cutter.cuts();
    cutter.onCommit = () => (cutter.cuts() - before < 2 ? at : null);
    try {
      return await work();
    } finally {
      cutter.onCommit = () => null;
      // After the first cut behind a COMMIT there may be nothing left to commit again: the rows show it.
      expect(cutter.cuts() - before).toBeGreaterThanOrEqual(1);
    }
  }

  const events = (id: string): Promise<unknown[]> => bench.stores.of(id).run.events(1_000);

  it('of a load: each product once, the counts are those of the load that happened', async () => {
    const { id, work } = await createRun(bench, 300);
    const results = [gone(1), ...manyStored(299, 2)];
    const place = { slot: 0, epoch: 1, seq: 0 };
    await bound(bench, id).results.register(place, [partRef(id, place, 300)]);
    const counts = await cutting(() => bound(hurt, id).results.load(place, results));
    expect(counts).toEqual({ stored: 299, gone: 1, failed: 0 });
    expect(await allRows(bench, `crawlfleet_staging_${id}`)).toHaveLength(299);
    expect(await bound(bench, id).results.totals()).toEqual({ stored: 299, gone: 1, failed: 0, seen: 1, loaded: 1 });
    expect(await work.outcomes()).toMatchObject({ stored: 299, gone: 1, open: 0 });
  });

  it('of a publish: it is published, its move is recorded once, and open numbers are decided as without it', async () => {
    const { id, table } = await createRun(bench, 19);
    const open = { text: '1.234', point: 1.234, comma: 1234 };
    const weighs = (n: number, weight: number | typeof open, marks?: { weight: ',' }) =>
      storedRows(n, [{ key: null, row: { weight }, ...(marks ? { marks } : {}) }]);
    const first = [weighs(1, open), weighs(2, 12.5, { weight: ',' })];
    const others = manyStored(17, 3);
    await load(bench, id, [...first, ...others]);
    await toLoading(bench, id);
    const before = (await events(id)).length;
    const end = { exitCode: 0, reason: 'complete' } as const;
    const published = await cutting(() => bound(hurt, id).results.publish('completed', end));
    expect(published).toEqual({ rows: 19 });
    const rows = await allRows(bench, table);
    expect(rows).toHaveLength(19);
    const weightOf = (product: string) => rows.find(({ product_id }) => product_id === product)?.weight;
    expect([weightOf('p1'), weightOf('p2')]).toEqual([1234, 12.5]);
    expect(await bench.stores.runs.get(id)).toMatchObject({ phase: 'completed', numbers: [{ decided: 1, empty: 0 }] });
    expect((await events(id)).length).toBe(before + 1);
  });

  it('of a new run: it exists once, with all of its products', async () => {
    const { id } = await cutting(() => createRun(hurt, 50));
    expect(await bound(bench, id).work.outcomes()).toMatchObject({ open: 50 });
    expect(await events(id)).toHaveLength(1);
  });

  it('of a claim and of a move: they succeed, and are recorded once', async () => {
    const { id, fleet } = await createRun(bench, 5);
    const claim = { slot: 0, epoch: 1, request: REQUEST, token: 'token' };
    expect(await cutting(() => bound(hurt, id).fleet.claim(claim))).toBe(true);
    expect(
      await cutting(() => bound(hurt, id, { nowMs: NOW + 1 }).fleet.move({ slot: 0, epoch: 1 }, 'claimed', 'pending')),
    ).toBe(true);
    expect(await fleet.instances()).toMatchObject([{ phase: 'pending', token: 'token' }]);
    // One each for the run, the claim and the move.
    expect(await events(id)).toHaveLength(3);
  });

  it('of a grant: the chunks are granted once, and the answer names them', async () => {
    const { id, work } = await createRun(bench, 20);
    await createInstance(bench, id, 0);
    const granted = await cutting(() => bound(hurt, id).work.grant({ slot: 0, epoch: 1 }, ['1-1', '2-1'], 10));
    expect(granted).toEqual(['1-1', '2-1']);
    expect(await work.counts()).toMatchObject({ waiting: 2 });
  });

  it('of taking the lock: it is taken once, with a new fence', async () => {
    const { runs } = bench.stores;
    await runs.releaseLock(bench.fence);
    const lock = await cutting(() => hurt.stores.runs.acquireLock(lockRequest('hurt', NOW, 3_600_000)));
    const fences: { fence: string }[] = await bench.db.knex('crawlfleet_fences').select('fence');
    expect(fences.map(({ fence }) => ({ fence: Number(fence) }))).toEqual([lock]);
    expect(lock).not.toEqual({ fence: bench.fence });
  });
});

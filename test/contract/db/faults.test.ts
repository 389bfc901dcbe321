import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inTransaction } from '../../../orchestrator/db/retry.ts';
import { limitStatements } from '../../../orchestrator/db/statement-timeout.ts';
import type { TestDatabase } from '../../support/mariadb/database.ts';
import { administer, createTestDatabase } from '../../support/mariadb/database.ts';
import type { Bench } from './harness.ts';
import { NOW, createRun, load, onBothEngines, openBench, stored } from './harness.ts';

describe('A transaction on a MySQL that misbehaves', () => {
  let database: TestDatabase;
  let bench: Bench;
  beforeAll(async () => {
    database = await createTestDatabase('mysql');
    bench = await openBench(database);
    await bench.db.knex.raw('create table sums (id int primary key, total int not null)');
  });
  afterAll(async () => {
    await bench.db.close();
    await database.drop();
  });

  async function start(): Promise<void> {
    await bench.db.knex('sums').delete();
    await bench.db.knex('sums').insert([
      { id: 1, total: 0 },
      { id: 2, total: 0 },
    ]);
  }

  async function totals(): Promise<number[]> {
    const rows = (await bench.db.knex('sums').orderBy('id')) as { total: number }[];
    return rows.map((r) => r.total);
  }

  it('is repeated as a whole after a deadlock', async () => {
    await start();
    let tries = 0;
    // Each takes its first row, waits until the other has too, and then wants the other's.
    const waiting: (() => void)[] = [];
    const meet = (): Promise<void> =>
      new Promise((resolve) => {
        waiting.push(resolve);
        if (waiting.length >= 2) waiting.splice(0).forEach((go) => go());
      });
    const add = (first: number, second: number): Promise<void> => {
      let met = false;
      return inTransaction(bench.db, async (trx) => {
        tries++;
        await trx('sums').where({ id: first }).increment('total', 1);
        if (!met) {
          met = true;
          await meet();
        }
        await trx('sums').where({ id: second }).increment('total', 1);
      });
    };
    await Promise.all([add(1, 2), add(2, 1)]);
    expect(await totals()).toEqual([2, 2]);
    expect(tries).toBe(3);
  });

  it('is repeated on another connection when its own is killed', async () => {
    await start();
    let tries = 0;
    await inTransaction(bench.db, async (trx) => {
      await trx('sums').where({ id: 1 }).increment('total', 1);
      if (tries++ === 0) {
        const [[row]] = (await trx.raw('select connection_id() as id')) as [[{ id: string }]];
        await administer(`kill ${row.id}`);
      }
      await trx('sums').where({ id: 2 }).increment('total', 1);
    });
    expect([tries, await totals()]).toEqual([2, [1, 1]]);
  });

  it('is told that it may have happened when the connection is lost in the commit', async () => {
    await start();
    const seen: boolean[] = [];
    await inTransaction(bench.db, async (trx, attempt) => {
      seen.push(attempt.maybeDone);
      if (seen.length > 1) return;
      await trx('sums').where({ id: 1 }).increment('total', 1);
      const [[row]] = (await trx.raw('select connection_id() as id')) as [[{ id: string }]];
      // It dies after the last statement of the work, so the commit is what fails.
      await administer(`kill ${row.id}`);
    });
    expect(seen).toEqual([false, true]);
  });

  it('survives a pool full of dead connections', async () => {
    await Promise.all(Array.from({ length: 6 }, () => bench.db.knex.raw('select sleep(0.01)')));
    const [ids] = (await bench.db.knex.raw(`select id from information_schema.processlist where db = ?`, [
      bench.db.schema,
    ])) as [{ id: string }[]];
    expect(ids.length).toBeGreaterThan(1);
    for (const { id } of ids) await administer(`kill ${id}`).catch(() => undefined);
    const { id } = await createRun(bench, 3);
    expect(await load(bench, id, { slot: 0, seq: 0 }, [stored(1)])).toMatchObject({ stored: 1 });
  });

  it('loads a part wholly or not at all when its connection dies in the middle', async () => {
    const { id } = await createRun(bench, 3_000, { chunkSize: 100 });
    const results = Array.from({ length: 3_000 }, (_, i) => stored(i + 1));
    let killing = true;
    const killer = (async () => {
      while (killing) {
        const [ids] = (await bench.db.knex.raw(
          `select id from information_schema.processlist where db = ? and info like '%crawlfleet_staging%' and info not like '%processlist%'`,
          [bench.db.schema],
        )) as [{ id: string }[]];
        if (ids[0]) {
          await administer(`kill ${ids[0].id}`).catch(() => undefined);
          killing = false;
        }
      }
    })();
    const counts = await load(bench, id, { slot: 0, seq: 0 }, results);
    killing = false;
    await killer;
    expect(counts.stored).toBe(3_000);
    expect(await bench.stores.work.outcomes(id)).toMatchObject({ stored: 3_000, open: 0 });
    expect(await bench.db.knex(`crawlfleet_staging_${id}`).select('product_id')).toHaveLength(3_000);
  });

  it('ends a statement that gets no answer and throws its connection away', async () => {
    const raw = (await bench.db.knex.client.acquireConnection()) as object;
    try {
      const limited = limitStatements(raw, 50);
      await expect(limited.run('select sleep(20)')).rejects.toMatchObject({ code: 'PROTOCOL_SEQUENCE_TIMEOUT' });
      expect(bench.db.knex.client.validateConnection(raw)).toBe(false);
    } finally {
      await bench.db.knex.client.releaseConnection(raw);
    }
    expect(await bench.stores.runs.list(1)).toHaveLength(1);
  });
});

onBothEngines('A fault that does not pass', (bench) => {
  it('is reported without the values of the statement', async () => {
    const failing = inTransaction(bench().db, (trx) => trx('crawlfleet_runs').insert({ private_key: 'hush-hush' }));
    const error = (await failing.catch((e: unknown) => e)) as Error;
    expect(error).toMatchObject({ code: 'database-failed' });
    expect(`${error.message} ${error.stack} ${String(error.cause)}`).not.toContain('hush-hush');
  });

  it('leaves the lock usable', async () => {
    expect(await bench().stores.runs.renewLock(bench().fence, NOW, 3_600_000, null)).toBe(true);
  });
});

import { createConnection } from 'mysql2/promise';
import { expect, it } from 'vitest';
import { inTransaction } from '../../../../orchestrator/core/db/retry.ts';
import { limitStatements } from '../../../../orchestrator/core/db/statement-timeout.ts';
import { administer } from '../../../support/mariadb/database.ts';
import { waitFor } from '../../../support/processes.ts';
import { at, createRun, load, manyStored, NOW, onBothEngines, onMysql, partRef } from './harness.ts';

onMysql('A transaction on a faulty MySQL', (bench, database) => {
  it('F46: loads a part wholly or not at all when its connection dies in the middle', async () => {
    const { id, work } = await createRun(bench(), 3_000, { chunkSize: 100 });
    const results = manyStored(3_000);
    let killing = true;
    const killer = (async () => {
      while (killing) {
        const [ids] = (await bench().db.knex.raw(
          `select id from information_schema.processlist where db = ? and info like '%crawlfleet_staging%' and info not like '%processlist%'`,
          [bench().db.schema],
        )) as [{ id: string }[]];
        if (ids[0]) {
          await administer(`kill ${ids[0].id}`).catch(() => undefined);
          killing = false;
        }
      }
    })();
    const counts = await load(bench(), id, results);
    killing = false;
    await killer;
    expect(counts.stored).toBe(3_000);
    expect(await work.outcomes()).toMatchObject({ stored: 3_000, open: 0 });
    expect(await bench().db.knex(`crawlfleet_staging_${id}`).select('product_id')).toHaveLength(3_000);
  });

  it('F46: loads a part once after three deadlocks', async () => {
    const { id, work, results } = await createRun(bench(), 50);
    await results.register(at(0), [partRef(id, { ...at(0), seq: 0 }, 50)]);
    const other = await createConnection({ uri: database().url });
    try {
      // In a deadlock InnoDB ends the transaction that has changed less.
      await other.query('create table weights (n int primary key)');
      await other.query('begin');
      await other.query('insert into weights select seq from seq_1_to_5000');
      await other.query(`select * from crawlfleet_items where run_id = ? and n = 50 for update`, [id]);
      const place = { slot: 0, epoch: 1, seq: 0 };
      const load = results.load(place, manyStored(50));
      load.catch(() => undefined);
      const victims = new Set<string>();
      // Each time the load waits for our lock, then we request its lock; each time it has changed less.
      for (const lock of [
        [`select * from crawlfleet_items where run_id = ? and n = 1 for update`, [id]],
        [`select * from crawlfleet_parts where run_id = ? for update`, [id]],
        ['select * from crawlfleet_fences for update', []],
      ] as const) {
        victims.add(await waitingTransaction(victims));
        await other.query(lock[0], [...lock[1]]);
      }
      victims.add(await waitingTransaction(victims));
      expect(victims.size).toBe(4);
      await other.query('rollback');
      expect(await load).toEqual({ stored: 50, gone: 0, failed: 0 });
    } finally {
      other.destroy();
    }
    expect(await work.outcomes()).toMatchObject({ stored: 50, open: 0 });
    expect(await bench().db.knex(`crawlfleet_staging_${id}`).select('product_id')).toHaveLength(50);
  });

  it(
    'F46: keeps nothing of a transaction whose last statement waited too long for a lock',
    { tags: ['nightly'] },
    async () => {
      const { id, results } = await createRun(bench(), 2_000);
      await results.register(at(0), [partRef(id, { ...at(0), seq: 0 }, 2_000)]);
      const other = await createConnection({ uri: database().url });
      try {
        await other.query('begin');
        // The last of the products in insertion order; the first batch does not meet it.
        const row = `insert into \`crawlfleet_staging_${id}\` (product_id, url, crawled_at) values ('p999', '', now())`;
        await other.query(row);
        const place = { slot: 0, epoch: 1, seq: 0 };
        const load = results.load(place, manyStored(2_000));
        load.catch(() => undefined);
        const first = await waitingTransaction(new Set());
        // Another transaction waits there: the server ended the first one's statement, and we rolled back the rest.
        const second = await waitingTransaction(new Set([first]));
        const [living] = await other.query(`select trx_id from information_schema.innodb_trx where trx_id = ?`, [
          first,
        ]);
        expect(living).toEqual([]);
        expect(second).not.toBe(first);
        expect(await bench().db.knex(`crawlfleet_staging_${id}`).select('product_id')).toEqual([]);
        await other.query('rollback');
        expect(await load).toEqual({ stored: 2_000, gone: 0, failed: 0 });
      } finally {
        other.destroy();
      }
      expect(await bench().db.knex(`crawlfleet_staging_${id}`).select('product_id')).toHaveLength(2_000);
    },
  );

  /** The ID of another transaction of this database that waits for a lock and is not in `known`. */
  async function waitingTransaction(known: ReadonlySet<string>): Promise<string> {
    const sql = `select t.trx_id as id from information_schema.innodb_trx t
      join information_schema.processlist p on p.id = t.trx_mysql_thread_id
      where t.trx_state = 'LOCK WAIT' and p.db = ?`;
    const ask = async (): Promise<string | undefined> => {
      const [rows] = (await bench().db.knex.raw(sql, [bench().db.schema])) as [{ id: string }[]];
      return rows.map((r) => r.id).find((id) => !known.has(id));
    };
    // The server caches its answer until there was no query for 100 ms.
    return waitFor(ask, { what: 'a transaction to wait', everyMs: 150 });
  }

  it('F48: ends a statement that gets no answer and discards its connection', async () => {
    const raw = (await bench().db.knex.client.acquireConnection()) as object;
    try {
      const limited = limitStatements(raw, 50);
      await expect(limited.run('select sleep(20)')).rejects.toMatchObject({ code: 'PROTOCOL_SEQUENCE_TIMEOUT' });
      expect(bench().db.knex.client.validateConnection(raw)).toBe(false);
    } finally {
      await bench().db.knex.client.releaseConnection(raw);
    }
    expect(await bench().stores.runs.list(1)).toHaveLength(1);
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

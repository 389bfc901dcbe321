/**
 * Servers whose defaults or limits are not those of a fresh installation: they work, or the check of the rights refuses
 * them.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { MysqlConnectionLock } from '../../../../orchestrator/core/db/connection-lock.ts';
import { createLockGuard } from '../../../../orchestrator/core/db/locks.ts';
import { migrate } from '../../../../orchestrator/core/db/migrate.ts';
import { createProductSource } from '../../../../orchestrator/core/db/product-source.ts';
import { checkRights } from '../../../../orchestrator/core/db/rights.ts';
import { expectFault } from '../../../support/expect-fault.ts';
import { LOCK_NAMES } from '../../../support/lock-request.ts';
import { type DatabaseServer, startDatabaseServer } from '../../../support/mariadb/server.ts';
import { allRows, createRun, gone, load, NOW, openBench, publish, readFacts, settings, stored } from './harness.ts';

/** Those of `init_connect` are for users without server-level rights. */
const DEFAULTS = {
  default_storage_engine: 'MyISAM',
  default_tmp_storage_engine: 'MyISAM',
  init_connect: 'set autocommit = 0, sql_safe_updates = 1, sql_select_limit = 1, names latin1',
  tx_read_only: 1,
  completion_type: 'RELEASE',
  innodb_force_primary_key: 1,
  autocommit: 0,
};

let server: DatabaseServer;
beforeAll(async () => {
  server = await startDatabaseServer();
  await server.query('', 'create database unusual character set latin1');
  await server.query('', 'create database small character set utf8mb4');
});
afterAll(() => server.stop());

/** The URL of a user without server-level rights, which would bypass defaults and limits. */
async function userWith(schema: string, limits: string): Promise<string> {
  const name = `u_${randomBytes(5).toString('hex')}`;
  await server.query('', `create user ${name} identified by 'p' ${limits}`);
  await server.query('', `grant all on ${schema}.* to ${name}`);
  return `mysql://${name}:p@${server.host}/${schema}`;
}

it('a run does not depend on the defaults of the server', async () => {
  const url = await userWith('unusual', '');
  for (const [name, value] of Object.entries(DEFAULTS)) await server.query('', `set global ${name} = ?`, [value]);
  const bench = await openBench({ url });
  const other = await openDatabase(url);
  try {
    await checkRights(bench.db);
    await bench.stores.runs.renewLock(bench.fence, NOW, 7_200_000, null);
    // What another connection sees is committed.
    expect(await createLockGuard(other).holders(LOCK_NAMES)).toMatchObject([{ expiresAtMs: NOW + 7_200_000 }]);
    const own = settings('snapshots', { history: 'changes', onGone: 'delete' });
    for (const [night, results] of [
      [stored(1, '日', { title: '湯 🫖' }), stored(2)],
      [stored(1, '日'), gone(2)],
    ].entries()) {
      const ids = results.map(({ id }) => id);
      const run = await createRun(bench, ids, { settings: own });
      await load(bench, run.id, results);
      await publish(bench, run.id, NOW + night * 86_400_000);
      expect(await readFacts({ ...bench, db: other }, run.id)).toMatchObject({ phase: 'completed' });
    }
    expect(await allRows({ ...bench, db: other }, 'snapshots')).toMatchObject([{ product_id: '日', title: 'Title 1' }]);
    expect(await other.knex('snapshots_history').pluck('old_value')).toContain('湯 🫖');
    const ids = await Array.fromAsync(createProductSource(url, `select '日' as id union select '湯'`).read());
    expect(ids).toEqual(['日', '湯']);
  } finally {
    for (const name of Object.keys(DEFAULTS)) await server.query('', `set global ${name} = default`);
    await Promise.all([bench.db.close(), other.close()]);
  }
});

describe('a user with a limit', () => {
  it.each([
    ['max_user_connections 3', 'MAX_USER_CONNECTIONS is 3, and a run needs 4', 'MAX_USER_CONNECTIONS 10;'],
    ['max_queries_per_hour 5000', 'MAX_QUERIES_PER_HOUR is 5000', 'MAX_QUERIES_PER_HOUR 0;'],
    [
      'max_updates_per_hour 900 max_connections_per_hour 60',
      'MAX_UPDATES_PER_HOUR is 900, and a run needs 20000; MAX_CONNECTIONS_PER_HOUR is 60',
      'MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0;',
    ],
  ])('too low for a run is refused before it: %s', async (limits, said, remedy) => {
    await using db = await openDatabase(await userWith('small', `with ${limits}`));
    await expect(checkRights(db)).rejects.toMatchObject({
      code: 'database-rights',
      message: expect.stringContaining(said) as string,
      hint: expect.stringMatching(new RegExp(`^ALTER USER 'u_\\w+'@'%' WITH ${remedy}$`)) as string,
    });
  });

  it('gets along with four connections, and waits for one of its own that is busy', async () => {
    await using db = await openDatabase(await userWith('small', 'with max_user_connections 4'));
    await checkRights(db);
    // Two of the pool, one of the lock, one of the product query.
    const [first, second] = [await db.knex.transaction(), await db.knex.transaction()];
    const third = db.knex.raw('select 1 as one');
    const lock = new MysqlConnectionLock(db, ['small']);
    expect(await lock.acquire()).toBe('ours');
    await Promise.all([first.rollback(), second.rollback(), lock.release()]);
    expect(await third).toBeTruthy();
  });

  it('that is used up is named, with what to do', async () => {
    const url = await userWith('small', 'with max_queries_per_hour 5');
    const fault = await openDatabase(url).catch((error: unknown) => error);
    expect(fault).toMatchObject({
      code: 'database-unreachable',
      hint: expect.stringContaining('Raise the limit') as string,
    });
    expect(String(fault)).toContain(`'max_queries_per_hour' resource`);
  });

  it('on prepared statements is found before a run', async () => {
    await server.query('', 'set global max_prepared_stmt_count = 0');
    try {
      await using db = await openDatabase(await userWith('small', ''));
      await expectFault(checkRights(db), 'database-unreachable', 'ER_MAX_PREPARED_STMT_COUNT_REACHED');
    } finally {
      await server.query('', 'set global max_prepared_stmt_count = default');
    }
  });
});

it('a cluster that refuses named locks is refused before a run, with what to do', async () => {
  await using db = await openDatabase(await userWith('small', ''));
  const client = db.knex.client as { acquireRawConnection(): Promise<{ query(...call: [{ sql: string }]): unknown }> };
  const connect = client.acquireRawConnection.bind(client);
  client.acquireRawConnection = async () => {
    const connection = await connect();
    const query = connection.query.bind(connection);
    // As Percona XtraDB Cluster answers by default.
    const text = 'Percona-XtraDB-Cluster prohibits use of GET_LOCK with pxc_strict_mode = ENFORCING';
    const refusal = `signal sqlstate 'HY000' set mysql_errno = 1105, message_text = '${text}'`;
    connection.query = ({ sql, ...given }, ...rest) =>
      query({ ...given, sql: /\bget_lock\(/.test(sql) ? refusal : sql }, ...rest);
    return connection;
  };
  // Keeps the connection of before, so that all others are made this way.
  const held = await db.knex.transaction();
  for (const attempt of [checkRights, migrate])
    await expect(attempt(db)).rejects.toMatchObject({
      code: 'database-schema',
      message: expect.stringContaining('refuses GET_LOCK, which a run needs: Percona') as string,
      hint: expect.stringContaining('set pxc_strict_mode to MASTER') as string,
    });
  await held.rollback();
});

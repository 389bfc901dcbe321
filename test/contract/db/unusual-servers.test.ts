/** Servers whose defaults are not those of a fresh installation. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../../orchestrator/db/connect.ts';
import { createLockGuard } from '../../../orchestrator/db/locks.ts';
import { createProductSource } from '../../../orchestrator/db/product-source.ts';
import { checkRights } from '../../../orchestrator/db/rights.ts';
import { LOCK_NAMES } from '../../support/lock-request.ts';
import { type DatabaseServer, startDatabaseServer } from '../../support/mariadb/server.ts';
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

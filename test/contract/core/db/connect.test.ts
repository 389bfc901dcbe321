import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';
import { bulkInsert } from '../../../../orchestrator/core/db/bulk-insert.ts';
import { type Database, openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { isMigrated, migrate } from '../../../../orchestrator/core/db/migrate.ts';
import { checkRights } from '../../../../orchestrator/core/db/rights.ts';
import { administer, createTestDatabase, eachEngine, type TestDatabase } from '../../../support/mariadb/database.ts';
import { expectFault } from '../../../support/expect-fault.ts';
import { MIGRATIONS } from '../../../../orchestrator/core/db/migrations.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function opened(url: string): Promise<Database> {
  const db = await openDatabase(url);
  cleanups.push(() => db.close());
  return db;
}

async function schema(): Promise<TestDatabase> {
  const database = await createTestDatabase('mysql');
  cleanups.push(() => database.drop());
  return database;
}

/** Creates a user with the given rights on the schema; returns the URL to connect as that user. */
async function asUser(database: TestDatabase, rights: string): Promise<string> {
  const url = new URL(database.url);
  const user = `u${randomBytes(5).toString('hex')}`;
  await administer(`create user ${user}@'%' identified by 'p@ss'`);
  cleanups.push(() => administer(`drop user ${user}`));
  if (rights) await administer(`grant ${rights} on ${url.pathname.slice(1)}.* to ${user}@'%'`);
  url.username = user;
  url.password = encodeURIComponent('p@ss');
  return url.href;
}

describe('A database that cannot be used', () => {
  it.each([
    ['a closed port', (u: URL) => void (u.port = '1'), /ECONNREFUSED/],
    ['a wrong password', (u: URL) => void (u.password = 'wrong-secret'), /Access denied/],
    ['a database that does not exist', (u: URL) => void (u.pathname = '/not_there'), /Unknown database|Access denied/],
    ['a host that does not exist', (u: URL) => void (u.hostname = 'nowhere.invalid'), /ENOTFOUND|EAI_AGAIN/],
  ])('is reported with %s, without the password', async (_, change, said) => {
    const url = new URL((await schema()).url);
    const { password } = url;
    change(url);
    const error = (await openDatabase(url.href).catch((e: unknown) => e)) as Error & { code: string; hint: string };
    expect(error).toMatchObject({ code: 'database-unreachable', message: expect.stringMatching(said) as string });
    expect(error.message).toContain(url.hostname);
    expect(`${error.message} ${error.hint} ${String(error.cause)}`).not.toMatch(new RegExp(`${password}|wrong-secret`));
  });

  it('is waited for at a closed port only, for 30 s', async () => {
    const { url } = await schema();
    const wait = async (change: (u: URL) => unknown): Promise<[waits: number, ms: number]> => {
      let [waits, ms] = [0, 0];
      const sleep = (pauseMs: number): Promise<void> => Promise.resolve(void (ms += pauseMs));
      const clock: Clock = { ...systemClock, monotonic: () => ms, sleep };
      const changed = new URL(url);
      change(changed);
      const opening = openDatabase(changed.href, { clock, onWait: () => void waits++ });
      await expect(opening).rejects.toMatchObject({ code: 'database-unreachable' });
      return [waits, ms];
    };
    expect(await wait((u) => (u.password = 'wrong'))).toEqual([0, 0]);
    expect(await wait((u) => (u.hostname = 'nowhere.invalid'))).toEqual([0, 0]);
    const [waits, ms] = await wait((u) => (u.port = '1'));
    expect(waits).toBe(1);
    expect(ms).toBeGreaterThan(27_000);
    expect(ms).toBeLessThanOrEqual(30_000);
  });

  it('is reported when it accepts connections but never answers', async () => {
    const mute = createServer().listen(0, '127.0.0.1');
    await once(mute, 'listening');
    cleanups.push(() => new Promise((resolve) => mute.close(resolve)));
    const sockets = new Set<{ destroy(): void }>();
    mute.on('connection', (socket) => sockets.add(socket));
    cleanups.push(async () => sockets.forEach((s) => s.destroy()));
    const { port } = mute.address() as AddressInfo;
    await expectFault(
      openDatabase(`mysql://u:p@127.0.0.1:${port}/x`, { connectMs: 200 }),
      'database-unreachable',
      'ETIMEDOUT',
    );
  });

  it('is reported when the SQLite file is missing or is something else', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'crawlfleet-connect-'));
    cleanups.push(() => rm(dir, { recursive: true }));
    await expectFault(openDatabase(`sqlite:${dir}/none.db`), 'database-unreachable', `${dir}/none.db`);
    await writeFile(join(dir, 'text.db'), 'this is not a database at all, whatever its name says'.repeat(40));
    await expect(openDatabase(`sqlite:${dir}/text.db`)).rejects.toMatchObject({ code: 'database-unreachable' });
    const made = await openDatabase(`sqlite:${dir}/new.db`, { create: true });
    await made.close();
  });

  it('is refused when the user may not create or write, with the missing GRANT', async () => {
    const database = await schema();
    const reader = await opened(await asUser(database, 'select'));
    await expect(checkRights(reader)).rejects.toMatchObject({
      code: 'database-rights',
      message: expect.stringContaining('CREATE') as string,
      hint: expect.stringMatching(/^GRANT SELECT, INSERT/) as string,
    });
    const writer = await opened(await asUser(database, 'select, insert, create, drop, alter, index, delete'));
    await expect(checkRights(writer)).rejects.toMatchObject({ message: expect.stringContaining('UPDATE') as string });
    const [tables] = (await writer.knex.raw('show tables')) as [unknown[]];
    expect(tables).toEqual([]);
  });
});

eachEngine('Opening a database', (database, engine) => {
  it('checks the rights of a run and leaves no trace of the check', async () => {
    const db = await opened(database().url);
    await checkRights(db);
    const names = engine === 'mysql' ? 'show tables' : `select name from sqlite_master where type = 'table'`;
    const rows = (await db.knex.raw(names)) as unknown[];
    expect(engine === 'mysql' ? rows[0] : rows).toEqual([]);
  });

  it('sets the session so that nothing is cut, rounded or moved to another time zone', async () => {
    const db = await opened(database().url);
    if (engine === 'sqlite') {
      expect(await db.knex.raw('pragma journal_mode')).toEqual([{ journal_mode: 'wal' }]);
      expect(await db.knex.raw('pragma foreign_keys')).toEqual([{ foreign_keys: 1 }]);
      return;
    }
    const sql = `select @@sql_mode as mode, @@time_zone as zone, @@character_set_connection as charset, @@tx_isolation as level, 9007199254740993 as big`;
    const [[row]] = (await db.knex.raw(sql)) as [[Record<string, string>]];
    expect(row).toMatchObject({ zone: '+00:00', charset: 'utf8mb4', level: 'READ-COMMITTED', big: '9007199254740993' });
    expect(row.mode).toContain('STRICT_ALL_TABLES');
  });

  it('keeps few prepared statements, however many numbers of rows are inserted', async () => {
    if (engine === 'sqlite') return;
    const db = await opened(database().url);
    await db.knex.raw('create table of_many_sizes (id integer)');
    await db.knex.transaction(async (trx) => {
      const kept = async (): Promise<number> => {
        const sql = `show session status where Variable_name in ('Com_stmt_prepare', 'Com_stmt_close')`;
        const [rows] = (await trx.raw(sql)) as [{ Variable_name: string; Value: string }[]];
        const { Com_stmt_prepare: prepared, Com_stmt_close: closed } = Object.fromEntries(
          rows.map((row) => [row.Variable_name, Number(row.Value)]),
        );
        return prepared! - closed!;
      };
      const target = { table: 'of_many_sizes', columns: ['id'], existing: 'error' } as const;
      const insert = (rows: number) =>
        bulkInsert(
          trx,
          db,
          target,
          Array.from({ length: rows }, (_, i) => [i]),
        );
      for (let rows = 1; rows <= 20; rows++) await insert(rows);
      expect(await kept()).toBeLessThanOrEqual(4);
      await insert(20);
      expect(await kept()).toBeLessThanOrEqual(4);
    });
  });
});

eachEngine('Migrating', (database) => {
  it('is safe when several processes do it at once, and changes nothing the second time', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(() => opened(database().url)));
    expect(await isMigrated(all[0]!)).toBe(false);
    await Promise.all(all.map((db) => migrate(db)));
    await migrate(all[0]!);
    expect(await isMigrated(all[0]!)).toBe(true);
    const applied = (await all[0]!.knex('crawlfleet_migrations').orderBy('version').pluck('version')) as number[];
    expect(applied).toEqual(MIGRATIONS.map((_, i) => i + 1));
  });

  it('continues where a migration died half-way', async () => {
    const db = await opened(database().url);
    await migrate(db);
    await db.knex('crawlfleet_migrations').delete();
    await db.knex.schema.dropTable('crawlfleet_events');
    await migrate(db);
    expect(await db.knex.schema.hasTable('crawlfleet_events')).toBe(true);
  });

  it('sets the row counts of parts loaded by earlier versions to their product counts', async () => {
    const db = await opened(database().url);
    await migrate(db);
    for (const table of ['crawlfleet_parts', 'crawlfleet_items'])
      await db.knex.schema.alterTable(table, (t) => t.dropColumn('result_rows'));
    await db.knex('crawlfleet_migrations').where('version', '>', 1).delete();
    const part = { run_id: 'r', slot: 0, epoch: 1, object_key: '', sha256: '', size_bytes: 1, products: 9 };
    await db.knex('crawlfleet_parts').insert([
      { ...part, seq: 0, state: 'loaded', stored: 7, gone: 1, failed: 1 },
      { ...part, seq: 1, state: 'seen', stored: 0, gone: 0, failed: 0 },
    ]);
    expect(await isMigrated(db)).toBe(false);
    await migrate(db);
    expect(await isMigrated(db)).toBe(true);
    expect(await db.knex('crawlfleet_parts').orderBy('seq').select('result_rows')).toEqual([
      { result_rows: 7 },
      { result_rows: 0 },
    ]);
    await db.knex('crawlfleet_parts').delete();
    // Made again by the repeated migrations, beside their successors.
    for (const table of ['crawlfleet_troubles', 'crawlfleet_sightings']) await db.knex.schema.dropTable(table);
    await db.knex.schema.alterTable('crawlfleet_instances', (t) => t.dropColumn('leave_at'));
  });

  it('renames tables and columns of an earlier version, and refuses to while one of its runs is active', async () => {
    const db = await opened(database().url);
    await migrate(db);
    await db.knex.schema.renameTable('crawlfleet_incidents', 'crawlfleet_troubles');
    await db.knex.schema.renameTable('crawlfleet_gc_marks', 'crawlfleet_sightings');
    await db.knex.schema.alterTable('crawlfleet_troubles', (t) => t.renameColumn('returned_at', 'released_at'));
    await db.knex.schema.alterTable('crawlfleet_instances', (t) => t.renameColumn('rotate_at', 'leave_at'));
    await db.knex('crawlfleet_migrations').where('version', '>', 10).delete();
    const run = '20260101-000000-old';
    await db.knex('crawlfleet_runs').insert({
      id: run,
      phase: 'crawling',
      started_at: 0,
      deadline_at: db.clock.now() - 1_000,
      dry_run: true,
      settings: JSON.stringify({ run: { graceMs: 600_000 } }),
      plan: '{}',
      planned: 1,
      duplicates: 0,
      private_key: '',
      public_key: '',
    });
    await db.knex('crawlfleet_events').insert({ run_id: run, at: 1, kind: 'projection', to_state: 'late 50%' });
    const incident = {
      run_id: run,
      slot: 0,
      epoch: 1,
      seq: 1,
      verdict: 'banned',
      rule: 'status-403',
      at: 5,
      evidence: '{}',
    };
    await db.knex('crawlfleet_troubles').insert({ ...incident, released_at: 7 });

    await expect(migrate(db)).rejects.toMatchObject({
      code: 'database-schema',
      message: expect.stringContaining(`run ${run} is in progress`) as string,
      hint: expect.stringContaining(`orchestrator stop ${run}`) as string,
    });
    expect(await db.knex.schema.hasTable('crawlfleet_troubles')).toBe(true);

    await db
      .knex('crawlfleet_runs')
      .where({ id: run })
      .update({ deadline_at: db.clock.now() - 3_600_000 });
    await migrate(db);
    expect(await db.knex('crawlfleet_incidents').select('rule', 'returned_at')).toEqual([
      { rule: 'status-403', returned_at: expect.toSatisfy((at) => Number(at) === 7) as number },
    ]);
    expect(await db.knex('crawlfleet_events').where({ run_id: run }).pluck('kind')).toEqual(['forecast']);
    expect(await db.knex.schema.hasColumn('crawlfleet_instances', 'rotate_at')).toBe(true);
    for (const table of ['runs', 'events', 'incidents']) await db.knex(`crawlfleet_${table}`).delete();
  });

  it('drops the lease and the fence of schedulers, and keeps what became of each due time', async () => {
    const db = await opened(database().url);
    await migrate(db);
    await db.knex('crawlfleet_migrations').where('version', '>', 11).delete();
    await db.knex.schema.alterTable('crawlfleet_schedule', (t) => t.bigInteger('fence').notNullable().defaultTo(3));
    await db.knex.schema.alterTable('crawlfleet_schedule', (t) => t.dropColumn('owner'));
    await db.knex.schema.createTable('crawlfleet_schedulers', (t) => t.string('name', 150).primary());
    const row = { name: 'daily', state: 'done', exit_code: 12 };
    await db.knex('crawlfleet_schedule').insert({ ...row, due_at: 1, written_at: 2 });
    await migrate(db);
    expect(await db.knex.schema.hasTable('crawlfleet_schedulers')).toBe(false);
    expect(await db.knex.schema.hasColumn('crawlfleet_schedule', 'fence')).toBe(false);
    expect(await db.knex('crawlfleet_schedule').first()).toMatchObject({ ...row, owner: null });
  });

  it('makes room for whole URLs in the paths of items, and keeps those that are there', async () => {
    const db = await opened(database().url);
    await migrate(db);
    const before = MIGRATIONS.findIndex(({ name }) => name === 'own-urls');
    await db.knex('crawlfleet_migrations').where('version', '>', before).delete();
    if (db.engine === 'mysql') await db.knex.raw('alter table crawlfleet_items modify path varchar(768)');
    const item = { run_id: 'old', product_id: 'Ä' };
    await db.knex('crawlfleet_items').insert([
      { ...item, n: 1, path: '/item/Ä' },
      { ...item, n: 2, path: null },
    ]);
    await migrate(db);
    const url = `https://shop.example/${'a'.repeat(1_979)}`;
    await db.knex('crawlfleet_items').insert({ ...item, n: 3, path: url });
    const items = db.knex('crawlfleet_items').where({ run_id: 'old' }).orderBy('n');
    expect(await items.clone().pluck('path')).toEqual(['/item/Ä', null, url]);
    // Compared by bytes, as before.
    expect(await items.clone().where({ path: '/item/ä' }).pluck('n')).toEqual([]);
    await db.knex('crawlfleet_items').delete();
  });

  it('refuses tables of a newer version', async () => {
    const db = await opened(database().url);
    await migrate(db);
    await db.knex('crawlfleet_migrations').insert({ version: 999, name: 'future', applied_at: 0 });
    await expect(migrate(db)).rejects.toMatchObject({ code: 'database-schema' });
    await db.knex('crawlfleet_migrations').where({ version: 999 }).delete();
  });
});

/**
 * Creates and updates our own tables. Migrations are numbered code, the same for both engines. Tables and columns are
 * added only if missing, because MySQL commits every DDL statement separately and a migration may have died half-way.
 */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import { OPEN_RUN_PHASES } from '../../../shared/domain/states.ts';
import type { Database } from './connect.ts';
import { takingLock } from './connection-lock.ts';
import { toAppError } from './database-errors.ts';
import { MIGRATIONS } from './migrations.ts';
import { inQuery, withRetry } from './retry.ts';
import { mysqlRow, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';

/** The version of the tables that this program works with. */
export const LATEST_VERSION = MIGRATIONS.length;
const TABLE = 'crawlfleet_migrations';
const LOCK_WAIT_S = 60;

/** Brings the tables up to date; safe in several processes at once. Throws `database-schema` when they are newer. */
export async function migrate(db: Database): Promise<void> {
  if (await isMigrated(db)) return;
  await (db.engine === 'sqlite' ? migrateSqlite(db) : migrateMysql(db));
}

/** True when the tables exist and are up to date. Throws `database-schema` when they are newer than this program. */
export async function isMigrated(db: Database): Promise<boolean> {
  return (await versionOf(db)) === LATEST_VERSION;
}

/** The version of our tables; 0 without any. Throws `database-schema` when they are newer than this program. */
export async function versionOf(db: Database): Promise<number> {
  const version = await inQuery(db, (knex) => currentVersion(knex));
  if (version > LATEST_VERSION) {
    throw new AppError(
      'database-schema',
      `${db.label}: the crawlfleet tables are of version ${version}, this program knows ${LATEST_VERSION}`,
      { hint: 'Update crawlfleet on this machine to the version that made them, or a later one.' },
    );
  }
  return version;
}

function migrateSqlite(db: Database): Promise<void> {
  return withRetry(db, () =>
    db.knex.transaction(async (trx) => {
      // Writing first takes the write lock, so a second process waits here instead of failing later.
      await trx.raw(`create table if not exists ${TABLE} (version integer primary key, name text, applied_at integer)`);
      await applyAll(trx, db);
    }),
  );
}

async function migrateMysql(db: Database): Promise<void> {
  const lock = `crawlfleet_migrations_${db.schema}`.slice(0, 64);
  try {
    // A transaction only to keep one connection, which GET_LOCK is bound to.
    await db.knex.transaction(async (trx) => {
      const asked = trx.raw('select get_lock(?, ?) as got', [lock, LOCK_WAIT_S]);
      const row = await takingLock(db.label, () =>
        mysqlRow<{ got: SqlNumber | null }>(asked.options({ timeout: (LOCK_WAIT_S + 10) * 1_000 })),
      );
      if (Number(row.got) !== 1)
        throw new AppError('database-busy', `${db.label}: another process has been migrating for ${LOCK_WAIT_S} s`);
      try {
        const suffix = `engine=InnoDB default character set utf8mb4 collate ${db.byteCollation}`;
        await trx.raw(
          `create table if not exists ${TABLE} (version int primary key, name varchar(100), applied_at bigint) ${suffix}`,
        );
        await applyAll(trx, db);
      } finally {
        await trx.raw('select release_lock(?)', [lock]);
      }
    });
  } catch (error) {
    throw toAppError(error, db.label);
  }
}

async function applyAll(trx: Knex.Transaction, db: Database): Promise<void> {
  const version = await currentVersion(trx);
  const pending = MIGRATIONS.map((m, i) => ({ ...m, version: i + 1 })).slice(version);
  if (version > 0 && pending.some((m) => m.refusesOpenRuns)) await refuseOpenRuns(trx, db);
  for (const migration of pending) {
    for (const [from, to] of Object.entries(migration.renamedTables ?? {}))
      if ((await trx.schema.hasTable(from)) && !(await trx.schema.hasTable(to))) await trx.schema.renameTable(from, to);
    for (const [table, columns] of Object.entries(migration.renamedColumns ?? {}))
      for (const [from, to] of Object.entries(columns))
        if ((await trx.schema.hasColumn(table, from)) && !(await trx.schema.hasColumn(table, to)))
          await trx.schema.alterTable(table, (t) => t.renameColumn(from, to));
    for (const [name, build] of Object.entries(migration.tables ?? {})) {
      if (await trx.schema.hasTable(name)) continue;
      await trx.schema.createTable(name, (table) => {
        if (db.byteCollation !== null) {
          table.engine('InnoDB');
          table.charset('utf8mb4');
          table.collate(db.byteCollation);
        }
        build(table);
      });
    }
    for (const [table, columns] of Object.entries(migration.columns ?? {})) {
      for (const [name, add] of Object.entries(columns)) {
        if (!(await trx.schema.hasColumn(table, name))) await trx.schema.alterTable(table, add);
      }
    }
    await migration.fill?.(trx, db.engine);
    await trx(TABLE)
      .insert({ version: migration.version, name: migration.name, applied_at: db.clock.now() })
      .onConflict('version')
      .ignore();
  }
}

/** Throws `database-schema` while instances of an earlier version may be running: until deadline and grace are over. */
async function refuseOpenRuns(trx: Knex.Transaction, db: Database): Promise<void> {
  const open = await rowsOf<{ id: string; deadline_at: SqlNumber; settings: string }>(
    trx('crawlfleet_runs').whereIn('phase', OPEN_RUN_PHASES).select('id', 'deadline_at', 'settings'),
  );
  const graceMs = ({ settings }: { settings: string }): number =>
    (JSON.parse(settings) as { run: { graceMs: number } }).run.graceMs;
  const run = open.find((row) => toNumber(row.deadline_at) + graceMs(row) > db.clock.now());
  if (run === undefined) return;
  throw new AppError(
    'database-schema',
    `${db.label}: run ${run.id} is in progress, and this version changes its tables`,
    {
      hint: `Let it end, or end it with the version that started it (orchestrator stop ${run.id}); then start this version again.`,
    },
  );
}

async function currentVersion(knex: Knex): Promise<number> {
  if (!(await knex.schema.hasTable(TABLE))) return 0;
  const row = await rowOf<{ version: SqlNumber | null }>(knex(TABLE).max({ version: 'version' }).first());
  return Number(row?.version ?? 0);
}

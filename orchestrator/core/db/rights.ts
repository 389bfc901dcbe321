/** Proves before a run that the database user has every privilege a run needs. */
import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import { bulkInsert, type ColumnList } from './bulk-insert.ts';
import { keyColumns, neededColumns } from './column-types.ts';
import { ALL_CONNECTIONS, type Database, LEAST_CONNECTIONS } from './connect.ts';
import { MysqlConnectionLock } from './connection-lock.ts';
import { classifyDatabaseError, databaseMessage, toAppError } from './database-errors.ts';
import { mysqlRow } from './rows.ts';
import { readTable, splitTableName } from './table-info.ts';
import { createTable, withTemporaryTable } from './table-statements.ts';

/**
 * Checks the rights by using each on a table of our own. Throws `database-rights` with the GRANT that is missing, and
 * the error of what the server does not offer: enough connections, prepared statements, named locks. Leaves nothing
 * behind.
 */
export async function checkRights(db: Database): Promise<void> {
  const table = `crawlfleet_probe_${randomBytes(6).toString('hex')}`;
  const { knex } = db;
  const columns = ['id', 'more'] as const;
  const insert = (trx: Knex.Transaction) => bulkInsert(trx, db, { table, columns, existing: 'error' }, [[1, 1]]);
  // A server may refuse tables without a primary key.
  const lines = ['id integer primary key', 'more integer'];
  const steps: [right: string, step: () => PromiseLike<unknown>][] = [
    ['CREATE', () => createTable(knex, db, { table, lines: lines.slice(0, 1) })],
    ['ALTER', () => knex.schema.alterTable(table, (t) => void t.integer('more'))],
    ['INDEX', () => knex.schema.alterTable(table, (t) => void t.index(['more'], `${table}_more`))],
    ['INSERT', () => knex.transaction(insert)],
    ['UPDATE', () => knex(table).where({ id: 1 }).update({ more: 2 })],
    ['SELECT', () => knex(table).select('id')],
    ['DELETE', () => knex(table).where({ id: 1 }).delete()],
    ['DROP', () => knex.schema.dropTable(table)],
    [
      'CREATE TEMPORARY TABLES',
      () => knex.transaction((trx) => withTemporaryTable(trx, db, { table, lines }, () => insert(trx))),
    ],
  ];
  if (db.engine === 'mysql') await checkLimits(db);
  for (const [right, step] of steps) {
    try {
      await step();
    } catch (error) {
      await knex.schema.dropTableIfExists(table).catch(() => undefined);
      if (classifyDatabaseError(error) !== 'denied') throw toAppError(error, db.label);
      throw new AppError('database-rights', `${db.label}: the right ${right} is missing: ${databaseMessage(error)}`, {
        hint:
          db.engine === 'sqlite'
            ? 'The file or its directory is read-only for this user: give write access to both.'
            : `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, CREATE TEMPORARY TABLES ON ${db.schema}.* TO ${await grantee(db)};`,
      });
    }
  }
  if (db.engine === 'sqlite') return;
  const lock = new MysqlConnectionLock(db, [table]);
  try {
    await lock.acquire();
  } finally {
    await lock.release();
  }
}

/**
 * The least that a run gets along with. Measured with one instance, for an hour: 100,000 statements, of which 15,000
 * write, and 400 connections.
 */
const LEAST = {
  MAX_USER_CONNECTIONS: LEAST_CONNECTIONS,
  MAX_QUERIES_PER_HOUR: 100_000,
  MAX_UPDATES_PER_HOUR: 20_000,
  MAX_CONNECTIONS_PER_HOUR: 500,
};

async function checkLimits(db: Database): Promise<void> {
  const limits = { ...(await readHourlyLimits(db)), MAX_USER_CONNECTIONS: db.maxConnections };
  const low = (Object.keys(LEAST) as (keyof typeof LEAST)[]).filter((name) => (limits[name] ?? Infinity) < LEAST[name]);
  if (low.length === 0) return;
  const list = low.map((name) => `${name} is ${limits[name]}, and a run needs ${LEAST[name]}`);
  const enough = low.map((name) => `${name} ${name === 'MAX_USER_CONNECTIONS' ? ALL_CONNECTIONS : 0}`);
  throw new AppError('database-rights', `${db.label}: ${list.join('; ')}`, {
    hint: `ALTER USER ${await grantee(db)} WITH ${enough.join(' ')};`,
  });
}

/** Those that the user has; none where the server does not tell. */
async function readHourlyLimits({ knex }: Database): Promise<Partial<Record<keyof typeof LEAST, number>>> {
  const row = await mysqlRow<Record<string, string>>(knex.raw('show create user current_user()')).catch(
    () => undefined,
  );
  const found = Object.values(row ?? {})
    .join()
    .matchAll(/\b(MAX_\w+_PER_HOUR) (\d+)/g);
  return Object.fromEntries([...found].map(([, name, limit]) => [name, Number(limit)]));
}

/** Source of a CREATE … LIKE that always fails. */
const NOWHERE = 'crawlfleet_no_such_table';

/**
 * The privileges on the result table, which may be in another schema with its own grants. Each is tried by a statement
 * that touches no row and creates nothing; MySQL checks privileges first, so this works even for a table that does not
 * exist yet. Throws `database-rights` with every missing privilege and the GRANT for them. SQLite has only file
 * permissions, which checkRights() tries.
 */
export async function checkResultRights(db: Database, table: string, mapping: Mapping): Promise<void> {
  if (db.engine === 'sqlite') return;
  const { schema, name } = splitTableName(db, table);
  const exists = (await readTable(db.knex, db, table).catch(() => null)) !== null;
  const missing: string[] = [];
  for (const [right, sql, bindings] of statements(db, { table: `${schema}.${name}`, exists }, mapping))
    if (await isDenied(db, sql, bindings)) missing.push(right);
  if (missing.length === 0) return;
  throw new AppError(
    'database-rights',
    `${db.label}: for results.table ${table} the ${missing.length === 1 ? 'right' : 'rights'} ${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing`,
    { hint: `GRANT ${missing.join(', ')} ON ${schema}.${exists ? name : '*'} TO ${await grantee(db)};` },
  );
}

type Statement = [right: string, sql: string, bindings: string[]];

function statements(
  db: Database,
  { table, exists }: { table: string; exists: boolean },
  mapping: Mapping,
): Statement[] {
  const columns: ColumnList = [...keyColumns(mapping), ...neededColumns(db, mapping).map((c) => c.name)];
  const [key] = columns;
  const list = columns.map(() => '??').join(', ');
  return [
    ['SELECT', `select ${list} from ?? where 1 = 0`, [...columns, table]],
    // Columns may have their own grants, so all columns that a run writes are named.
    ['INSERT', `insert into ?? (${list}) select ${list} from ?? where 1 = 0`, [table, ...columns, ...columns, table]],
    [
      'UPDATE',
      `update ?? set ${columns.map(() => '?? = ??').join(', ')} where 1 = 0`,
      [table, ...columns.flatMap((c) => [c, c])],
    ],
    ['DELETE', 'delete from ?? where ?? is null and 1 = 0', [table, key]],
    // The privilege is checked first; then the source does not exist, so this never creates anything.
    ...(exists ? [] : [['CREATE', 'create table ?? like ??', [table, `${db.schema}.${NOWHERE}`]] satisfies Statement]),
  ];
}

async function isDenied(db: Database, sql: string, bindings: string[]): Promise<boolean> {
  try {
    await db.knex.raw(sql, bindings);
    return false;
  } catch (error) {
    const fault = classifyDatabaseError(error);
    if (fault === 'denied') return true;
    // Other checks report a server without writes and a table that is missing or does not fit: the privilege was
    // granted.
    if (fault === 'other' || fault === 'data' || fault === 'unwilling') return false;
    throw toAppError(error, db.label);
  }
}

/**
 * The connection's account in the form a GRANT needs, such as `'crawl'@'%'`, so that the statement in a message can be
 * pasted; MySQL and MariaDB only.
 */
async function grantee(db: Database): Promise<string> {
  const { account } = await mysqlRow<{ account: string }>(db.knex.raw('select current_user() as account'));
  const at = account.lastIndexOf('@');
  const quoted = (part: string): string => `'${part.replaceAll("'", "''")}'`;
  return `${quoted(account.slice(0, at))}@${quoted(account.slice(at + 1))}`;
}

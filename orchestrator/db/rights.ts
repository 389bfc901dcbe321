/** Proves before a run that the database user has every privilege a run needs. */
import { randomBytes } from 'node:crypto';
import { AppError } from '../../shared/domain/errors.ts';
import type { Mapping } from '../../shared/domain/mapping.ts';
import { keyColumns, neededColumns } from './column-types.ts';
import type { Database } from './connect.ts';
import { classifyDatabaseError, databaseMessage, toAppError } from './database-errors.ts';
import { mysqlRow } from './rows.ts';
import { readTable, splitTableName } from './table-info.ts';

/** By using each on a table of our own. Throws `database-rights` with the GRANT that is missing. Leaves nothing behind. */
export async function checkRights(db: Database): Promise<void> {
  const table = `crawlfleet_probe_${randomBytes(6).toString('hex')}`;
  const { knex } = db;
  const steps: [right: string, step: () => PromiseLike<unknown>][] = [
    ['CREATE', () => knex.schema.createTable(table, (t) => void t.integer('id').primary())],
    ['ALTER', () => knex.schema.alterTable(table, (t) => void t.integer('more'))],
    ['INDEX', () => knex.schema.alterTable(table, (t) => void t.index(['more'], `${table}_more`))],
    ['INSERT', () => knex(table).insert({ id: 1, more: 1 })],
    ['UPDATE', () => knex(table).where({ id: 1 }).update({ more: 2 })],
    ['SELECT', () => knex(table).select('id')],
    ['DELETE', () => knex(table).where({ id: 1 }).delete()],
    ['DROP', () => knex.schema.dropTable(table)],
  ];
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
  const columns = [...keyColumns(mapping), ...neededColumns(db, mapping).map((c) => c.name)];
  const key = columns[0]!;
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
  const row = await mysqlRow<{ account: string }>(db.knex.raw('select current_user() as account'));
  const account = row?.account ?? '';
  const at = account.lastIndexOf('@');
  const quoted = (part: string): string => `'${part.replaceAll("'", "''")}'`;
  return `${quoted(account.slice(0, at))}@${quoted(account.slice(at + 1))}`;
}

/**
 * Proves before a run that the database user may write the result table, which may be in another schema with its own
 * grants. Each privilege is tried by a statement that touches no row and creates nothing. MySQL checks privileges
 * first, so this works even for a table that does not exist yet.
 */
import { AppError } from '../../shared/domain/errors.ts';
import type { Mapping } from '../../shared/domain/mapping.ts';
import { keyColumns, neededColumns } from './column-types.ts';
import type { Database } from './connect.ts';
import { grantee } from './grantee.ts';
import { classifyDatabaseError, toAppError } from './database-errors.ts';
import { readTable, splitTableName } from './table-info.ts';

/** Source of a CREATE … LIKE that always fails. */
const NOWHERE = 'crawlfleet_no_such_table';

/**
 * Throws `database-rights` with every missing privilege and the GRANT for them. SQLite has only file permissions, which
 * checkRights() tries.
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

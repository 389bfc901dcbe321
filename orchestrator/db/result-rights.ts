/**
 * Proves before a run that the database user may write the result table, which may be in another schema and have grants of its
 * own. Each right is tried by a statement that touches no row and makes nothing; MySQL looks at rights before anything else,
 * so even a table that is not there yet can be asked about.
 */
import { AppError } from '../../shared/domain/errors.ts';
import type { Mapping } from '../../shared/domain/mapping.ts';
import { keyColumns, neededColumns } from './column-types.ts';
import type { Database } from './connect.ts';
import { grantee } from './grantee.ts';
import { classifyDatabaseError, toAppError } from './database-errors.ts';
import { readTable, splitTableName } from './table-info.ts';

/** Source of a CREATE … LIKE that can never be carried out. */
const NOWHERE = 'crawlfleet_no_such_table';

/**
 * Throws `database-rights` with every right that is missing and the GRANT that gives them. SQLite has no rights beside those
 * of the file, which checkRights() tries.
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
    // Columns may have grants of their own, so all that a run writes are named.
    ['INSERT', `insert into ?? (${list}) select ${list} from ?? where 1 = 0`, [table, ...columns, ...columns, table]],
    [
      'UPDATE',
      `update ?? set ${columns.map(() => '?? = ??').join(', ')} where 1 = 0`,
      [table, ...columns.flatMap((c) => [c, c])],
    ],
    ['DELETE', 'delete from ?? where ?? is null and 1 = 0', [table, key]],
    // The right comes first; then the source turns out not to exist, so nothing can ever be made by this.
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
    // A server that takes no writes, and a table that is not there or does not fit, are told of by others: the right was given.
    if (fault === 'other' || fault === 'data' || fault === 'unwilling') return false;
    throw toAppError(error, db.label);
  }
}

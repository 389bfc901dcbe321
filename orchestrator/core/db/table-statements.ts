/** Statements over whole tables, in the words of each engine. */
import type { Knex } from 'knex';
import type { Database } from './connect.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

type Engine = Pick<Database, 'engine'>;

export interface NewTable {
  table: string;
  /** Columns and keys, as in a CREATE TABLE; names may stand as `??`. */
  lines: readonly string[];
  /** Columns of the primary key of a result table, which is then marked as made by us. */
  markedKey?: readonly string[];
  /** The names for `??`, in order. */
  names?: readonly string[];
  /** The columns of each index, by its name. */
  indexes?: Readonly<Record<string, string>>;
}

/**
 * The table's options instead of the server's defaults: MyISAM and Aria take shorter keys than an ID may need, MEMORY
 * fewer rows.
 */
const optionsOf = (db: Engine): string => (db.engine === 'mysql' ? ' engine=InnoDB default character set utf8mb4' : '');

/** Stands in result tables that we have made: as their comment, and on SQLite as the name of their primary key. */
export const MADE_BY = 'made_by_crawlfleet';

/** Creates the table unless it exists. */
export async function createTable(
  knex: Knex,
  db: Engine,
  { table, lines: given, markedKey, names = [], indexes = {} }: NewTable,
) {
  const mysql = db.engine === 'mysql';
  const key = markedKey ? [`${mysql ? '' : `constraint ${MADE_BY} `}primary key (${markedKey.join(', ')})`] : [];
  const lines = [...given, ...key];
  const all = mysql ? [...lines, ...Object.values(indexes).map((columns) => `key (${columns})`)] : lines;
  const comment = mysql && markedKey ? ` comment='${MADE_BY}'` : '';
  await knex.raw(`create table if not exists ?? (${all.join(', ')})${optionsOf(db)}${comment}`, [table, ...names]);
  if (mysql) return;
  for (const [name, columns] of Object.entries(indexes))
    await knex.raw(`create index if not exists ?? on ?? (${columns})`, [`${table}_${name}`, table]);
}

/** What becomes of a row whose key is there already: these columns take the value of the new row. */
export function overwriting(db: Engine, key: readonly string[], columns: readonly string[]): string {
  return conflictClause(db, key, (fresh) => columns.map((column) => `\`${column}\` = ${fresh(column)}`));
}

/** The same with assignments of its own. @param assignmentsOf takes what names a column of the new row */
export function conflictClause(
  db: Engine,
  key: readonly string[],
  assignmentsOf: (fresh: (column: string) => string) => string[],
): string {
  return db.engine === 'mysql'
    ? `on duplicate key update ${assignmentsOf((column) => `values(\`${column}\`)`).join(', ')}`
    : `on conflict(${key.join(', ')}) do update set ${assignmentsOf((column) => `excluded.\`${column}\``).join(', ')}`;
}

/** Runs `work` while this connection has a temporary table, which is always dropped afterwards. */
export async function withTemporaryTable<T>(
  trx: Knex.Transaction,
  db: Engine,
  { table, lines }: Pick<NewTable, 'table' | 'lines'>,
  work: () => Promise<T>,
): Promise<T> {
  const drop = db.engine === 'mysql' ? `drop temporary table if exists ${table}` : `drop table if exists temp.${table}`;
  // A connection that returned to the pool half-way may still have it.
  await trx.raw(drop);
  await trx.raw(`create temporary table ${table} (${lines.join(', ')})${optionsOf(db)}`);
  try {
    return await work();
  } finally {
    // After a fault the connection may be lost, and the table with it.
    await trx.raw(drop).catch(() => undefined);
  }
}

/** Inserts the rows of a query inside the server; `conflict` says what becomes of rows that are there already. */
export async function insertSelect(
  trx: Knex.Transaction,
  into: { table: string; columns: readonly string[]; conflict?: string },
  query: Knex.QueryBuilder,
): Promise<void> {
  const { table, columns, conflict = '' } = into;
  const { sql, bindings } = query.toSQL();
  await trx
    .raw(`insert into ?? (${columns.map(() => '??').join(', ')}) ${sql} ${conflict}`, [
      table,
      ...columns,
      ...(bindings as string[]),
    ])
    .options({ timeout: LONG_STATEMENT_MS });
}

/** Reads a table's columns, unique keys and kind from the database. */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Database } from './connect.ts';
import { rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { MADE_BY } from './table-statements.ts';

export interface ColumnInfo {
  name: string;
  /** The type as written in a CREATE TABLE: `varchar(200)`, `int unsigned`, `TEXT`. */
  declared: string;
  /** The type without length and attributes, lower case: `varchar`, `int`, `text`; on SQLite the affinity. */
  type: string;
  nullable: boolean;
  hasDefault: boolean;
  generated: boolean;
  /** The length in characters; null where the type has none. */
  maxLength: number | null;
  charset: string | null;
  collation: string | null;
}

export interface TableInfo {
  kind: 'table' | 'view';
  /** True for a result table that crawlfleet has made. */
  isOurs: boolean;
  /** `InnoDB`; null on SQLite. */
  engine: string | null;
  columns: ColumnInfo[];
  /** Column lists of the primary key and the unique indexes; an index over part of a column is left out. */
  uniqueKeys: { name: string; columns: string[] }[];
}

/** Splits a table name such as `shop.snapshots` from its schema, which defaults to that of the connection. */
export function splitTableName(db: Database, table: string): { schema: string | null; name: string } {
  const [schema, name] = table.split('.');
  return schema === undefined || name === undefined ? { schema: db.schema, name: table } : { schema, name };
}

/** Column names are compared without regard to case, as in both engines. */
export function findColumn(table: TableInfo, name: string): ColumnInfo | undefined {
  return table.columns.find((c) => c.name.toLowerCase() === name.toLowerCase());
}

/** A column that the checks before the run have found. Throws `results-schema` when it is gone since. */
export function standingColumn(table: TableInfo, name: string): ColumnInfo {
  const column = findColumn(table, name);
  if (column === undefined)
    throw new AppError('results-schema', `column ${name} of the result table is gone since the run began`, {
      hint: 'Add the column again, with the type that it had.',
    });
  return column;
}

/** The type of an existing column with its charset, to create an identical one. */
export function typeOf(column: ColumnInfo): string {
  return column.charset === null
    ? column.declared
    : `${column.declared} character set ${column.charset} collate ${column.collation}`;
}

/** Reads the columns of a table; null when there is no such table. */
export function readTable(knex: Knex, db: Database, table: string): Promise<TableInfo | null> {
  return db.engine === 'sqlite' ? readSqliteTable(knex, table) : readMysqlTable(knex, db, table);
}

/** A table that the checks before the run have found or made. Throws `results-schema` when it is gone since. */
export async function readStandingTable(knex: Knex, db: Database, table: string): Promise<TableInfo> {
  const info = await readTable(knex, db, table);
  if (info === null)
    throw new AppError('results-schema', `results.table ${table} is gone since the run began`, {
      hint: 'Make the table again, as it was.',
    });
  return info;
}

async function readMysqlTable(knex: Knex, db: Database, table: string): Promise<TableInfo | null> {
  const { schema, name } = splitTableName(db, table);
  const where = { table_schema: schema, table_name: name };
  const [found] = await rowsOf<{ kind: string; engine: string | null; comment: string | null }>(
    knex('information_schema.tables')
      .where(where)
      .select({ kind: 'table_type', engine: 'engine', comment: 'table_comment' }),
  );
  if (!found) return null;
  const columns = await rowsOf<MysqlColumn>(
    knex('information_schema.columns').where(where).orderBy('ordinal_position').select({
      name: 'column_name',
      declared: 'column_type',
      type: 'data_type',
      nullable: 'is_nullable',
      fallback: 'column_default',
      extra: 'extra',
      maxLength: 'character_maximum_length',
      charset: 'character_set_name',
      collation: 'collation_name',
    }),
  );
  const keys = await rowsOf<{ name: string; column: string | null; part: SqlNumber | null }>(
    knex('information_schema.statistics')
      .where(where)
      .where({ non_unique: 0 })
      .orderBy(['index_name', 'seq_in_index'])
      .select({ name: 'index_name', column: 'column_name', part: 'sub_part' }),
  );
  return {
    kind: /view/i.test(found.kind) ? 'view' : 'table',
    isOurs: found.comment === MADE_BY,
    engine: found.engine,
    columns: columns.map(fromMysql),
    uniqueKeys: groupKeys(keys.map((k) => ({ ...k, whole: k.part === null && k.column !== null }))),
  };
}

type MysqlColumn = Omit<ColumnInfo, 'nullable' | 'hasDefault' | 'generated' | 'maxLength'> & {
  nullable: string;
  fallback: string | null;
  extra: string;
  maxLength: SqlNumber | null;
};

function fromMysql({ fallback, extra, ...column }: MysqlColumn): ColumnInfo {
  const generated = /\b(virtual|stored|persistent)\b/i.test(extra);
  return {
    ...column,
    type: column.type.toLowerCase(),
    nullable: column.nullable === 'YES',
    hasDefault: fallback !== null || generated || /auto_increment/i.test(extra),
    generated,
    maxLength: column.maxLength === null ? null : Number(column.maxLength),
  };
}

async function readSqliteTable(knex: Knex, table: string): Promise<TableInfo | null> {
  const [found] = await rowsOf<{ name: string; type: 'table' | 'view'; sql: string }>(
    knex.raw(`select name, type, sql from sqlite_master where type in ('table', 'view') and lower(name) = lower(?)`, [
      table,
    ]),
  );
  if (!found) return null;
  const rows = await rowsOf<SqliteColumn>(knex.raw('select * from pragma_table_xinfo(?)', [found.name]));
  const indexes = await rowsOf<{ name: string; col: string | null; partial: number; collation: string }>(
    knex.raw(
      `select l.name as name, i.name as col, l.partial as partial, x.coll as collation
       from pragma_index_list(?) l, pragma_index_xinfo(l.name) x left join pragma_index_info(l.name) i on i.seqno = x.seqno
      where l."unique" = 1 and x.key = 1 order by l.name, x.seqno`,
      [found.name],
    ),
  );
  const keys = indexes.map((i) => ({ name: i.name, column: i.col, whole: i.partial === 0 && i.col !== null }));
  // INTEGER PRIMARY KEY is the rowid and has no index.
  const primary = rows.filter((r) => toNumber(r.pk) > 0);
  const [one, ...more] = primary;
  if (one && more.length === 0) keys.push({ name: 'primary key', column: one.name, whole: true });
  return {
    kind: found.type,
    isOurs: new RegExp(`\\bconstraint\\s+.?${MADE_BY}\\b`, 'i').test(found.sql),
    engine: null,
    columns: rows.map((row) => fromSqlite(row, indexes.find((i) => i.col === row.name)?.collation ?? 'BINARY')),
    uniqueKeys: groupKeys(keys),
  };
}

interface SqliteColumn {
  name: string;
  type: string;
  notnull: number;
  dflt_value: string | null;
  pk: number;
  hidden: number;
}

function fromSqlite(row: SqliteColumn, collation: string): ColumnInfo {
  const type = affinity(row.type);
  return {
    name: row.name,
    declared: row.type,
    type,
    nullable: row.notnull === 0,
    hasDefault: row.dflt_value !== null || row.hidden > 1 || (row.pk > 0 && type === 'integer'),
    generated: row.hidden > 1,
    maxLength: null,
    charset: null,
    collation,
  };
}

/** SQLite's own rules (datatype3.html, 3.1): the declared type only says which conversions are tried. */
export function affinity(declared: string): 'integer' | 'text' | 'blob' | 'real' | 'numeric' {
  if (/int/i.test(declared)) return 'integer';
  if (/char|clob|text/i.test(declared)) return 'text';
  if (/blob/i.test(declared) || declared === '') return 'blob';
  if (/real|floa|doub/i.test(declared)) return 'real';
  return 'numeric';
}

function groupKeys(rows: readonly { name: string; column: string | null; whole: boolean }[]): TableInfo['uniqueKeys'] {
  const keys = new Map<string, { columns: string[]; whole: boolean }>();
  for (const row of rows) {
    const key = keys.get(row.name) ?? { columns: [], whole: true };
    key.columns.push(row.column ?? '');
    key.whole &&= row.whole;
    keys.set(row.name, key);
  }
  return [...keys].filter(([, key]) => key.whole).map(([name, key]) => ({ name, columns: key.columns }));
}

/** SQL that is true where two values differ. By bytes: to the user's collation "a" and "A" may be the same. */
export function isOther(db: Database, column: ColumnInfo, old: string, fresh: string): string {
  if (db.engine === 'sqlite') return `${old} is not (${fresh} collate binary)`;
  return column.charset === null
    ? `not (${old} <=> ${fresh})`
    : `not (cast(${old} as binary) <=> cast(${fresh} as binary))`;
}

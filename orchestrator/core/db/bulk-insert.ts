/**
 * Inserts many rows on a transaction's connection, as fast as the engine allows: prepared multi-row statements on MySQL
 * (knex would build and escape the text every time), one prepared statement on SQLite.
 */
import type { Knex } from 'knex';
import type { Database } from './connect.ts';
import { classifyDatabaseError, databaseCode, databaseMessage } from './database-errors.ts';

export type SqlValue = string | number | null;

/** Names of columns; the first one is of the key. */
export type ColumnList = readonly [string, ...string[]];

export interface BulkTarget {
  table: string;
  columns: ColumnList;
  /** When a row with the same key exists: fail, or keep the old row. */
  existing: 'error' | 'keep';
  /** Number of leading columns that form the key. Default 1. */
  keyColumns?: number;
  /**
   * Rows with the same first column form a group: when one is refused, the following rows of the group are skipped.
   * Earlier ones may be in, and the caller deletes them. Without this, an entirely faulty part would be refused row by
   * row.
   */
  together?: boolean;
}

/** A row that the database refused. */
export interface RefusedRow {
  index: number;
  /** The database's code and the column, without the value: `ER_DATA_TOO_LONG in column title`. */
  detail: string;
}

const MAX_ROWS = 1_000;
/** Values of a prepared statement: the driver keeps a description of each. The protocol allows 65,535. */
const MAX_PLACEHOLDERS = 2_000;

/**
 * Inserts the rows in order. Rows with refused values are found by halving their batch and are returned; all others are
 * inserted. Any other fault throws, and the caller must roll back the transaction.
 */
export function bulkInsert(
  trx: Knex.Transaction,
  db: Database,
  target: BulkTarget,
  rows: Iterable<readonly SqlValue[]>,
): Promise<RefusedRow[]> {
  return db.engine === 'sqlite' ? insertEach(trx, target, rows) : insertBatches(trx, db, target, rows);
}

interface SqliteConnection {
  prepare(sql: string): { run(...values: SqlValue[]): unknown };
}

/** The rows refused so far, and the skipped rows of their groups. */
class Refusals {
  readonly list: RefusedRow[] = [];
  readonly #together: boolean;
  readonly #groups = new Set<SqlValue | undefined>();

  constructor(target: BulkTarget) {
    this.#together = target.together ?? false;
  }

  add(row: readonly SqlValue[], index: number, detail: string): void {
    this.list.push({ index, detail });
    if (this.#together) this.#groups.add(row[0]);
  }

  covers(row: readonly SqlValue[]): boolean {
    return this.#groups.size > 0 && this.#groups.has(row[0]);
  }
}

async function insertEach(
  trx: Knex.Transaction,
  target: BulkTarget,
  rows: Iterable<readonly SqlValue[]>,
): Promise<RefusedRow[]> {
  const connection = (await trx.client.acquireConnection()) as SqliteConnection;
  const keep = target.existing === 'keep' ? ` on conflict(${keyOf(target, '"')}) do nothing` : '';
  const names = target.columns.map((c) => quote(c, '"')).join(', ');
  const holes = target.columns.map(() => '?').join(', ');
  const statement = connection.prepare(`insert into ${quote(target.table, '"')} (${names}) values (${holes})${keep}`);
  const refused = new Refusals(target);
  let index = 0;
  for (const row of rows) {
    try {
      if (!refused.covers(row)) statement.run(...row);
    } catch (error) {
      if (classifyDatabaseError(error) !== 'data') throw error;
      refused.add(row, index, refusalDetail(error));
    }
    index++;
  }
  return refused.list;
}

async function insertBatches(
  trx: Knex.Transaction,
  db: Database,
  target: BulkTarget,
  rows: Iterable<readonly SqlValue[]>,
): Promise<RefusedRow[]> {
  const connection = (await trx.client.acquireConnection()) as MysqlConnection;
  const maxRows = Math.min(MAX_ROWS, Math.floor(MAX_PLACEHOLDERS / target.columns.length));
  // Half: the wire form of the values differs from the size computed here, and exceeding the limit breaks the
  // connection.
  const maxBytes = db.maxPacketBytes / 2;
  const refused = new Refusals(target);
  const insert = async (batch: readonly Numbered[]): Promise<void> => {
    const part = batch.filter(({ row }) => !refused.covers(row));
    const [first, second] = part;
    if (first === undefined) return;
    try {
      await execute(
        connection,
        insertSql(target, part.length),
        part.flatMap(({ row }) => row),
      );
    } catch (error) {
      if (classifyDatabaseError(error) !== 'data') throw error;
      if (second === undefined) return refused.add(first.row, first.index, refusalDetail(error));
      const middle = part.length >> 1;
      await insert(part.slice(0, middle));
      await insert(part.slice(middle));
    }
  };
  let index = 0;
  let bytes = 0;
  let pending: Numbered[] = [];
  const flush = async (): Promise<void> => {
    if (pending.length === 0) return;
    const batch = pending;
    pending = [];
    bytes = 0;
    await insert(batch);
  };
  for (const row of rows) {
    const size = sizeOf(row);
    if (pending.length > 0 && (pending.length >= maxRows || bytes + size > maxBytes)) await flush();
    if (size > db.maxPacketBytes - 1_000) {
      await flush();
      refused.add(row, index, `ER_NET_PACKET_TOO_LARGE: ${size} bytes`);
    } else {
      pending.push({ row, index });
      bytes += size;
    }
    index++;
  }
  await flush();
  return refused.list;
}

interface Numbered {
  row: readonly SqlValue[];
  index: number;
}

interface MysqlConnection {
  execute(options: { sql: string }, values: readonly SqlValue[], done: (error: Error | null) => void): void;
}

function execute(connection: MysqlConnection, sql: string, values: readonly SqlValue[]): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.execute({ sql }, values, (error) => (error ? reject(error) : resolve()));
  });
}

function insertSql(target: BulkTarget, rows: number): string {
  const names = target.columns.map((c) => quote(c, '`')).join(', ');
  const tuple = `(${target.columns.map(() => '?').join(', ')})`;
  const key = quote(target.columns[0], '`');
  // Not INSERT IGNORE: it would also truncate and accept values that do not fit.
  const keep = target.existing === 'keep' ? ` on duplicate key update ${key} = ${key}` : '';
  return `insert into ${quote(target.table, '`')} (${names}) values ${Array(rows).fill(tuple).join(', ')}${keep}`;
}

function keyOf(target: BulkTarget, mark: string): string {
  return target.columns
    .slice(0, target.keyColumns ?? 1)
    .map((c) => quote(c, mark))
    .join(', ');
}

/** Names come from our code, a checked mapping or a run id; quoting is the second line of defence. */
function quote(name: string, mark: string): string {
  return mark + name.replaceAll(mark, mark + mark) + mark;
}

/** Bytes of the row in a prepared statement: texts in UTF-8 with their length, numbers as doubles. */
function sizeOf(row: readonly SqlValue[]): number {
  let bytes = 0;
  for (const value of row) bytes += typeof value === 'string' ? Buffer.byteLength(value) + 12 : 12;
  return bytes;
}

/**
 * What the database says of a refused value, never the value itself: it is crawled text, and this text goes into
 * reports.
 */
function refusalDetail(error: unknown): string {
  const message = databaseMessage(error);
  const named =
    /column ((?:[`'"][^`'"]+[`'"]\.?)+)/i.exec(message)?.[1] ?? /constraint failed: (\S+)$/.exec(message)?.[1];
  const column = named?.split('.').at(-1);
  return column ? `${databaseCode(error)} in column ${column.replace(/[`'"]/g, '')}` : databaseCode(error);
}

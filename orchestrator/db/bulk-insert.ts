/**
 * Inserts many rows on the connection of a transaction, as fast as the engine allows: prepared multi-row statements on
 * MySQL (knex would build and escape the text anew each time), one prepared statement on SQLite.
 */
import type { Knex } from 'knex';
import type { Database } from './connect.ts';
import { classifyDatabaseError, databaseCode, databaseMessage } from './database-errors.ts';

export type SqlValue = string | number | null;

export interface BulkTarget {
  table: string;
  columns: readonly string[];
  /** With a row of the same key already there: an error, or the old row stays as it is. The key is the first column. */
  existing: 'error' | 'keep';
}

/** A row the database would not take. */
export interface RefusedRow {
  index: number;
  /** The database's code and the column, without the value: `ER_DATA_TOO_LONG in column title`. */
  detail: string;
}

const MAX_ROWS = 1_000;
/** The protocol counts placeholders in 16 bits. */
const MAX_PLACEHOLDERS = 65_535;

/**
 * Inserts the rows in order. Rows whose values the database refuses are found by halving their batch and are returned;
 * the others are in. Any other fault throws, and the transaction has to be rolled back.
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

async function insertEach(
  trx: Knex.Transaction,
  target: BulkTarget,
  rows: Iterable<readonly SqlValue[]>,
): Promise<RefusedRow[]> {
  const connection = (await trx.client.acquireConnection()) as SqliteConnection;
  const keep = target.existing === 'keep' ? ` on conflict(${quote(target.columns[0]!, '"')}) do nothing` : '';
  const names = target.columns.map((c) => quote(c, '"')).join(', ');
  const holes = target.columns.map(() => '?').join(', ');
  const statement = connection.prepare(`insert into ${quote(target.table, '"')} (${names}) values (${holes})${keep}`);
  const refused: RefusedRow[] = [];
  let index = 0;
  for (const row of rows) {
    try {
      statement.run(...row);
    } catch (error) {
      if (classifyDatabaseError(error) !== 'data') throw error;
      refused.push({ index, detail: refusalDetail(error) });
    }
    index++;
  }
  return refused;
}

async function insertBatches(
  trx: Knex.Transaction,
  db: Database,
  target: BulkTarget,
  rows: Iterable<readonly SqlValue[]>,
): Promise<RefusedRow[]> {
  const connection = (await trx.client.acquireConnection()) as MysqlConnection;
  const maxRows = Math.min(MAX_ROWS, Math.floor(MAX_PLACEHOLDERS / target.columns.length));
  // Half: the values travel in another form than they are counted here, and beyond the limit the connection breaks.
  const maxBytes = db.maxPacketBytes / 2;
  const refused: RefusedRow[] = [];
  const insert = async (part: readonly (readonly SqlValue[])[], firstIndex: number): Promise<void> => {
    try {
      await execute(connection, insertSql(target, part.length), part.flat());
    } catch (error) {
      if (classifyDatabaseError(error) !== 'data') throw error;
      if (part.length === 1) {
        refused.push({ index: firstIndex, detail: refusalDetail(error) });
        return;
      }
      const middle = part.length >> 1;
      await insert(part.slice(0, middle), firstIndex);
      await insert(part.slice(middle), firstIndex + middle);
    }
  };
  let index = 0;
  let bytes = 0;
  let pending: (readonly SqlValue[])[] = [];
  const flush = async (): Promise<void> => {
    if (pending.length === 0) return;
    await insert(pending, index - pending.length);
    pending = [];
    bytes = 0;
  };
  for (const row of rows) {
    const size = sizeOf(row);
    if (pending.length > 0 && (pending.length >= maxRows || bytes + size > maxBytes)) await flush();
    if (size > db.maxPacketBytes - 1_000) {
      await flush();
      refused.push({ index, detail: `ER_NET_PACKET_TOO_LARGE: ${size} bytes` });
      index++;
      continue;
    }
    pending.push(row);
    bytes += size;
    index++;
  }
  await flush();
  return refused;
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
  const key = quote(target.columns[0]!, '`');
  // Not INSERT IGNORE: that would also wave through values that do not fit, cut to size.
  const keep = target.existing === 'keep' ? ` on duplicate key update ${key} = ${key}` : '';
  return `insert into ${quote(target.table, '`')} (${names}) values ${Array(rows).fill(tuple).join(', ')}${keep}`;
}

/** Names come from our code, a checked mapping or a run id; quoting is the second wall. */
function quote(name: string, mark: string): string {
  return mark + name.replaceAll(mark, mark + mark) + mark;
}

/** Bytes of the row in a prepared statement: texts in UTF-8 with their length, numbers as doubles. */
function sizeOf(row: readonly SqlValue[]): number {
  let bytes = 0;
  for (const value of row) bytes += typeof value === 'string' ? Buffer.byteLength(value) + 12 : 12;
  return bytes;
}

/** Never the value itself: it is crawled text, and this goes into reports. */
function refusalDetail(error: unknown): string {
  const message = databaseMessage(error);
  const named =
    /column ((?:[`'"][^`'"]+[`'"]\.?)+)/i.exec(message)?.[1] ?? /constraint failed: (\S+)$/.exec(message)?.[1];
  const column = named?.split('.').at(-1);
  return column ? `${databaseCode(error)} in column ${column.replace(/[`'"]/g, '')}` : databaseCode(error);
}

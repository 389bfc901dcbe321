/** Streams the user's product query, on its own read-only connection. */
import type { Socket } from 'node:net';
import Sqlite from 'better-sqlite3';
import { createConnection } from 'mysql2';
import { AppError } from '../../shared/domain/errors.ts';
import { MAX_ID_CHARS, findIdFault } from '../../shared/domain/product.ts';
import type { ProductSource } from '../control/model/stores.ts';
import { connectError, type Database, mysqlConnection } from './connect.ts';
import { type MysqlAddress, parseDatabaseUrl, type SqliteAddress } from './database-url.ts';
import { inQuery } from './retry.ts';
import { classifyDatabaseError, databaseMessage, toAppError } from './database-errors.ts';

/** A heavy query may take long before its first row; a server that sends nothing for this long counts as dead. */
const SILENCE_MS = 5 * 60_000;
/** Rows read ahead of the consumer. */
const READ_AHEAD = 1_000;

/** A value of the id column, as the driver returns it. */
type RawId = Uint8Array | string | number | bigint | null;

/** Each read() runs the query once. Throws `products-query`, `product-id-invalid` and the errors of openDatabase. */
export function createProductSource(url: string, query: string): ProductSource {
  const address = parseDatabaseUrl(url);
  return {
    async *read() {
      let row = 0;
      for await (const raw of address.engine === 'sqlite' ? readSqlite(address, query) : readMysql(address, query)) {
        row++;
        yield checkedId(raw, row);
      }
    },
  };
}

function checkedId(raw: RawId, row: number): string {
  if (raw === null) throw invalidId(row, 'is null');
  const id = raw instanceof Uint8Array ? decodeText(raw, row) : String(raw);
  const fault = findIdFault(id);
  if (fault !== null) throw invalidId(row, fault, id);
  return id;
}

function decodeText(bytes: Uint8Array, row: number): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalidId(row, 'is not valid UTF-8');
  }
}

function invalidId(row: number, fault: string, id?: string): AppError {
  const shown = id ? ` ${JSON.stringify(id.length > 60 ? `${id.slice(0, 60)}…` : id)}` : '';
  return new AppError('product-id-invalid', `row ${row} of products.query: the id${shown} ${fault}`, {
    hint: 'Leave such rows out in the query, for example: … where id is not null and id <> ’’'.replaceAll('’', "'"),
  });
}

/** The index of the id column: spelled `id`, else in any other case. */
export function findIdColumn(names: readonly string[]): number {
  const exact = names.flatMap((name, i) => (name === 'id' ? [i] : []));
  const any = exact.length > 0 ? exact : names.flatMap((name, i) => (name.toLowerCase() === 'id' ? [i] : []));
  if (any.length === 1) return any[0]!;
  const found = any.length > 1 ? `${any.length} columns named id` : 'no column named id';
  throw new AppError('products-query', `products.query yields ${found}; its columns are: ${names.join(', ')}`, {
    hint: 'Name the column in the query, for example: select sku as id from products',
  });
}

function queryFailed(error: unknown): AppError {
  return new AppError('products-query', `products.query fails: ${databaseMessage(error)}`, {
    hint: 'Try the query in the database’s own client.',
  });
}

function noRows(): AppError {
  return new AppError('products-query', 'products.query is not a query: it gives no rows', {
    hint: 'Write a SELECT that yields a column named id.',
  });
}

async function* readSqlite(address: SqliteAddress, query: string): AsyncGenerator<RawId> {
  let connection: Sqlite.Database;
  try {
    connection = new Sqlite(address.file, { readonly: true, fileMustExist: true });
  } catch (error) {
    throw new AppError('database-unreachable', `${address.label} cannot be opened: ${databaseMessage(error)}`, {
      hint: 'Check the path in database.url.',
    });
  }
  try {
    const statement = prepare(connection, query);
    const at = findIdColumn(statement.columns().map((c) => c.name));
    // As BigInt, because a JavaScript number would round values beyond 2^53.
    const rows = statement.raw(true).safeIntegers(true).iterate() as Iterable<RawId[]>;
    for (const row of rows) yield row[at]!;
  } catch (error) {
    throw error instanceof AppError ? error : queryFailed(error);
  } finally {
    connection.close();
  }
}

function prepare(connection: Sqlite.Database, query: string): Sqlite.Statement {
  const statement = connection.prepare(query);
  if (!statement.reader) throw noRows();
  return statement;
}

async function* readMysql(address: MysqlAddress, query: string): AsyncGenerator<RawId> {
  const connection = createConnection(mysqlConnection(address));
  // The socket itself, because connection.destroy() is too gentle: in the middle of a result it would wait for the
  // server to finish sending, and a pending query on the closed connection would wait forever.
  const socket = (connection as unknown as { stream: Socket }).stream;
  // Every fault also reaches its caller; without a listener the event would end the process.
  connection.on('error', () => undefined);
  try {
    const run = (sql: string): Promise<void> =>
      new Promise((resolve, reject) => void connection.query(sql, (error) => (error ? reject(error) : resolve())));
    try {
      await run('set session transaction read only');
      await run(`set session time_zone = '+00:00'`);
    } catch (error) {
      throw connectError(error, address);
    }
    socket.setTimeout(SILENCE_MS, () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
    yield* streamIds(connection, query);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw classifyDatabaseError(error) === 'lost' ? toAppError(error, address.label) : queryFailed(error);
  } finally {
    socket.destroy();
  }
}

/** The part of mysql2's streaming API that its types omit for these options. */
interface Command {
  on(event: 'fields', listener: (fields: { name: string }[] | undefined) => void): void;
  stream(options: { highWaterMark: number }): AsyncIterable<unknown>;
}

async function* streamIds(connection: ReturnType<typeof createConnection>, query: string): AsyncGenerator<RawId> {
  // Raw bytes: numbers of any size and decimals keep their digits, and we decode text strictly.
  const options = {
    sql: query,
    rowsAsArray: true,
    typeCast: (field: { buffer(): Uint8Array | null }) => field.buffer(),
  };
  const command = connection.query(options as unknown as string) as unknown as Command;
  let at: number | null = null;
  let fault: AppError | null = null;
  command.on('fields', (fields) => {
    if (!fields || at !== null) return;
    try {
      at = findIdColumn(fields.map((f) => f.name));
    } catch (error) {
      fault = error as AppError;
    }
  });
  for await (const row of command.stream({ highWaterMark: READ_AHEAD })) {
    if (fault) throw fault;
    if (!Array.isArray(row) || at === null) throw noRows();
    yield (row as (Uint8Array | null)[])[at]!;
  }
  if (fault) throw fault;
}

/** Makes a table `products` of these IDs, for a database that has none yet. */
export async function createProductTable(db: Database, ids: readonly string[]): Promise<void> {
  await inQuery(db, async (knex) => {
    await knex.schema.createTable('products', (t) => void t.string('id', MAX_ID_CHARS).primary());
    await knex('products').insert(ids.map((id) => ({ id })));
  });
}

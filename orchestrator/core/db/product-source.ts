/** Streams the user's product query, on its own read-only connection. */
import type { Socket } from 'node:net';
import Sqlite from 'better-sqlite3';
import { createConnection } from 'mysql2';
import { AppError } from '../../../shared/domain/errors.ts';
import { MAX_ID_CHARS, MAX_PRODUCTS, findIdFault } from '../../../shared/domain/product.ts';
import { connectError, type Database, mysqlConnection, PLAIN_SESSION } from './connect.ts';
import { type MysqlAddress, parseDatabaseUrl, type SqliteAddress } from './database-url.ts';
import type { ListedUrls } from './listed-urls.ts';
import { inQuery } from './retry.ts';
import { classifyDatabaseError, databaseMessage, toAppError } from './database-errors.ts';

/** A product as `products.query` lists it. */
export interface ListedProduct {
  id: string;
  /** How much it matters; below 0 counts as 0, above 1 as 1. */
  score: number;
  /** When its owner has changed it; null: unknown. */
  changedAtMs: number | null;
  /** The order among the due: a higher one comes first. */
  priority: number;
  category: string | null;
}

/** The user's product query, read once, as text, in order. Throws `products-query` and `product-id-invalid`. */
export interface ProductSource {
  read(): AsyncIterable<string>;
  /** The products with what `products.recrawl` goes by; columns that the query does not yield are empty. */
  listed(scoreColumn: string): AsyncIterable<ListedProduct>;
}

/** A heavy query may take long before its first row; a server that sends nothing for this long counts as dead. */
const SILENCE_MS = 5 * 60_000;
/** Rows read ahead of the consumer. With 1,000 of a long list the heap grew by 12 MB more. */
const READ_AHEAD = 100;

/** A value as the driver returns it. */
type RawValue = Uint8Array | string | number | bigint | null;

/**
 * Each read runs the query once. Throws `products-query`, `product-id-invalid` and the errors of openDatabase.
 *
 * @param urls takes what the rows say of the URLs; omitted: the IDs are all
 */
export function createProductSource(url: string, query: string, urls?: ListedUrls): ProductSource {
  const address = parseDatabaseUrl(url);
  const needed = urls?.columns ?? [];
  const rowsOf = (optional: readonly string[]): AsyncGenerator<RawValue[]> => {
    const columns = { more: [...optional, ...needed], note: (names: readonly string[]) => urls?.noteColumns(names) };
    return address.engine === 'sqlite' ? readSqlite(address, query, columns) : readMysql(address, query, columns);
  };
  const noted = urls?.looksAtRows === true ? urls : null;
  const note = (row: number, id: string, values: readonly RawValue[]): void => {
    const own = needed.length === 0 ? null : (values.at(-1) ?? null);
    noted?.add(row, id, own === null ? null : urlText(own));
  };
  return {
    async *read() {
      let row = 0;
      for await (const values of rowsOf([])) {
        const id = checkedId(values[0] ?? null, ++row);
        if (noted !== null) note(row, id, values);
        yield id;
      }
    },
    async *listed(scoreColumn) {
      let row = 0;
      for await (const all of rowsOf([scoreColumn, ...OPTIONAL.slice(1)])) {
        row++;
        const [rawId = null, ...values] = all;
        const id = checkedId(rawId, row);
        if (noted !== null) note(row, id, all);
        if (needed.length > 0) values.pop();
        const [score = null, changed = null, priority = null, category = null] = values.map((value) =>
          value === null ? null : textOf(value, row),
        );
        yield {
          id,
          score: numberIn(scoreColumn, score, row),
          changedAtMs: changed === null ? null : timeIn(changed, row),
          priority: numberIn('priority', priority, row),
          category,
        };
      }
    },
  };
}

/** An empty value counts as 0. */
function numberIn(column: string, text: string | null, row: number): number {
  const value = Number(text ?? 0);
  if (Number.isFinite(value)) return value;
  throw new AppError('products-query', `row ${row} of products.query: ${column} is ${JSON.stringify(text)}, no number`);
}

/** Text with or without a zone (then UTC), or Unix time in seconds or milliseconds. */
function timeIn(text: string, row: number): number {
  const number = Number(text);
  if (Number.isFinite(number)) return Math.abs(number) < 1e11 ? number * 1_000 : number;
  const iso = text.trim().replace(' ', 'T');
  const ms = Date.parse(/(Z|[+-]\d\d:?\d\d)$/i.test(iso) || iso.length <= 10 ? iso : `${iso}Z`);
  if (!Number.isNaN(ms)) return ms;
  throw new AppError('products-query', `row ${row} of products.query: changed_at is ${JSON.stringify(text)}, no time`, {
    hint: 'It must be a date and time such as 2026-11-21 02:15:30, or Unix time.',
  });
}

function checkedId(raw: RawValue, row: number): string {
  if (row > MAX_PRODUCTS)
    throw new AppError(
      'products-query',
      `products.query yields more than ${MAX_PRODUCTS.toLocaleString('en-US')} rows, the most that a run takes`,
      { hint: 'Divide it among several configurations, for example: … where category = 1' },
    );
  if (raw === null) throw invalidId(row, 'is null');
  const id = textOf(raw, row);
  const fault = findIdFault(id);
  if (fault !== null) throw invalidId(row, fault, id);
  return id;
}

function textOf(value: NonNullable<RawValue>, row: number): string {
  if (!(value instanceof Uint8Array)) return String(value);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value);
  } catch {
    throw invalidId(row, 'is not valid UTF-8');
  }
}

/** The text of a URL; null where it is no valid UTF-8. */
function urlText(value: NonNullable<RawValue>): string | null {
  const text = value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value);
  return text.includes('\uFFFD') ? null : text;
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
  const [only, ...others] = any;
  if (only !== undefined && others.length === 0) return only;
  const found = any.length > 1 ? `${any.length} columns named id` : 'no column named id';
  throw new AppError('products-query', `products.query yields ${found}; its columns are: ${names.join(', ')}`, {
    hint: 'Name the column in the query, for example: select sku as id from products',
  });
}

const OPTIONAL = ['score', 'changed_at', 'priority', 'category'];

/** The columns to read beside `id`, and who hears of all that the query yields. */
interface Columns {
  more: readonly string[];
  note: (names: readonly string[]) => void;
}

/** The indexes of the id column and of these; undefined for one that the query does not yield. */
function findColumns(names: readonly string[], { more, note }: Columns): (number | undefined)[] {
  note(names);
  const lower = names.map((name) => name.toLowerCase());
  const find = (name: string): number => lower.indexOf(name.toLowerCase());
  // A configured score must exist: without it all products would rank the same, unnoticed.
  const named = more.find((name) => !OPTIONAL.includes(name) && find(name) < 0);
  if (named !== undefined)
    throw new AppError(
      'products-query',
      `products.query yields no column ${named}, which ${named === 'url' ? 'has the URLs of the products with site.hosts' : 'products.recrawl.score names'}`,
      { hint: `Its columns are: ${names.join(', ')}` },
    );
  return [findIdColumn(names), ...more.map((name) => (find(name) < 0 ? undefined : find(name)))];
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

async function* readSqlite(address: SqliteAddress, query: string, columns: Columns): AsyncGenerator<RawValue[]> {
  let connection: Sqlite.Database;
  try {
    connection = new Sqlite(address.file, { readonly: true, fileMustExist: true });
  } catch (error) {
    throw new AppError('database-unreachable', `${address.label} cannot be opened: ${databaseMessage(error)}`, {
      hint: 'Check the path in database.url.',
    });
  }
  try {
    // Each page is read once: the driver's default of 16 MB would stay in memory beside the list.
    connection.pragma('cache_size = -2000');
    const statement = connection.prepare(query);
    if (!statement.reader) throw noRows();
    const names = statement.columns().map(({ name }) => name);
    const places = findColumns(names, columns);
    // As BigInt, because a JavaScript number would round values beyond 2^53.
    const rows = statement.raw(true).safeIntegers(true).iterate() as Iterable<RawValue[]>;
    for (const row of rows) yield places.map((at) => (at === undefined ? null : (row[at] ?? null)));
  } catch (error) {
    throw error instanceof AppError ? error : queryFailed(error);
  } finally {
    connection.close();
  }
}

async function* readMysql(address: MysqlAddress, query: string, columns: Columns): AsyncGenerator<RawValue[]> {
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
      for (const sql of PLAIN_SESSION) await run(sql);
    } catch (error) {
      throw connectError(error, address);
    }
    socket.setTimeout(SILENCE_MS, () => socket.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
    yield* streamRows(connection, query, columns);
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

/** Outside of any function: the driver keeps it until the process ends, with all that it could see. */
const rawBytes = (field: { buffer(): Uint8Array | null }): Uint8Array | null => field.buffer();

async function* streamRows(
  connection: ReturnType<typeof createConnection>,
  query: string,
  columns: Columns,
): AsyncGenerator<RawValue[]> {
  // Raw bytes: numbers of any size and decimals keep their digits, and we decode text strictly.
  const options = {
    sql: query,
    rowsAsArray: true,
    typeCast: rawBytes,
  };
  const command = connection.query(options as unknown as string) as unknown as Command;
  let places: (number | undefined)[] | null = null;
  let fault: AppError | null = null;
  command.on('fields', (fields) => {
    if (!fields || places !== null) return;
    const names = fields.map(({ name }) => name);
    try {
      places = findColumns(names, columns);
    } catch (error) {
      fault = error as AppError;
    }
  });
  for await (const row of command.stream({ highWaterMark: READ_AHEAD })) {
    if (fault) throw fault;
    if (!Array.isArray(row) || places === null) throw noRows();
    const values = row as (Uint8Array | null)[];
    yield (places as (number | undefined)[]).map((at) => (at === undefined ? null : (values[at] ?? null)));
  }
  if (fault) throw fault;
}

/** Makes a table `products`, for a database that has none yet. @param urls those of products that have their own */
export async function createProductTable(
  db: Database,
  ids: readonly string[],
  urls: readonly string[] | null = null,
): Promise<void> {
  await inQuery(db, async (knex) => {
    await knex.schema.createTable('products', (t) => {
      t.string('id', MAX_ID_CHARS).primary();
      if (urls !== null) t.text('url').notNullable();
    });
    await knex('products').insert(ids.map((id, i) => ({ id, ...(urls === null ? {} : { url: urls[i] }) })));
  });
}

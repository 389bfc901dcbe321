/**
 * Writes the same rows directly into a table of the same shape: by LOAD DATA LOCAL, and by the inserts used to load a
 * part.
 */
import { Readable } from 'node:stream';
import { createConnection } from 'mysql2/promise';
import { bulkInsert, type SqlValue } from '../../orchestrator/core/db/bulk-insert.ts';
import type { Database } from '../../orchestrator/core/db/connect.ts';
import { inTransaction } from '../../orchestrator/core/db/retry.ts';
import { COLUMNS, idOf, rowOf, urlOf } from './bench-run.ts';

const ALL = ['product_id', ...COLUMNS, 'url', 'crawled_at'] as const;
const AT = '2026-01-01 00:00:00.000';
/** Rows per transaction, as in a part. */
const PART = 1_000;

function valuesOf(n: number): SqlValue[] {
  const row = rowOf(n);
  return [idOf(n), ...COLUMNS.map((c) => toSql(row[c])), urlOf(n), AT];
}

const toSql = (value: unknown): SqlValue =>
  typeof value === 'boolean' ? Number(value) : ((value ?? null) as SqlValue);

/**
 * Milliseconds for LOAD DATA LOCAL from memory, sorted by key, in one statement. @param table a table with the shape of
 * the rows
 */
export async function loadData(url: string, table: string, products: number): Promise<number> {
  const connection = await createConnection({ uri: url, flags: ['+LOCAL_FILES'] });
  try {
    await connection.query(`create table load_data_copy like \`${table}\``);
    const startMs = performance.now();
    await connection.query({
      sql: `load data local infile 'rows' into table load_data_copy character set utf8mb4 (${ALL.join(', ')})`,
      infileStreamFactory: () => Readable.from(lines(products)),
    } as never);
    const tookMs = performance.now() - startMs;
    const [rows] = await connection.query('select count(*) found from load_data_copy');
    const { found } = (rows as { found: number }[])[0]!;
    if (found !== products) throw new Error(`LOAD DATA took ${found} of ${products} rows`);
    await connection.query('drop table load_data_copy');
    return tookMs;
  } finally {
    await connection.end();
  }
}

function* lines(products: number): Generator<Buffer> {
  for (let n = 1; n <= products;) {
    let text = '';
    for (let i = 0; i < PART && n <= products; i++, n++)
      text += `${valuesOf(n)
        .map((v) => (v === null ? '\\N' : String(v)))
        .join('\t')}\n`;
    yield Buffer.from(text);
  }
}

/** Milliseconds for only the inserts of the parts: no bucket, no ledger. */
export async function insertParts(db: Database, table: string, products: number): Promise<number> {
  await db.knex.raw('create table bulk_copy like ??', [table]);
  const startMs = performance.now();
  for (let from = 1; from <= products; from += PART) {
    const rows = Array.from({ length: Math.min(PART, products - from + 1) }, (_, i) => valuesOf(from + i));
    const target = { table: 'bulk_copy', columns: ALL, existing: 'keep' } as const;
    await inTransaction(db, (trx) => bulkInsert(trx, db, target, rows));
  }
  const tookMs = performance.now() - startMs;
  await db.knex.raw('drop table bulk_copy');
  return tookMs;
}

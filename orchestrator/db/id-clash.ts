/**
 * Checks whether an existing product_id column distinguishes these products. Integer columns and collations that ignore
 * case or trailing spaces are fine as long as no two products of the run are equal under them.
 */
import type { Knex } from 'knex';
import type { Database } from './connect.ts';
import { classifyDatabaseError, databaseCode, toAppError } from './database-errors.ts';
import { bulkInsert } from './bulk-insert.ts';
import { type ColumnInfo, typeOf } from './table-info.ts';
import { withTemporaryTable } from './table-statements.ts';

const INTEGER = /^(tinyint|smallint|mediumint|int|integer|bigint)$/;
const PROBE = 'crawlfleet_id_probe';

/** The fault as a message; null when every product gets its own row. No ID is longer than `maxChars`. */
export async function findIdClash(
  db: Database,
  { table, column, maxChars }: { table: string; column: ColumnInfo; maxChars: number },
  productIds: readonly string[],
): Promise<string | null> {
  if (productIds.length === 0 || isByteEqual(db, column, maxChars)) return null;
  if (INTEGER.test(column.type) || column.type === 'numeric') {
    const other = productIds.find((id) => !/^(0|-?[1-9]\d{0,19})$/.test(id));
    if (other !== undefined)
      return `product_id is ${column.declared}, but the product ${JSON.stringify(other)} is not a plain whole number`;
  }
  const result = await probe(db, column, productIds);
  if (result === null) return null;
  if (result === 'clash')
    return `product_id (${column.declared}${column.collation ? `, ${column.collation}` : ''}) treats some of the products as equal`;
  return `product_id (${column.declared}) of ${table} cannot hold all products: ${result}`;
}

function isByteEqual(db: Database, column: ColumnInfo, maxChars: number): boolean {
  if (db.engine === 'sqlite') return /^(text|blob)$/.test(column.type) && column.collation === 'BINARY';
  return column.type === 'varchar' && column.collation === db.byteCollation && (column.maxLength ?? 0) >= maxChars;
}

/** Null, `clash`, or the database's message for a value that does not fit. Other sessions never see the table. */
async function probe(db: Database, column: ColumnInfo, productIds: readonly string[]): Promise<string | null> {
  const type = db.engine === 'sqlite' ? `${column.declared} collate ${column.collation ?? 'BINARY'}` : typeOf(column);
  const lines = [`product_id ${type} not null ${db.engine === 'sqlite' ? 'unique' : 'primary key'}`];
  try {
    return await db.knex.transaction((trx) =>
      withTemporaryTable(trx, db, { table: PROBE, lines }, () => insertAll(trx, db, productIds)),
    );
  } catch (error) {
    throw toAppError(error, db.label);
  }
}

async function insertAll(trx: Knex.Transaction, db: Database, productIds: readonly string[]): Promise<string | null> {
  const target = { table: PROBE, columns: ['product_id'], existing: 'error' } as const;
  try {
    const rows = productIds.map((id) => [id]);
    const refused = await bulkInsert(trx, db, target, rows);
    return refused[0]
      ? `${refused.length} do not fit, the first is ${JSON.stringify(productIds[refused[0].index])} (${refused[0].detail})`
      : null;
  } catch (error) {
    if (isDuplicate(error)) return 'clash';
    throw error;
  }
}

const DUPLICATE = /^(ER_DUP_ENTRY|ER_DUP_UNKNOWN_IN_INDEX|SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY))$/;

const isDuplicate = (error: unknown): boolean =>
  classifyDatabaseError(error) === 'other' && DUPLICATE.test(databaseCode(error));

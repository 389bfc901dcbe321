/**
 * Checks whether an existing product_id column distinguishes these products. Integer columns and collations that ignore
 * case or trailing spaces are fine as long as no two products of the run are equal under them.
 */
import type { Knex } from 'knex';
import type { Database } from './connect.ts';
import { classifyDatabaseError, databaseCode, toAppError } from './database-errors.ts';
import { bulkInsert } from './bulk-insert.ts';
import type { ColumnInfo } from './table-info.ts';

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

/** The table is temporary, so other sessions never see it; created and dropped as each engine wants it. */
function probeTable(db: Database, column: ColumnInfo): { create: string; drop: string } {
  const create = `create temporary table ${PROBE} (product_id ${column.declared}`;
  if (db.engine === 'sqlite')
    return {
      create: `${create} collate ${column.collation ?? 'BINARY'} not null unique)`,
      drop: `drop table temp.${PROBE}`,
    };
  const charset = column.charset === null ? '' : ` character set ${column.charset} collate ${column.collation}`;
  return { create: `${create}${charset} not null primary key)`, drop: `drop temporary table ${PROBE}` };
}

/** Null, `clash`, or the database's message for a value that does not fit. */
async function probe(db: Database, column: ColumnInfo, productIds: readonly string[]): Promise<string | null> {
  const { create, drop } = probeTable(db, column);
  try {
    return await db.knex.transaction(async (trx) => {
      await trx.raw(create);
      try {
        return await insertAll(trx, db, productIds);
      } finally {
        // The connection returns to the pool, and the table would stay with it.
        await trx.raw(drop);
      }
    });
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

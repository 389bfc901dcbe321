/** What a run writes into the result table: its rows, and deletions of those that its products no longer have. */
import type { Knex } from 'knex';
import { ITEMS } from './chunk-rows.ts';
import { keyColumns } from './column-types.ts';
import type { Database } from './connect.ts';
import { databaseMessage } from './database-errors.ts';
import type { ExceptSettled } from './newer-runs.ts';
import { type Decisions, fieldValues } from './number-columns.ts';
import { rowsOf, type SqlNumber, toNumber } from './rows.ts';
import type { RunShape } from './run-shape.ts';
import { errorOfRows } from './savepoint.ts';
import { stagingColumns } from './staging.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { insertSelect, overwriting } from './table-statements.ts';
import { findColumn, readTable } from './table-info.ts';

/** Product IDs per DELETE. */
const LIST = 1_000;

/** What a run publishes: its products that no newer run has settled. */
export interface Publishing {
  runId: string;
  shape: RunShape;
  decisions: Decisions;
  exceptSettled: ExceptSettled;
  /** Restricts it to some products, by `product_id`. */
  only?: (query: Knex.QueryBuilder) => void;
}

const ALL = (): undefined => undefined;

/** Staging → result table, by one statement. */
export async function upsertRows(
  trx: Knex.Transaction,
  db: Database,
  { runId, shape, decisions, exceptSettled, only = ALL }: Publishing,
): Promise<void> {
  const columns = stagingColumns(shape.mapping);
  const key = keyColumns(shape.mapping);
  const update = [...columns.slice(key.length), 'run_id'];
  const info = await readTable(trx, db, shape.results.table);
  const id = info && findColumn(info, 'product_id');
  // A key that treats "a" and "A" as equal would keep the other run's spelling, and `verify` compares bytes.
  if (id && id.collation !== null && id.collation !== (db.byteCollation ?? 'BINARY')) update.push('product_id');
  const rows = trx(shape.staging)
    .select(
      ...key,
      ...fieldValues(shape, decisions).map(({ sql, bindings }) => trx.raw(sql, bindings)),
      ...columns.slice(key.length + shape.columns.length),
      trx.raw('?', [runId]),
    )
    // Tells SQLite's parser that ON CONFLICT does not belong to the SELECT.
    .whereRaw('true')
    .modify(exceptSettled)
    .modify(only);
  const conflict = overwriting(db, key, update);
  await insertSelect(trx, { table: shape.results.table, columns: [...columns, 'run_id'], conflict }, rows);
}

/**
 * Deletes the rows of stored products that this run did not produce. Those of a partial product may be on the pages
 * that it was stored without: they stay.
 */
export async function deleteVanishedRows(trx: Knex.Transaction, db: Database, publishing: Publishing): Promise<void> {
  for await (const ids of idsOf(trx, db, publishing, { outcome: 'stored', left_out: null }))
    await rowsOfProducts(trx, publishing, ids).whereRaw('(run_id <> ? or run_id is null)', [publishing.runId]).delete();
}

/** Gone products whose rows the database does not let go. */
export interface KeptRows {
  ids: string[];
  /** The database's words about the first. */
  words: string;
}

/** Deletes the rows of gone products; null when all could be deleted. A row that others refer to costs no night. */
export async function deleteGoneRows(
  trx: Knex.Transaction,
  db: Database,
  publishing: Publishing,
): Promise<KeptRows | null> {
  let kept: KeptRows | null = null;
  const remove = (ids: readonly string[]): Promise<Error | null> =>
    errorOfRows(trx, async () => void (await rowsOfProducts(trx, publishing, ids).delete()));
  for await (const ids of idsOf(trx, db, publishing, { outcome: 'gone' })) {
    if ((await remove(ids)) === null) continue;
    for (const id of ids) {
      const problem = await remove([id]);
      if (problem === null) continue;
      kept ??= { ids: [], words: databaseMessage(problem) };
      kept.ids.push(id);
    }
  }
  return kept;
}

function rowsOfProducts(trx: Knex.Transaction, { shape }: Publishing, ids: readonly string[]): Knex.QueryBuilder {
  return trx(shape.results.table).whereIn('product_id', ids).options({ timeout: LONG_STATEMENT_MS });
}

/**
 * IDs of products as they are compared with `product_id` of the result table. A text beside a whole-number column would
 * make MySQL compare both as doubles, which are equal too often above 2^53.
 */
export async function idsForResults(
  knex: Knex,
  db: Database,
  { results }: Pick<RunShape, 'results'>,
): Promise<(ids: readonly string[]) => string[]> {
  const info = await readTable(knex, db, results.table);
  const isNumber = /int/.test((info && findColumn(info, 'product_id'))?.type ?? '');
  return (ids) => ids.map((id) => (isNumber ? BigInt(id) : id)) as string[];
}

/**
 * Lists of the products with these values in the ledger. Not a join: the user's column may have another type or
 * collation than ours.
 */
async function* idsOf(
  trx: Knex.Transaction,
  db: Database,
  { runId, shape, exceptSettled, only = ALL }: Publishing,
  settled: { outcome: 'stored' | 'gone'; left_out?: null },
): AsyncGenerator<string[]> {
  const toResultIds = await idsForResults(trx, db, shape);
  for (let after = 0; ;) {
    const items = await rowsOf<{ n: SqlNumber; product_id: string }>(
      trx(ITEMS)
        .where({ run_id: runId, ...settled })
        .where('n', '>', after)
        .orderBy('n')
        .limit(LIST)
        .modify(exceptSettled)
        .modify(only)
        .select('n', 'product_id')
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    const last = items.at(-1);
    if (last === undefined) return;
    after = toNumber(last.n);
    yield toResultIds(items.map((item) => item.product_id));
  }
}

/** Compares the result table with a run's ledger, for `verify`: does every stored product have the rows it produced? */
import type { Knex } from 'knex';
import { noDifference, note, type VerifyFacts } from '../control/verify/verify-facts.ts';
import { ITEMS } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { Fingerprint, hashOf, isIn, type Slice } from './fingerprint.ts';
import { type Overwriters, readOverwriters } from './newer-runs.ts';
import { inPieces, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { readSettings } from './run-shape.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { readTable } from './table-info.ts';
import { readStored } from './verify-ledger.ts';

const PAGE = 5_000;

type RowFacts = Pick<
  VerifyFacts,
  'resultRows' | 'replacedRows' | 'storedWithoutRow' | 'overwritten' | 'rowsOff' | 'rowsWithoutItem'
>;

export const noRows = (): RowFacts => ({
  resultRows: 0,
  replacedRows: 0,
  storedWithoutRow: noDifference(),
  overwritten: noDifference(),
  rowsOff: noDifference(),
  rowsWithoutItem: noDifference(),
});

/** The rows that the result table should have, by the ledger. */
interface Expected {
  /** Every stored product once per row it produced; null when they are known not to be comparable all at once. */
  given: Fingerprint | null;
  slices: readonly Slice[];
}

/**
 * All at once by their fingerprints; when those differ, product by product. IDs are compared here, by their bytes: the
 * user's column may have a type or collation under which different IDs are equal.
 */
export async function compareRows(
  knex: Knex,
  db: Database,
  runId: string,
  { given, slices }: Expected,
): Promise<RowFacts> {
  const { table } = (await readSettings(knex, runId)).results;
  const source = { knex, runId, table, exists: (await readTable(knex, db, table)) !== null };
  const facts = noRows();
  if (given) {
    const found = new Fingerprint();
    for await (const product of productsOf(source)) {
      found.add(hashOf(product.id), product.rows);
      facts.resultRows += product.rows;
    }
    if (found.equals(given)) return facts;
    facts.resultRows = 0;
  }
  for (const slice of slices) await compareSlice(source, slice, facts);
  return facts;
}

interface RowSource {
  knex: Knex;
  runId: string;
  table: string;
  exists: boolean;
}

/** The products with rows of this run in the result table, and how many rows. */
async function* productsOf({ knex, runId, table, exists }: RowSource): AsyncGenerator<{ id: string; rows: number }> {
  if (!exists) return;
  // Counted by the server: SQLite's driver would hold all rows in memory at once.
  const rows = knex(table)
    .where({ run_id: runId })
    .groupBy('product_id')
    .select('product_id')
    .count({ found: '*' })
    .options({ timeout: LONG_STATEMENT_MS });
  for await (const row of rows.stream() as AsyncIterable<{ product_id: unknown; found: SqlNumber }>)
    yield { id: idText(row.product_id), rows: toNumber(row.found) };
}

/** Adds the differences among the products of a slice. */
async function compareSlice(source: RowSource, slice: Slice, facts: RowFacts): Promise<void> {
  const { knex, runId, table } = source;
  const stored = await readStored(knex, runId, slice);
  // A product without records has no rows that could be missing.
  const missing = new Set<string>();
  for (const [id, rows] of stored) if (rows > 0) missing.add(id);
  const replaced = (id: string): void => {
    missing.delete(id);
    note(facts.overwritten, id);
    facts.replacedRows += stored.get(id)!;
  };
  for await (const { id, rows } of productsOf(source)) {
    if (!isIn(slice, id)) continue;
    facts.resultRows += rows;
    const expected = stored.get(id);
    if (expected === undefined) note(facts.rowsWithoutItem, id, rows);
    else if (rows !== expected) note(facts.rowsOff, id);
    missing.delete(id);
  }
  if (source.exists && missing.size > 0) {
    const overwriters = await readOverwriters(knex, runId);
    for (const piece of inPieces([...missing], 1_000)) {
      const others = await rowsOf<{ product_id: unknown; run_id: unknown }>(
        knex(table)
          .whereIn('product_id', piece)
          .distinct('product_id', 'run_id')
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      for (const row of others) {
        const id = idText(row.product_id);
        if (missing.has(id) && isRightlyThere(row.run_id, overwriters)) replaced(id);
      }
    }
    if (missing.size > 0)
      for await (const id of laterWithoutRows(knex, overwriters, table)) if (missing.has(id)) replaced(id);
  }
  for (const id of missing) note(facts.storedWithoutRow, id);
}

/** Rows without a run, or of a run unknown to this database, are ignored: a person or another program wrote them. */
function isRightlyThere(writer: unknown, { known, winners }: Overwriters): boolean {
  if (writer === null) return true;
  const run = idText(writer);
  return !known.has(run) || winners.has(run);
}

/** Products that a later run left without rows in the table: stored with none, or gone and deleted. */
async function* laterWithoutRows(knex: Knex, { winners }: Overwriters, table: string): AsyncGenerator<string> {
  for (const run of winners) {
    const { results } = await readSettings(knex, run);
    if (results.table.toLowerCase() !== table.toLowerCase()) continue;
    for (let after = 0; ;) {
      const page = await rowsOf<{ n: SqlNumber; product_id: string }>(
        knex(ITEMS)
          .where({ run_id: run })
          .where('n', '>', after)
          .where((item) => {
            item.where({ outcome: 'stored', result_rows: 0 });
            if (results.onGone === 'delete') item.orWhere({ outcome: 'gone' });
          })
          .orderBy('n')
          .limit(PAGE)
          .select('n', 'product_id'),
      );
      if (page.length === 0) break;
      after = toNumber(page.at(-1)!.n);
      for (const item of page) yield item.product_id;
    }
  }
}

function idText(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : String(value);
}

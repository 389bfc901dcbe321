/** Reads what `verify` compares: the ledger of items, that of parts, and the result table. */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import type { VerifyFacts } from '../verify/verify-facts.ts';
import { ITEMS } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { GrantedProducts } from './grants.ts';
import { readOverwriters } from './newer-runs.ts';
import { inQuery } from './retry.ts';
import { inPieces, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { readSettings } from './run-shape.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { readTable } from './table-info.ts';
import { compareFacts, type LedgerItem, type LedgerPart, type VerifySource } from './verify-source.ts';

/** Items per statement. */
const PAGE = 5_000;
/** Product IDs per statement. */
const LIST = 1_000;

/** Throws `run-unknown`. */
export function readVerifyFacts(db: Database, runId: string): Promise<VerifyFacts> {
  return inQuery(db, async (knex) => {
    const run = await rowOf<VerifySource['run']>(
      knex('crawlfleet_runs').where({ id: runId }).first('phase', 'planned', 'request'),
    );
    if (!run) throw new AppError('run-unknown', `there is no run ${runId} in the database`);
    const { results, grantsKept } = await readSettings(knex, runId);
    const { table } = results;
    const granted = grantsKept === true ? await GrantedProducts.read(knex, runId) : null;
    const exists = (await readTable(knex, db, table)) !== null;
    return compareFacts({
      run,
      items: readItems(knex, runId, granted),
      parts: await rowsOf<LedgerPart>(
        knex('crawlfleet_parts')
          .where({ run_id: runId })
          .select('slot', 'epoch', 'seq', 'state', 'stored', 'gone', 'failed', 'unchanged', 'partial', {
            rows: 'result_rows',
            putAside: 'put_aside',
          }),
      ),
      results: () => (exists ? readResults(db, knex, runId, table) : []),
      replaced: (ids) => (exists ? readReplaced(knex, runId, table, ids) : []),
      partlyReplaced: (ids) => readPartlyReplaced(knex, runId, ids),
    });
  });
}

interface ItemRow extends Pick<LedgerItem, 'outcome' | 'reason'> {
  n: number;
  product_id: string;
  slot: number | null;
  epoch: number | null;
  seq: number | null;
  result_rows: number | null;
  left_out: number | null;
  refused_at: SqlNumber | null;
}

/** The rows of items in the order of the products. */
async function* readItemRows(
  knex: Knex,
  runId: string,
  narrow: (items: Knex.QueryBuilder) => void = () => undefined,
): AsyncGenerator<ItemRow> {
  for (let after = 0; ;) {
    const items = knex(ITEMS).where({ run_id: runId }).where('n', '>', after).where(narrow).orderBy('n').limit(PAGE);
    const page = await rowsOf<ItemRow>(
      items.select(
        'n',
        'product_id',
        'outcome',
        'reason',
        'slot',
        'epoch',
        'seq',
        'result_rows',
        'left_out',
        'refused_at',
      ),
    );
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.n;
  }
}

async function* readItems(knex: Knex, runId: string, grants: GrantedProducts | null): AsyncGenerator<LedgerItem> {
  for await (const row of readItemRows(knex, runId)) {
    const { n, product_id, outcome, reason, slot, epoch, seq, result_rows, left_out, refused_at } = row;
    yield {
      id: product_id,
      outcome,
      reason,
      part: seq === null ? '' : `${slot}/${epoch}/${seq}`,
      // Null: one row, as with every mapping without `rows`.
      rows: outcome === 'stored' ? (result_rows ?? 1) : 0,
      partial: left_out !== null,
      refused: refused_at !== null,
      granted: grants === null || slot === null || epoch === null || grants.has({ slot, epoch }, n),
    };
  }
}

type ResultRow = { product_id: unknown; found: SqlNumber };

async function* readResults(
  { engine }: Database,
  knex: Knex,
  runId: string,
  table: string,
): AsyncGenerator<[string, number]> {
  const rows = knex(table)
    .where({ run_id: runId })
    .groupBy('product_id')
    .select('product_id')
    .count({ found: '*' })
    .options({ timeout: LONG_STATEMENT_MS });
  const each = engine === 'sqlite' ? iterate(knex, rows) : (rows.stream() as AsyncIterable<ResultRow>);
  for await (const row of each) yield [idText(row.product_id), toNumber(row.found)];
}

interface SqliteConnection {
  prepare(sql: string): { iterate(...values: unknown[]): Iterable<ResultRow> };
}

/** The rows one by one: knex would stream them from an array of all. */
async function* iterate(knex: Knex, rows: Knex.QueryBuilder): AsyncGenerator<ResultRow> {
  const connection = (await knex.client.acquireConnection()) as SqliteConnection;
  try {
    const { sql, bindings } = rows.toSQL().toNative();
    yield* connection.prepare(sql).iterate(...bindings);
  } finally {
    await knex.client.releaseConnection(connection);
  }
}

async function* readReplaced(knex: Knex, runId: string, table: string, ids: Iterable<string>): AsyncGenerator<string> {
  const { known, winners } = await readOverwriters(knex, runId);
  // Rows without a run, or of a run unknown to this database: a person or another program wrote them.
  const isRightlyThere = (run: string | null): boolean => run === null || !known.has(run) || winners.has(run);
  for (const piece of inPieces([...ids], LIST)) {
    const rows = knex(table).whereIn('product_id', piece).distinct('product_id', 'run_id');
    for (const { product_id, run_id } of await rowsOf<{ product_id: unknown; run_id: unknown }>(
      rows.options({ timeout: LONG_STATEMENT_MS }),
    ))
      if (isRightlyThere(run_id === null ? null : idText(run_id))) yield idText(product_id);
  }
  for (const run of winners) {
    const { results } = await readSettings(knex, run);
    if (results.table.toLowerCase() !== table.toLowerCase()) continue;
    // Products that it left without rows: stored with none and nothing left out, or gone and deleted.
    const rowless = (item: Knex.QueryBuilder): void => {
      void item.where({ outcome: 'stored', result_rows: 0, left_out: null });
      if (results.onGone === 'delete') void item.orWhere({ outcome: 'gone' });
    };
    for await (const item of readItemRows(knex, run, rowless)) yield item.product_id;
  }
}

async function* readPartlyReplaced(knex: Knex, runId: string, ids: Iterable<string>): AsyncGenerator<string> {
  const wanted = new Set(ids);
  const { winners } = await readOverwriters(knex, runId);
  const isPartial = (item: Knex.QueryBuilder): void => void item.whereNotNull('left_out');
  for (const run of winners)
    for await (const { product_id: id } of readItemRows(knex, run, isPartial)) if (wanted.delete(id)) yield id;
}

function idText(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : String(value);
}

/** `products.recrawl`: when each product was crawled last and what was found, in a table beside the result table. */
import { NOT_CRAWLED } from '../../../shared/domain/outcome.ts';
import { MAX_ID_CHARS } from '../../../shared/domain/product.ts';
import type { CrawledProduct } from './due.ts';
import { historyTable } from '../../core/db/result-table.ts';
import { ITEMS } from '../../core/db/chunk-rows.ts';
import { byteText } from '../../core/db/column-types.ts';
import type { Database } from '../../core/db/connect.ts';
import { notCancelled, PUBLISHED } from '../../core/db/newer-runs.ts';
import { inQuery, inTransaction } from '../../core/db/retry.ts';
import { Columns, rowsOf } from '../../core/db/rows.ts';
import { LONG_STATEMENT_MS } from '../../core/db/statement-timeout.ts';
import { readTable } from '../../core/db/table-info.ts';
import { conflictClause, createTable, insertSelect } from '../../core/db/table-statements.ts';

const PAGE = 20_000;

const crawlsTable = (resultTable: string): string => `${resultTable}_crawls`;

/**
 * Takes over what the runs of this result table have found that it does not know yet, oldest first, each in one
 * transaction with the mark that it is known. So a crash between a run and the next costs nothing.
 */
export async function noteCrawls(db: Database, resultTable: string, nowMs: number): Promise<void> {
  const table = crawlsTable(resultTable);
  const lines = [
    `product_id ${byteText(db, MAX_ID_CHARS)} not null primary key`,
    'crawled_at bigint not null',
    'outcome varchar(16) not null',
    ...['in_a_row integer', 'watched bigint', 'changes integer'].map((column) => `${column} not null`),
  ];
  await inQuery(db, (knex) => createTable(knex, db, { table, lines }));
  const runs = await inQuery(db, (knex) =>
    knex('crawlfleet_runs')
      .where({ results_table: resultTable, noted_at: null, pruned_at: null })
      .whereIn('phase', PUBLISHED)
      .where(notCancelled)
      .orderBy(['started_at', 'id'])
      .pluck<string[]>('id'),
  );
  const hasHistory = await inQuery(db, async (knex) => (await readTable(knex, db, historyTable(resultTable))) !== null);
  for (const id of runs)
    await inTransaction(db, async (trx) => {
      // First, so that a repeat after a lost commit finds it done.
      if ((await trx('crawlfleet_runs').where({ id, noted_at: null }).update({ noted_at: nowMs })) === 0) return;
      const found = trx(`${ITEMS} as i`)
        .join('crawlfleet_runs as r', 'r.id', 'i.run_id')
        .where('i.run_id', id)
        .whereNotNull('i.outcome')
        .whereNull('i.refused_at')
        .whereNull('i.link_page')
        .whereNot((failed) => void failed.where('i.outcome', 'failed').whereIn('i.reason', [...NOT_CRAWLED]))
        .select('i.product_id', trx.raw('coalesce(i.settled_at, r.started_at)'), 'i.outcome', trx.raw('1, 0, 0'));
      // Each assignment reads what stood there before: MySQL carries them out from left to right.
      const own = (column: string): string => trx.ref(`${table}.${column}`).toQuery();
      const conflict = conflictClause(db, ['product_id'], (fresh) => {
        const isOlder = `${fresh('crawled_at')} < ${own('crawled_at')}`;
        return [
          `watched = ${own('watched')} + case when ${isOlder} or ${own('outcome')} <> 'stored' or ${fresh('outcome')} <> 'stored' then 0 else ${fresh('crawled_at')} - ${own('crawled_at')} end`,
          `in_a_row = case when ${isOlder} then ${own('in_a_row')} when ${own('outcome')} = ${fresh('outcome')} then ${own('in_a_row')} + 1 else 1 end`,
          `outcome = case when ${isOlder} then ${own('outcome')} else ${fresh('outcome')} end`,
          `crawled_at = case when ${isOlder} then ${own('crawled_at')} else ${fresh('crawled_at')} end`,
        ];
      });
      const columns = ['product_id', 'crawled_at', 'outcome', 'in_a_row', 'watched', 'changes'];
      await insertSelect(trx, { table, columns, conflict }, found);
      if (hasHistory) {
        const changed = trx(historyTable(resultTable)).where({ run_id: id }).whereNotNull('field').select('product_id');
        await trx(table).whereIn('product_id', changed).increment('changes', 1).options({ timeout: LONG_STATEMENT_MS });
      }
    });
}

/** What is known of every product, by ID; empty before the first noteCrawls. */
export async function readCrawls(db: Database, resultTable: string): Promise<Map<string, CrawledProduct>> {
  const table = crawlsTable(resultTable);
  const crawls = new Map<string, CrawledProduct>();
  if (!(await inQuery(db, (knex) => readTable(knex, db, table)))) return crawls;
  for (let after: string | null = null; ;) {
    const rows: CrawlRow[] = await inQuery(db, (knex) => {
      const page = knex(table).orderBy('product_id').limit(PAGE);
      if (after !== null) void page.where('product_id', '>', after);
      return rowsOf<CrawlRow>(page.options({ timeout: LONG_STATEMENT_MS }));
    });
    for (const row of rows) crawls.set(row.product_id, CRAWL.read(row));
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return crawls;
    after = last.product_id;
  }
}

type CrawlRow = Record<string, unknown> & { product_id: string };

const CRAWL = new Columns<CrawledProduct>(
  { atMs: 'number', outcome: 'text', inARow: 'number', watchedMs: 'number', changes: 'number' },
  { atMs: 'crawled_at' },
);

/**
 * `site.conditional`: what the site called each page when the rows that stand were read from it, in a table beside the
 * result table, written in the transaction that publishes those rows. A page counts only while its rows are there as
 * that run wrote them: whatever else writes or deletes them, the page is then asked for whole.
 */
import type { Knex } from 'knex';
import { MAX_ID_CHARS } from '../../shared/domain/product.ts';
import type { PageStamp, Validators } from '../../shared/domain/validators.ts';
import type { RunSettings } from '../control/model/run-settings.ts';
import { isSameKey } from './changes.ts';
import { byteText, keyColumns } from './column-types.ts';
import { toCrawledAt } from './column-values.ts';
import type { Database } from './connect.ts';
import type { ExceptSettled } from './newer-runs.ts';
import { inQuery } from './retry.ts';
import { inPieces, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import type { RunShape } from './run-shape.ts';
import type { StoredResult } from './stage-rows.ts';
import { STAMP_COLUMN, stagingColumns } from './staging.ts';
import { findColumn, readTable } from './table-info.ts';
import { createTable, insertSelect, overwriting } from './table-statements.ts';

const validatorsTable = (resultTable: string): string => `${resultTable}_validators`;

/** Creates the table unless it exists. */
export async function createValidatorsTable(db: Database, resultTable: string): Promise<void> {
  const lines = [
    `product_id ${byteText(db, MAX_ID_CHARS)} not null primary key`,
    'run_id varchar(64) not null, fingerprint char(64) not null, records integer not null, page text not null',
  ];
  await inQuery(db, (knex) => createTable(knex, db, { table: validatorsTable(resultTable), lines }));
}

/** A page whose rows stand. */
export interface KeptPage extends PageStamp {
  /** Decimal marks that its numbers show, as marksOf() names them. */
  marks: string[];
  rows: number;
}

/** Where the rows of pages stand, and under which fingerprint the pages were read. */
export interface KeptPages {
  table: string;
  fingerprint: string;
  /** SQL that joins a page `s` with its rows `r`. */
  sameRow: string;
}

/** Null for a run without `site.conditional`, or without a result table. */
export async function findKeptPages(
  knex: Knex,
  db: Database,
  { table, conditional }: RunSettings['results'],
): Promise<KeptPages | null> {
  const info = conditional === undefined ? null : await readTable(knex, db, table);
  if (info === null || conditional === undefined) return null;
  const same = ['product_id', 'run_id'].map((name) => isSameKey(db, name, findColumn(info, name)!));
  return { table, fingerprint: conditional, sameRow: same.join(' and ') };
}

function standing(knex: Knex, { table, fingerprint, sameRow }: KeptPages, ids: readonly string[]): Knex.QueryBuilder {
  return knex(`${validatorsTable(table)} as s`)
    .joinRaw('join ?? as r on', [table])
    .joinRaw(sameRow)
    .whereIn('s.product_id', ids)
    .where('s.fingerprint', fingerprint);
}

/** Those of these products' pages whose rows are all there, by product. */
export async function readKept(knex: Knex, pages: KeptPages, ids: readonly string[]): Promise<Map<string, KeptPage>> {
  const rows = await rowsOf<{ product_id: string; records: SqlNumber; page: string }>(
    standing(knex, pages, ids)
      .groupBy('s.product_id')
      .havingRaw('count(*) = max(s.records)')
      .select('s.product_id', knex.raw('max(s.records) as records'), knex.raw('max(s.page) as page')),
  );
  return new Map(
    rows.map(({ product_id, records, page }) => [
      product_id,
      { ...(JSON.parse(page) as Omit<KeptPage, 'rows'>), rows: toNumber(records) },
    ]),
  );
}

export const validatorsOf = ({ etag, modified }: Validators): Validators => ({
  ...(etag === undefined ? {} : { etag }),
  ...(modified === undefined ? {} : { modified }),
});

/** Products per statement, each of which compares every product with every time. */
const PIECE = 100;

/**
 * Copies the standing rows of unchanged products into the staging table, with the time of this crawl. Returns the pages
 * of those products; one whose rows have been replaced or deleted since it was asked for is missing.
 */
export async function stageKept(
  trx: Knex.Transaction,
  db: Database,
  shape: RunShape,
  results: readonly StoredResult[],
): Promise<Map<string, KeptPage>> {
  const kept = new Map<string, KeptPage>();
  const pages = results.length === 0 ? null : await findKeptPages(trx, db, shape.results);
  if (pages === null || !shape.stamps) return kept;
  const keys = keyColumns(shape.mapping);
  const columns = [...stagingColumns(shape.mapping), STAMP_COLUMN];
  const copied = ['row_key', ...shape.columns.map(({ name }) => name)].slice(keys.length === 1 ? 1 : 0);
  // As for all staged rows: the first one wins.
  const conflict =
    db.engine === 'mysql' ? 'on duplicate key update product_id = values(product_id)' : 'on conflict do nothing';
  for (const piece of inPieces(results, PIECE)) {
    const ids = piece.map(({ id }) => id);
    const found = await readKept(trx, pages, ids);
    const same = piece.filter(({ id, unchanged = {} }) => {
      const { etag, modified } = found.get(id) ?? {};
      return found.has(id) && etag === unchanged.etag && modified === unchanged.modified;
    });
    if (same.length === 0) continue;
    const times = same.flatMap(({ id, at }) => [id, toCrawledAt(at, shape.crawledAt)]);
    const sameIds = same.map(({ id }) => id);
    const rows = standing(trx, pages, sameIds).select(
      's.product_id',
      ...copied.map((name) => `r.${name}`),
      'r.url',
      trx.raw(`case s.product_id ${'when ? then ? '.repeat(same.length)}end`, times),
      's.page',
    );
    await insertSelect(trx, { table: shape.staging, columns, conflict }, rows);
    for (const { id } of same) kept.set(id, found.get(id)!);
  }
  return kept;
}

/** Remembers the pages of the rows that are being published. */
export async function noteValidators(
  trx: Knex.Transaction,
  db: Database,
  { runId, shape, exceptSettled }: { runId: string; shape: RunShape; exceptSettled: ExceptSettled },
): Promise<void> {
  const columns = ['run_id', 'fingerprint', 'records', 'page'];
  const many = shape.rowKey !== null;
  const pages = trx(shape.staging)
    .select(
      'product_id',
      trx.raw('?', [runId]),
      trx.raw('?', [shape.results.conditional!]),
      trx.raw(many ? 'count(*)' : '1'),
      trx.raw(many ? 'max(??)' : '??', [STAMP_COLUMN]),
    )
    .modify(exceptSettled);
  if (many) void pages.groupBy('product_id').havingRaw('max(??) is not null', [STAMP_COLUMN]);
  else void pages.whereNotNull(STAMP_COLUMN);
  const conflict = overwriting(db, ['product_id'], columns);
  const into = { table: validatorsTable(shape.results.table), columns: ['product_id', ...columns], conflict };
  await insertSelect(trx, into, pages);
}

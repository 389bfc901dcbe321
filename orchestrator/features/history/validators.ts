/**
 * `site.conditional`: what the site called each page when the rows that stand were read from it, in a table beside the
 * result table, written in the transaction that publishes those rows. A page counts only while its rows are there as
 * that run wrote them: whatever else writes or deletes them, the page is then asked for whole.
 */
import type { Knex } from 'knex';
import { hasOwnUrls } from '../../../shared/domain/domains.ts';
import { MAX_ID_CHARS } from '../../../shared/domain/product.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import type { Validators } from '../../../shared/domain/validators.ts';
import type { RunSettings } from '../../core/model/run-settings.ts';
import { hashOf } from '../../core/db/key-hash.ts';
import { isSameKey } from './changes.ts';
import { byteText, keyColumns } from '../../core/db/column-types.ts';
import { toCrawledAt } from '../../core/db/column-values.ts';
import type { Database } from '../../core/db/connect.ts';
import type { KeptPage, NamePages, OfferedProducts, PartIntake, Publication } from '../../core/db/data-feature.ts';
import { eventOf } from '../../core/model/run-event.ts';
import { insertEvent } from '../../core/db/events.ts';
import { inQuery } from '../../core/db/retry.ts';
import { inPieces, rowsOf, type SqlNumber, toNumber } from '../../core/db/rows.ts';
import { readSettings, type RunShape } from '../../core/db/run-shape.ts';
import { type ReadPage, readPageOf, type StoredResult } from '../../core/db/stage-rows.ts';
import { STAMP_COLUMN, stagingColumns } from '../../core/db/staging.ts';
import { readTable, standingColumn } from '../../core/db/table-info.ts';
import { createTable, insertSelect, overwriting } from '../../core/db/table-statements.ts';

const validatorsTable = (resultTable: string): string => `${resultTable}_validators`;

/** Creates the table unless it exists. */
export async function createValidatorsTable(db: Database, resultTable: string): Promise<void> {
  const lines = [
    `product_id ${byteText(db, MAX_ID_CHARS)} not null primary key`,
    'run_id varchar(64) not null, fingerprint char(64) not null, records integer not null, page text not null',
  ];
  await inQuery(db, (knex) => createTable(knex, db, { table: validatorsTable(resultTable), lines }));
}

/**
 * A 304 is trusted for so long at most; by the ID for half of it to all of it, so that the pages of one night are read
 * whole in different nights.
 */
const MAX_AGE_MS = 14 * 86_400_000;

/** False when the page must be read whole, whatever the site would answer. */
function mayAskConditionally(id: string, { readAt }: KeptPage, nowMs: number): boolean {
  const share = 0.5 + hashOf(id).readUInt16BE(0) / 2 ** 17;
  return readAt !== undefined && nowMs - Date.parse(readAt) < MAX_AGE_MS * share;
}

/**
 * What stands in place of a product ID, which is never empty: what the site calls its pages is not trusted, under this
 * row's fingerprint.
 */
const DISTRUSTED = '';

async function isDistrusted(
  knex: Knex,
  { table, fingerprint }: Pick<KeptPages, 'table' | 'fingerprint'>,
): Promise<boolean> {
  const marker = knex(validatorsTable(table)).where({ product_id: DISTRUSTED, fingerprint });
  return (await rowsOf(marker.limit(1))).length > 0;
}

/**
 * Compares pages that were read whole with what they were the last time. Other rows under the same name prove that a
 * 304 of this site means nothing: from then on no page is asked for conditionally, until the fingerprint changes.
 */
async function checkNames(
  trx: Knex.Transaction,
  { runId, table, conditional }: { runId: string; table: string; conditional: string },
  results: readonly StoredResult[],
  nowMs: number,
): Promise<void> {
  const named = new Map(results.filter(({ page }) => page !== undefined).map((result) => [result.id, result]));
  for (const ids of inPieces([...named.keys()], NAMES)) {
    const names = trx(validatorsTable(table)).whereIn('product_id', ids).where({ fingerprint: conditional });
    for (const { product_id: id, page } of await rowsOf<{ product_id: string; page: string }>(names)) {
      const result = named.get(id);
      const [before, now] = [JSON.parse(page) as ReadPage, result ? readPageOf(result) : null];
      if (now === null || before.content === undefined || before.content === now.content || !isSameName(before, now))
        continue;
      if (await isDistrusted(trx, { table, fingerprint: conditional })) return;
      const marker = { product_id: DISTRUSTED, run_id: runId, fingerprint: conditional, records: 0, page: '{}' };
      await trx(validatorsTable(table)).insert(marker).onConflict('product_id').merge();
      const name = now.etag === undefined ? `Last-Modified ${now.modified}` : `ETag ${now.etag}`;
      const detail = `the page of ${oneLine(id)} has other values under the same ${name}: pages of this site are not requested conditionally any more. Rows of unchanged pages may be old; the next run fetches them in full`;
      await insertEvent(trx, runId, eventOf('alarm', nowMs, detail));
      return;
    }
  }
}

const isSameName = (a: Validators, b: Validators): boolean => a.etag === b.etag && a.modified === b.modified;

/** Where the rows of pages stand, and under which fingerprint the pages were read. */
interface KeptPages {
  table: string;
  fingerprint: string;
  /** SQL that joins a page `s` with its rows `r`. */
  sameRow: string;
  /** Products have URLs of their own, so that of the rows matters. */
  readsUrl?: boolean;
}

/** Where pages are kept; null for a run without `site.conditional`, or without a result table. */
async function findKeptPages(
  knex: Knex,
  db: Database,
  { table, conditional }: RunSettings['results'],
): Promise<KeptPages | null> {
  const info = conditional === undefined ? null : await readTable(knex, db, table);
  if (info === null || conditional === undefined) return null;
  const same = ['product_id', 'run_id'].map((name) => isSameKey(db, name, standingColumn(info, name)));
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
async function readKept(knex: Knex, pages: KeptPages, ids: readonly string[]): Promise<Map<string, KeptPage>> {
  const rows = await rowsOf<{ product_id: string; records: SqlNumber; page: string; url?: string }>(
    standing(knex, pages, ids)
      .groupBy('s.product_id')
      .havingRaw('count(*) = max(s.records)')
      .select(
        's.product_id',
        knex.raw('max(s.records) as records'),
        knex.raw('max(s.page) as page'),
        ...(pages.readsUrl ? [knex.raw('max(r.url) as url')] : []),
      ),
  );
  return new Map(
    rows.map(({ product_id, records, page, url }) => [
      product_id,
      {
        ...(JSON.parse(page) as Omit<KeptPage, 'rows'>),
        rows: toNumber(records),
        ...(url === undefined ? {} : { url }),
      },
    ]),
  );
}

const validatorsOf = ({ etag, modified }: Validators): Validators => ({
  ...(etag === undefined ? {} : { etag }),
  ...(modified === undefined ? {} : { modified }),
});

/** Products per statement. */
const NAMES = 500;

/** What the pages of a run were called when their rows were read; null without `site.conditional`. */
export async function openPageNames(
  knex: Knex,
  { db, runId }: { db: Database; runId: string },
): Promise<NamePages | null> {
  const { results, site } = await readSettings(knex, runId);
  const found = await findKeptPages(knex, db, results);
  const pages = found && { ...found, readsUrl: hasOwnUrls(site.productUrl) };
  return pages && ((query, offered, nowMs) => namePages(query, pages, offered, nowMs));
}

/**
 * Names them to the products whose rows stand. A product whose URL has changed has no rows of its page: what the old
 * one was called says nothing about the new one.
 */
async function namePages(
  knex: Knex,
  pages: KeptPages,
  { products, idOf }: OfferedProducts,
  nowMs: number,
): Promise<void> {
  if (await isDistrusted(knex, pages)) return;
  for (const piece of inPieces(products, OFFERED)) {
    const kept = await readKept(knex, pages, piece.map(idOf));
    for (const product of piece) {
      const id = idOf(product);
      const page = kept.get(id);
      const isSamePage = id === product.id || page?.url === product.id;
      if (page && isSamePage && mayAskConditionally(id, page, nowMs)) product.validators = validatorsOf(page);
    }
  }
}

/** Offered products per statement. */
const OFFERED = 1_000;
/** Products per statement, each of which compares every product with every time. */
const PIECE = 100;

/**
 * Copies the standing rows of unchanged products into the staging table, with the time of this crawl. Returns the pages
 * of those products; one whose rows have been replaced or deleted since it was asked for is missing.
 */
async function stageKept(
  trx: Knex.Transaction,
  db: Database,
  shape: RunShape,
  results: readonly StoredResult[],
): Promise<Map<string, KeptPage>> {
  const kept = new Map<string, KeptPage>();
  const pages = await findKeptPages(trx, db, shape.results);
  if (pages === null) return kept;
  const keys = keyColumns(shape.mapping);
  const columns = [...stagingColumns(shape.mapping), STAMP_COLUMN];
  const copied = ['row_key', ...shape.columns.map(({ name }) => name)].slice(keys.length === 1 ? 1 : 0);
  // As for all staged rows: the first one wins.
  const conflict =
    db.engine === 'mysql' ? 'on duplicate key update product_id = values(product_id)' : 'on conflict do nothing';
  for (const piece of inPieces(results, PIECE)) {
    const ids = piece.map(({ id }) => id);
    const found = await readKept(trx, pages, ids);
    const same = piece.flatMap(({ id, at, unchanged = {} }) => {
      const page = found.get(id);
      return page !== undefined && isSameName(page, unchanged) ? [{ id, at, page }] : [];
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
    for (const { id, page } of same) kept.set(id, page);
  }
  return kept;
}

/** The intake of unchanged pages; null for a run that asks for no page conditionally. */
export function openIntake({ db, runId, shape }: { db: Database; runId: string; shape: RunShape }): PartIntake | null {
  const { table, conditional } = shape.results;
  if (!shape.stamps || conditional === undefined) return null;
  return {
    stageKept: (trx, results) => stageKept(trx, db, shape, results),
    enter: (trx, results, nowMs) => checkNames(trx, { runId, table, conditional }, results, nowMs),
  };
}

/** Remembers the pages of the rows that are being published. */
export async function noteValidators(
  trx: Knex.Transaction,
  db: Database,
  { runId, shape, exceptSettled }: Publication,
): Promise<void> {
  const { table, conditional } = shape.results;
  if (conditional === undefined || (await isDistrusted(trx, { table, fingerprint: conditional }))) return;
  const columns = ['run_id', 'fingerprint', 'records', 'page'];
  const many = shape.rowKey !== null;
  const pages = trx(shape.staging)
    .select(
      'product_id',
      trx.raw('?', [runId]),
      trx.raw('?', [conditional]),
      trx.raw(many ? 'count(*)' : '1'),
      trx.raw(many ? 'max(??)' : '??', [STAMP_COLUMN]),
    )
    .modify(exceptSettled);
  if (many) void pages.groupBy('product_id').havingRaw('max(??) is not null', [STAMP_COLUMN]);
  else void pages.whereNotNull(STAMP_COLUMN);
  const conflict = overwriting(db, ['product_id'], columns);
  const into = { table: validatorsTable(table), columns: ['product_id', ...columns], conflict };
  await insertSelect(trx, into, pages);
}

/**
 * Runs that began later and have published into the same table. Of two runs that crawled a product, the one that began
 * later has the newer page, whichever ends first: a run that is resumed after a newer one does not overwrite its
 * products.
 */
import type { Knex } from 'knex';
import { MAX_ID_CHARS } from '../../../shared/domain/product.ts';
import { ITEMS } from './chunk-rows.ts';
import { byteText, type KeyTypes } from './column-types.ts';
import { rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { insertSelect, withTemporaryTable } from './table-statements.ts';

const RUNS = 'crawlfleet_runs';
const SETTLED = 'crawlfleet_settled';
/** Phases of runs that have ended and published their rows; a cancelled run only if it was stopped. */
export const PUBLISHED = ['completed', 'banned', 'failed', 'cancelled'];

/** The order of runs from the newest, for `orderBy`. */
export const NEWEST_FIRST = ['started_at', 'id'].map((column) => ({ column, order: 'desc' as const }));

/** The condition of a run without a cancel request, for `where`: with one it publishes nothing. */
export function notCancelled(run: Knex.QueryBuilder): void {
  void run.whereNull('request').orWhereNot({ request: 'cancel' });
}

/** Newest first. A cancelled run publishes nothing; neither does one without settled products. */
export async function newerRuns(knex: Knex, runId: string): Promise<string[]> {
  const own = await rowOf<{ results_table: string; started_at: SqlNumber }>(
    knex(RUNS).where({ id: runId }).first('results_table', 'started_at'),
  );
  if (!own) return [];
  return knex(`${RUNS} as r`)
    .where({ results_table: own.results_table })
    .whereIn('phase', PUBLISHED)
    .where(notCancelled)
    .whereRaw('(started_at > ? or (started_at = ? and id > ?))', [own.started_at, own.started_at, runId])
    .whereExists(knex('crawlfleet_parts as p').whereRaw('p.run_id = r.id and (p.stored > 0 or p.gone > 0)'))
    .orderBy(NEWEST_FIRST)
    .pluck<string[]>('r.id');
}

/** The runs of the database, and those that legitimately replaced rows of this run. */
export interface Overwriters {
  known: ReadonlySet<string>;
  /** The runs that began later, or that a person has released over this run since. */
  winners: ReadonlySet<string>;
}

/**
 * The runs that may have replaced rows, by the same rule as publishing, but without regard to the table a run writes
 * to.
 */
export async function readOverwriters(knex: Knex, runId: string): Promise<Overwriters> {
  const runs = await rowsOf<{ id: string; started_at: SqlNumber; phase: string; request: string | null }>(
    knex(RUNS).select('id', 'started_at', 'phase', 'request'),
  );
  const ends = await rowsOf<{ run_id: string; at: SqlNumber; from_state: string | null }>(
    knex('crawlfleet_events')
      .where({ kind: 'run' })
      .whereIn('to_state', PUBLISHED)
      .where((any) => void any.where({ from_state: 'held' }).orWhere({ run_id: runId }))
      .select('run_id', 'at', 'from_state'),
  );
  const own = runs.find((r) => r.id === runId);
  const publishedMs = Math.max(...ends.filter((e) => e.run_id === runId).map((e) => toNumber(e.at)));
  const released = new Set(
    ends.filter((e) => e.from_state === 'held' && toNumber(e.at) >= publishedMs).map((e) => e.run_id),
  );
  const beganLater = (r: { id: string; started_at: SqlNumber }): boolean => {
    const ms = toNumber(r.started_at) - toNumber(own?.started_at);
    return ms > 0 || (ms === 0 && r.id > runId);
  };
  const winners = runs.filter(
    (r) =>
      r.id !== runId && PUBLISHED.includes(r.phase) && r.request !== 'cancel' && (beganLater(r) || released.has(r.id)),
  );
  return { known: new Set(runs.map((r) => r.id)), winners: new Set(winners.map((r) => r.id)) };
}

/** Restricts a query over our own tables to products that none of the newer runs has settled. */
export type ExceptSettled = (query: Knex.QueryBuilder) => void;

/**
 * Runs `work` while the products that these runs settled as stored or gone are in a temporary table with a key:
 * searching all items instead would read all of theirs again for each page of products.
 */
export async function withoutSettled<T>(
  trx: Knex.Transaction,
  db: KeyTypes,
  newer: readonly string[],
  work: (exceptSettled: ExceptSettled) => Promise<T>,
): Promise<T> {
  if (newer.length === 0) return work(() => undefined);
  const lines = [`product_id ${byteText(db, MAX_ID_CHARS)} not null primary key`];
  return withTemporaryTable(trx, db, { table: SETTLED, lines }, async () => {
    const found = trx(ITEMS).whereIn('run_id', newer).whereIn('outcome', ['stored', 'gone']).distinct('product_id');
    await insertSelect(trx, { table: SETTLED, columns: ['product_id'] }, found);
    return work((query) => void query.whereNotIn('product_id', trx(SETTLED).select('product_id')));
  });
}

/**
 * Staging → result table: one upsert inside the database server, with the run's move, in one transaction. With `rows`
 * in the mapping a stored product's rows are replaced: rows that this run did not produce are deleted in the same
 * transaction.
 */
import type { Knex } from 'knex';
import { AppError } from '../../shared/domain/errors.ts';
import { isRunEnd, type RunPhase } from '../../shared/domain/states.ts';
import { CANCELLED } from '../control/results/exit-code.ts';
import type { PublishEnd, PublishedPhase } from '../control/model/stores.ts';
import type { BoundRun } from './bound-run.ts';
import { ITEMS } from './chunk-rows.ts';
import { noteChanges } from './changes.ts';
import { keyColumns } from './column-types.ts';
import type { Database } from './connect.ts';
import { insertEvent } from './events.ts';
import { type ExceptSettled, newerRuns, withoutSettled } from './newer-runs.ts';
import { countOf, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { readRunShape, readSettings, type RunShape } from './run-shape.ts';
import { type Decisions, fieldValues, noteNumbers, readDecisions } from './number-columns.ts';
import { moveEvent } from './run-store.ts';
import { stagingColumns } from './staging.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { findColumn, readTable } from './table-info.ts';
import { noteValidators } from './validators.ts';
import { insertSelect, overwriting } from './table-statements.ts';

const RUNS = 'crawlfleet_runs';
/** Product IDs per DELETE. */
const LIST = 1_000;

/**
 * Publishes once: a run that is no longer `loading` (or `held`, for a release) is left unchanged. A run that was
 * cancelled (not stopped) keeps its ledger but publishes no rows: that is what cancel means.
 */
export function publishRun(bound: BoundRun, published: PublishedPhase, end: PublishEnd): Promise<{ rows: number }> {
  const { db, id: runId } = bound;
  const nowMs = bound.now();
  return bound.write(async (trx) => {
    const run = await rowOf<{ phase: RunPhase; request: string | null }>(
      trx(RUNS).where({ id: runId }).forUpdate().first('phase', 'request'),
    );
    if (!run) throw new AppError('run-unknown', `there is no run ${runId} in the database`);
    const from = end.held === true ? 'held' : 'loading';
    if (run.phase !== from) {
      if (isRunEnd(run.phase)) return { rows: await countRows(trx, db, runId) };
      throw new AppError('internal', `the run ${runId} is ${run.phase}, so it cannot be published`);
    }
    const isCancelled = run.request === 'cancel';
    if (!isCancelled) {
      const shape = await readRunShape(trx, db, runId);
      const decisions = await readDecisions(trx, runId, shape);
      await noteNumbers(trx, runId, shape, decisions);
      const newer = end.overNewer === true ? [] : await newerRuns(trx, runId);
      await withoutSettled(trx, db, newer, async (exceptSettled) => {
        const rows = { runId, shape, exceptSettled };
        if (shape.results.history === 'changes') await noteChanges(trx, db, { ...rows, decisions, nowMs });
        await upsert(trx, db, rows, decisions);
        if (shape.stamps) await noteValidators(trx, db, rows);
        // Records that a product's page no longer shows are deleted.
        if (shape.rowKey !== null) await deleteRowsOf(trx, db, rows, 'stored');
        if (shape.results.onGone === 'delete') await deleteRowsOf(trx, db, rows, 'gone');
      });
    }
    // Decided here, under the row's lock: the stop request may have come after `end` was determined.
    const to = isCancelled ? 'cancelled' : published;
    const { exitCode, reason } = isCancelled ? CANCELLED : end;
    await trx(RUNS)
      .where({ id: runId })
      .update({
        phase: to,
        exit_code: exitCode,
        reason,
        // A held run ended when it was held; the days until a person decides are not part of it.
        ...(end.held === true ? {} : { finished_at: nowMs }),
      });
    await insertEvent(trx, runId, moveEvent(nowMs, from, to, reason));
    return { rows: isCancelled ? 0 : await countRows(trx, db, runId) };
  });
}

/** Rows of the result table that this run wrote last. */
export async function countRows(knex: Knex, db: Database, runId: string): Promise<number> {
  const { results } = await readSettings(knex, runId);
  if (!(await readTable(knex, db, results.table))) return 0;
  return countOf(knex(results.table).where({ run_id: runId }).options({ timeout: LONG_STATEMENT_MS }));
}

/** What a run publishes: its products that no newer run has settled. */
interface Publishing {
  runId: string;
  shape: RunShape;
  exceptSettled: ExceptSettled;
}

async function upsert(
  trx: Knex.Transaction,
  db: Database,
  { runId, shape, exceptSettled }: Publishing,
  decisions: Decisions,
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
    .modify(exceptSettled);
  const conflict = overwriting(db, key, update);
  await insertSelect(trx, { table: shape.results.table, columns: [...columns, 'run_id'], conflict }, rows);
}

/**
 * Deletes the rows of gone products, or those rows of stored products that this run did not produce. By lists of
 * values, not by a join: the user's column may have another type or collation than ours.
 */
async function deleteRowsOf(
  trx: Knex.Transaction,
  db: Database,
  { runId, shape, exceptSettled }: Publishing,
  outcome: 'stored' | 'gone',
): Promise<void> {
  const { table } = shape.results;
  const info = await readTable(trx, db, table);
  // A text beside a whole-number column would make MySQL compare both as doubles, which are equal too often above 2^53.
  const isNumber = /int/.test((info && findColumn(info, 'product_id'))?.type ?? '');
  for (let after = 0; ;) {
    const items = await rowsOf<{ n: SqlNumber; product_id: string }>(
      trx(ITEMS)
        .where({ run_id: runId, outcome })
        .where('n', '>', after)
        .orderBy('n')
        .limit(LIST)
        .modify(exceptSettled)
        .select('n', 'product_id')
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    if (items.length === 0) return;
    after = toNumber(items.at(-1)!.n);
    const ids = items.map((i) => (isNumber ? BigInt(i.product_id) : i.product_id)) as string[];
    const rows = trx(table).whereIn('product_id', ids);
    if (outcome === 'stored') void rows.whereRaw('(run_id <> ? or run_id is null)', [runId]);
    await rows.delete().options({ timeout: LONG_STATEMENT_MS });
  }
}

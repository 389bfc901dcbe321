/** Staging → result table: one upsert by the server itself, with the run's move, in one transaction. */
import type { Knex } from 'knex';
import { AppError } from '../../shared/domain/errors.ts';
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import type { RunPhase } from '../../shared/domain/states.ts';
import { isRunEnd } from '../../shared/domain/states.ts';
import { ITEMS } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { insertEvent } from './events.ts';
import { assertFence } from './locks.ts';
import { inTransaction } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { inPieces, toNumber, rowsOf, rowOf } from './rows.ts';
import type { RunShape } from './run-shape.ts';
import { readRunShape, readSettings } from './run-shape.ts';
import { moveEvent } from './run-store.ts';
import { findColumn, stagingColumns } from './staging.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { readTable } from './table-info.ts';

const RUNS = 'crawlfleet_runs';
/** Product IDs in one DELETE. */
const LIST = 1_000;

export interface RunEndMove {
  to: 'completed' | 'banned' | 'failed' | 'cancelled';
  exitCode: ExitCode;
  reason: string | null;
}

/**
 * Publishes once: a run that is no longer `loading` is left as it is. A run that was cancelled (not stopped) keeps its
 * ledger but gives no rows: that is what cancel means.
 */
export function publishRun(
  db: Database,
  runId: string,
  end: RunEndMove,
  fence: number,
  nowMs: number,
): Promise<{ rows: number }> {
  return inTransaction(db, async (trx) => {
    await assertFence(trx, db, fence);
    const run = await rowOf<{ phase: RunPhase; request: string | null }>(
      trx(RUNS).where({ id: runId }).forUpdate().first('phase', 'request'),
    );
    if (!run) throw new AppError('run-unknown', `there is no run ${runId} in the database`);
    if (run.phase !== 'loading') {
      if (isRunEnd(run.phase)) return { rows: await countRows(trx, db, runId) };
      throw new AppError('internal', `the run ${runId} is ${run.phase}, so it cannot be published`);
    }
    if (run.request !== 'cancel') {
      const shape = await readRunShape(trx, db, runId);
      await upsert(trx, db, runId, shape);
      if (shape.results.onGone === 'delete') await deleteGone(trx, db, runId, shape.results.table);
    }
    await trx(RUNS)
      .where({ id: runId })
      .update({ phase: end.to, exit_code: end.exitCode, reason: end.reason, finished_at: nowMs });
    await insertEvent(trx, runId, moveEvent(nowMs, 'loading', end.to, end.reason));
    return { rows: run.request === 'cancel' ? 0 : await countRows(trx, db, runId) };
  });
}

/** Rows of the result table that this run wrote last. */
export async function countRows(knex: Knex, db: Database, runId: string): Promise<number> {
  const { results } = await readSettings(knex, runId);
  if (!(await readTable(knex, db, results.table))) return 0;
  const row = (await knex(results.table)
    .where({ run_id: runId })
    .count({ found: '*' })
    .first()
    .options({ timeout: LONG_STATEMENT_MS })) as unknown as { found: SqlNumber };
  return toNumber(row.found);
}

async function upsert(trx: Knex.Transaction, db: Database, runId: string, shape: RunShape): Promise<void> {
  const [, ...rest] = stagingColumns(shape.mapping);
  const update = [...rest, 'run_id'];
  const holes = rest.map(() => '??').join(', ');
  const conflict =
    db.engine === 'mysql'
      ? `on duplicate key update ${update.map(() => '?? = values(??)').join(', ')}`
      : `on conflict(product_id) do update set ${update.map(() => '?? = excluded.??').join(', ')}`;
  await trx
    .raw(
      // `where true` tells SQLite's parser that ON CONFLICT does not belong to the SELECT.
      `insert into ?? (product_id, ${holes}, run_id) select product_id, ${holes}, ? from ?? where true ${conflict}`,
      [shape.results.table, ...rest, ...rest, runId, shape.staging, ...update.flatMap((c) => [c, c])],
    )
    .options({ timeout: LONG_STATEMENT_MS });
}

/** By lists of values, not by a join: the user's column may have another type or collation than ours. */
async function deleteGone(trx: Knex.Transaction, db: Database, runId: string, table: string): Promise<void> {
  const info = await readTable(trx, db, table);
  // A text beside a whole-number column would make MySQL compare both as doubles, which are equal too often above 2^53.
  const isNumber = /int/.test((info && findColumn(info, 'product_id'))?.type ?? '');
  for (let after = 0; ;) {
    const gone = await rowsOf<{ n: SqlNumber; product_id: string }>(
      trx(ITEMS)
        .where({ run_id: runId, outcome: 'gone' })
        .where('n', '>', after)
        .orderBy('n')
        .limit(LIST)
        .select('n', 'product_id'),
    );
    if (gone.length === 0) return;
    after = toNumber(gone.at(-1)!.n);
    for (const piece of inPieces(gone, LIST)) {
      const ids = piece.map((g) => (isNumber ? BigInt(g.product_id) : g.product_id)) as string[];
      await trx(table).whereIn('product_id', ids).delete().options({ timeout: LONG_STATEMENT_MS });
    }
  }
}

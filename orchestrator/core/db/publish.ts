/**
 * Staging → result table: one upsert inside the database server, with the run's move, in one transaction. With `rows`
 * in the mapping a stored product's rows are replaced: rows that this run did not produce are deleted in the same
 * transaction, but for partial products, whose older rows stay.
 */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import { isRunEnd, type RunPhase } from '../../../shared/domain/states.ts';
import { eventOf } from '../model/run-event.ts';
import { CANCELLED } from '../decide/end/exit-code.ts';
import type { PublishEnd, PublishedPhase } from '../model/stores.ts';
import type { BoundRun } from './bound-run.ts';
import type { Database } from './connect.ts';
import type { DataFeature } from './data-feature.ts';
import { insertEvent } from './events.ts';
import { newerRuns, withoutSettled } from './newer-runs.ts';
import { countOf, rowOf } from './rows.ts';
import { deleteGoneRows, deleteVanishedRows, type KeptRows, upsertRows } from './publish-rows.ts';
import { blamingRows } from './refused-rows.ts';
import { readRunShape, readSettings } from './run-shape.ts';
import { noteNumbers, readDecisions } from './number-columns.ts';
import { moveEvent } from './run-store.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { readTable } from './table-info.ts';

const EXAMPLES = 20;
const RUNS = 'crawlfleet_runs';

/**
 * Publishes once: a run that is no longer `loading` (or `held`, for a release) is left unchanged. A run that was
 * cancelled (not stopped) keeps its ledger but publishes no rows: that is what cancel means.
 */
export function publishRun(
  bound: BoundRun,
  published: PublishedPhase,
  end: PublishEnd,
  features: readonly DataFeature[],
): Promise<{ rows: number }> {
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
        const rows = { runId, shape, decisions, exceptSettled };
        for (const { afterPublish } of features) await afterPublish?.publishing?.(trx, db, { ...rows, nowMs });
        await blamingRows(db, () => upsertRows(trx, db, rows));
        // Records that a product's pages no longer show are deleted.
        if (shape.rowKey !== null) await blamingRows(db, () => deleteVanishedRows(trx, db, rows));
        const kept = shape.results.onGone === 'delete' ? await deleteGoneRows(trx, db, rows) : null;
        if (kept !== null) await insertEvent(trx, runId, eventOf('alarm', nowMs, noteOf(kept)));
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

function noteOf({ ids, words }: KeptRows): string {
  const some = ids.slice(0, EXAMPLES).join(', ') + (ids.length > EXAMPLES ? ' …' : '');
  return `the database does not delete the rows of ${ids.length} gone products, so they stay: ${some}: ${words}`;
}

/** Rows of the result table that this run wrote last. */
export async function countRows(knex: Knex, db: Database, runId: string): Promise<number> {
  const { results } = await readSettings(knex, runId);
  if (!(await readTable(knex, db, results.table))) return 0;
  return countOf(knex(results.table).where({ run_id: runId }).options({ timeout: LONG_STATEMENT_MS }));
}

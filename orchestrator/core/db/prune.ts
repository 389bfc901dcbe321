/** `retention`: removes what the database holds of old runs. Their rows in the result table are the user's and stay. */
import type { RunSettings } from '../model/run-settings.ts';
import { historyTable } from './result-table.ts';
import type { Database } from './connect.ts';
import { PUBLISHED } from './newer-runs.ts';
import { HOST_REQUESTS } from './host-requests.ts';
import { pruneHosts } from './host-rows.ts';
import { inQuery } from './retry.ts';
import { rowsOf } from './rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { readTable } from './table-info.ts';

/** The tables keyed by run_id; the run's own row stays, with its report: later runs are compared with it. */
const TABLES = [
  'items',
  'chunks',
  'grants',
  'parts',
  'events',
  'incidents',
  'samples',
  'attempts',
  'moved_to',
  'instances',
  'launches',
];
/** Rows per transaction: locks are short, and other work on the database goes on. */
const PIECE = 5_000;

export interface Pruned {
  runs: string[];
  rows: number;
}

/** How long the database says at least when a run asked which of many hosts, and what hosts have asked for. */
const HOSTS_KEPT_MS = 365 * 86_400_000;

/**
 * Removes ledger, events, parts, samples and attempts of runs into these result tables that ended before `beforeMs`,
 * and the changes of fields that they published; what is kept of many hosts, after a year at least. In pieces: what an
 * abort cuts off, the next call removes. A run is done once its `pruned_at` is set.
 */
export async function prune(
  db: Database,
  {
    tables,
    beforeMs,
    nowMs,
    signal,
  }: { tables: readonly string[]; beforeMs: number; nowMs: number; signal: AbortSignal },
): Promise<Pruned> {
  const runs = await inQuery(db, (knex) =>
    rowsOf<{ id: string; settings: string }>(
      knex('crawlfleet_runs')
        .whereIn('phase', PUBLISHED)
        .whereIn('results_table', tables)
        .where('finished_at', '<', beforeMs)
        .whereNull('pruned_at')
        .orderBy('finished_at')
        .select('id', 'settings'),
    ),
  );
  const pruned: Pruned = { runs: [], rows: 0 };
  const remove = async (table: string, where: string, runId: string): Promise<void> => {
    for (let removed = PIECE; removed === PIECE && !signal.aborted; pruned.rows += removed)
      removed = await removePiece(db, table, where, runId);
  };
  for (const { id, settings } of runs) {
    for (const table of TABLES) await remove(`crawlfleet_${table}`, 'run_id = ?', id);
    const history = historyTable((JSON.parse(settings) as RunSettings).results.table);
    // Since when a product is gone stays known.
    if (await inQuery(db, (knex) => readTable(knex, db, history)))
      await remove(history, 'run_id = ? and field is not null', id);
    if (signal.aborted) break;
    await inQuery(db, (knex) => knex('crawlfleet_runs').where({ id }).update({ pruned_at: nowMs }));
    pruned.runs.push(id);
  }
  const hostsBeforeMs = Math.min(beforeMs, nowMs - HOSTS_KEPT_MS);
  for (const id of await runsWithHostRequests(db, tables, hostsBeforeMs)) await remove(HOST_REQUESTS, 'run_id = ?', id);
  pruned.rows += await pruneHosts(db, { beforeMs: hostsBeforeMs, nowMs, signal });
  return pruned;
}

/** Those of these result tables that ended before. */
function runsWithHostRequests(db: Database, tables: readonly string[], beforeMs: number): Promise<string[]> {
  return inQuery(db, async (knex) => {
    const own = knex(HOST_REQUESTS).where({ run_id: knex.ref('crawlfleet_runs.id') });
    const runs = knex('crawlfleet_runs')
      .whereIn('results_table', tables)
      .where('finished_at', '<', beforeMs)
      .whereExists(own)
      .select('id');
    return (await rowsOf<{ id: string }>(runs)).map(({ id }) => id);
  });
}

async function removePiece(db: Database, table: string, where: string, runId: string): Promise<number> {
  return inQuery(db, async (knex) => {
    const query =
      db.engine === 'mysql'
        ? knex.raw(`delete from ?? where ${where} limit ${PIECE}`, [table, runId])
        : knex.raw(`delete from ?? where rowid in (select rowid from ?? where ${where} limit ${PIECE})`, [
            table,
            table,
            runId,
          ]);
    const result = (await query.options({ timeout: LONG_STATEMENT_MS })) as
      { changes: number } | [{ affectedRows: number }];
    return 'changes' in result ? result.changes : result[0].affectedRows;
  });
}

/** What gc keeps and removes in the database: its marks, and staging tables that no run will publish any more. */
import { AppError } from '../../../shared/domain/errors.ts';
import type { RunPhase } from '../../../shared/domain/states.ts';
import type { GcMark, GcMarkStore } from '../gc/gc.ts';
import type { Database } from './connect.ts';
import { PUBLISHED } from './newer-runs.ts';
import { inQuery, inTransaction } from './retry.ts';
import { rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { dropStaging } from './staging.ts';

const MARKS = 'crawlfleet_gc_marks';

/** The marks of gc. Written without the lock: another process's mark only makes a later gc check again. */
export function createGcMarks(db: Database): GcMarkStore {
  return {
    list: (owner) =>
      inQuery(db, async (knex) => {
        const rows = await rowsOf<{ kind: GcMark['kind']; resource: string; first_seen_at: SqlNumber }>(
          knex(MARKS).where({ owner }),
        );
        return rows.map((r) => ({ kind: r.kind, id: r.resource, firstSeenAtMs: toNumber(r.first_seen_at) }));
      }),
    note: (owner, sightings, kept, oldestMs) =>
      inTransaction(db, async (trx) => {
        await trx(MARKS).where({ owner }).where('first_seen_at', '<', oldestMs).delete();
        for (const { kind, id } of kept) await trx(MARKS).where({ owner, kind, resource: id }).delete();
        for (const { kind, id, firstSeenAtMs } of sightings)
          await trx(MARKS)
            .insert({ kind, resource: id, owner, first_seen_at: firstSeenAtMs })
            .onConflict(['kind', 'resource'])
            .merge();
      }),
  };
}

const PREFIX = 'crawlfleet_staging_';
/** A day: the time users have to inspect the rows of a run that ended badly. */
const OLD_MS = 24 * 3_600_000;

/**
 * Runs whose staging table is an orphan: settled, or unknown to the database, for at least a day.
 * @param workedOn the runs that main servers are working on; their tables are in use whatever their rows say
 */
export function findOrphanStaging(db: Database, nowMs: number, workedOn: ReadonlySet<string>): Promise<string[]> {
  return inQuery(db, async (knex) => {
    const like = `${PREFIX.replaceAll('_', '\\_')}%`;
    const query =
      db.engine === 'mysql'
        ? knex('information_schema.tables')
            .where({ table_schema: db.schema })
            .whereRaw('table_name like ?', [like])
            .select({ name: 'table_name' })
        : knex('sqlite_master').where({ type: 'table' }).whereRaw(`name like ? escape '\\'`, [like]).select('name');
    const ids = (await rowsOf<{ name: string }>(query)).map((t) => t.name.slice(PREFIX.length));
    const rows = await rowsOf<{ id: string; phase: RunPhase; finished_at: SqlNumber | null }>(
      knex('crawlfleet_runs').whereIn('id', ids).select('id', 'phase', 'finished_at'),
    );
    const runs = new Map(rows.map((r) => [r.id, r]));
    return ids.filter((id) => {
      if (workedOn.has(id)) return false;
      const run = runs.get(id);
      if (!run) return nowMs - (startOf(id) ?? Infinity) >= OLD_MS;
      // The rows of a `held` run wait for a person.
      return PUBLISHED.includes(run.phase) && run.finished_at !== null && nowMs - toNumber(run.finished_at) >= OLD_MS;
    });
  });
}

/** Drops them; returns those that could be dropped. */
export async function dropOrphanStaging(db: Database, runIds: readonly string[]): Promise<string[]> {
  const dropped: string[] = [];
  for (const id of runIds) {
    try {
      await dropStaging(db, id);
      dropped.push(id);
    } catch (error) {
      // A foreign table that merely resembles ours has no run id in its name.
      if (!(error instanceof AppError)) throw error;
    }
  }
  return dropped;
}

/** The time in a run id; null for an id that is not one of ours. */
function startOf(runId: string): number | null {
  const match = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-/.exec(runId);
  if (!match) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

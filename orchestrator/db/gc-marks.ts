/** The marks of gc, on knex. Written without the lock: another process's mark only makes a later gc check again. */
import type { GcMark, GcMarkStore } from '../control/gc/gc.ts';
import type { Database } from './connect.ts';
import { inQuery, inTransaction } from './retry.ts';
import { rowsOf, type SqlNumber, toNumber } from './rows.ts';

const TABLE = 'crawlfleet_gc_marks';

/** Needs the tables of migrate(). */
export function createGcMarks(db: Database): GcMarkStore {
  return {
    list: (owner) =>
      inQuery(db, async (knex) => {
        const rows = await rowsOf<{ kind: GcMark['kind']; resource: string; first_seen_at: SqlNumber }>(
          knex(TABLE).where({ owner }),
        );
        return rows.map((r) => ({ kind: r.kind, id: r.resource, firstSeenAtMs: toNumber(r.first_seen_at) }));
      }),
    note: (owner, sightings, kept, oldestMs) =>
      inTransaction(db, async (trx) => {
        await trx(TABLE).where({ owner }).where('first_seen_at', '<', oldestMs).delete();
        for (const { kind, id } of kept) await trx(TABLE).where({ owner, kind, resource: id }).delete();
        for (const { kind, id, firstSeenAtMs } of sightings)
          await trx(TABLE)
            .insert({ kind, resource: id, owner, first_seen_at: firstSeenAtMs })
            .onConflict(['kind', 'resource'])
            .merge();
      }),
  };
}

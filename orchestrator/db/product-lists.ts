/** How long a product list was in earlier runs. */
import type { ListedRun } from '../control/model/report.ts';
import type { Database } from './connect.ts';
import { PUBLISHED } from './newer-runs.ts';
import { inQuery } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { rowsOf, toBoolean, toNumber } from './rows.ts';

/**
 * The newest ended runs over this list, at most `limit`. Held and cancelled runs do not count, because no person has
 * approved them.
 */
export function readListedRuns(db: Database, listKey: string, limit: number): Promise<ListedRun[]> {
  return inQuery(db, async (knex) => {
    const rows = await rowsOf<{ planned: SqlNumber; list_accepted: SqlNumber | null }>(
      knex('crawlfleet_runs')
        .where({ list_key: listKey })
        .whereIn('phase', PUBLISHED)
        .where((any) => void any.whereNull('request').orWhereNot({ request: 'cancel' }))
        .orderBy([
          { column: 'started_at', order: 'desc' },
          { column: 'id', order: 'desc' },
        ])
        .limit(limit)
        .select('planned', 'list_accepted'),
    );
    return rows.map((row) => ({ products: toNumber(row.planned), accepted: toBoolean(row.list_accepted ?? 0) }));
  });
}

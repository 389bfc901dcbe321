/** The failed products of a run, for `retry` and `status --failed`. */
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { FailedProduct } from '../control/model/stores.ts';
import { ITEMS } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { inQuery } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { rowsOf, toNumber } from './rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

/** In plan order, starting after number `after`; at most `limit`. */
export function selectFailed(
  db: Database,
  runId: string,
  after: number,
  limit: number,
  reasons: readonly FailureReason[] | undefined,
): Promise<FailedProduct[]> {
  return inQuery(db, async (knex) => {
    const query = knex(ITEMS).where({ run_id: runId, outcome: 'failed' }).where('n', '>', after);
    if (reasons) void query.whereIn('reason', [...reasons]);
    const rows = await rowsOf<{ n: SqlNumber; product_id: string; reason: FailureReason; detail: string | null }>(
      query
        .orderBy('n')
        .limit(limit)
        .select('n', 'product_id', 'reason', 'detail')
        // Only a few of a million products may have failed: finding them is one long scan.
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    return rows.map(({ n, product_id, reason, detail }) => ({ n: toNumber(n), id: product_id, reason, detail }));
  });
}

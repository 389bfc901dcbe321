/** What became of the records of one host in a run, for a person who asks. */
import type { HostKey } from '../../../shared/domain/host-key.ts';
import type { FailureReason, Outcome } from '../../../shared/domain/outcome.ts';
import { hostOfItem, ITEMS } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { inQuery } from './retry.ts';
import { rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

export interface HostOutcomes {
  records: number;
  open: number;
  stored: number;
  gone: number;
  failed: Partial<Record<FailureReason, number>>;
  /** When the last of them was settled, which is after the last request; null: none is. */
  lastSettledAtMs: number | null;
}

interface Row {
  n: number;
  path: string;
  moved_to: string | null;
  outcome: Outcome | null;
  reason: FailureReason | null;
  settled_at: SqlNumber | null;
}

/** Rows read at a time. */
const PAGE = 5_000;

/** Compares every product of the run. @param key what the run has hosts by */
export async function readHostOutcomes(
  db: Database,
  runId: string,
  host: string,
  key?: HostKey,
): Promise<HostOutcomes> {
  const counts: HostOutcomes = { records: 0, open: 0, stored: 0, gone: 0, failed: {}, lastSettledAtMs: null };
  const like = `%${host.replaceAll(/[!%_]/g, '!$&')}%`;
  for (let after: number | undefined = 0; after !== undefined;) {
    const from: number = after;
    const rows: Row[] = await inQuery(db, (knex) =>
      rowsOf<Row>(
        knex(ITEMS)
          .where({ run_id: runId })
          .where('n', '>', from)
          .whereRaw("(path like ? escape '!' or moved_to like ? escape '!')", [like, like])
          .orderBy('n')
          .limit(PAGE)
          .select('n', 'path', 'moved_to', 'outcome', 'reason', 'settled_at')
          .options({ timeout: LONG_STATEMENT_MS }),
      ),
    );
    for (const row of rows) if (hostOfItem(row, key) === host) count(counts, row);
    after = rows.length < PAGE ? undefined : rows.at(-1)?.n;
  }
  return counts;
}

function count(counts: HostOutcomes, { outcome, reason, settled_at }: Row): void {
  counts.records++;
  if (outcome === null) counts.open++;
  else if (outcome !== 'failed') counts[outcome]++;
  else if (reason !== null) counts.failed[reason] = (counts.failed[reason] ?? 0) + 1;
  if (settled_at !== null) counts.lastSettledAtMs = Math.max(counts.lastSettledAtMs ?? 0, toNumber(settled_at));
}

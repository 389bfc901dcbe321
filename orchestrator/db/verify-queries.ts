/** The facts for `verify`: the ledger of items, that of parts, and (verify-rows.ts) the result table. */
import type { Knex } from 'knex';
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import { AppError } from '../../shared/domain/errors.ts';
import type { FailureReason, OutcomeCounts } from '../../shared/domain/outcome.ts';
import type { RunPhase } from '../../shared/domain/states.ts';
import { noDifference, note, type VerifyFacts } from '../control/verify/verify-facts.ts';
import type { Database } from './connect.ts';
import { Fingerprint, Repeats, hashOf, slicesOf } from './fingerprint.ts';
import { PUBLISHED } from './newer-runs.ts';
import { inQuery } from './retry.ts';
import { rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { findDuplicates, type LedgerItem, ledgerPages, rowsGiven } from './verify-ledger.ts';
import { compareRows, noRows } from './verify-rows.ts';

/** Maximum IDs held in memory where products are compared one by one. */
const SLICE = 250_000;

/**
 * Throws `run-unknown`. Memory: 8 bytes per product while nothing differs, whatever the number of rows; otherwise the
 * IDs of one slice, and everything is read again for each slice. @param slice maximum IDs held in memory
 */
export function readVerifyFacts(db: Database, runId: string, slice = SLICE): Promise<VerifyFacts> {
  return inQuery(db, async (knex) => {
    const run = await rowOf<{ phase: RunPhase; planned: SqlNumber; request: string | null }>(
      knex('crawlfleet_runs').where({ id: runId }).first('phase', 'planned', 'request'),
    );
    if (!run) throw new AppError('run-unknown', `there is no run ${runId} in the database`);
    const ledger = await readLedger(knex, runId);
    const parts = await compareParts(knex, runId, ledger.byPart);
    const published = PUBLISHED.includes(run.phase) && run.request !== 'cancel';
    const slices = slicesOf(ledger.items, slice);
    const repeated = ledger.repeats.any();
    const { given } = ledger;
    const rows = published ? await compareRows(knex, db, runId, { given: repeated ? null : given, slices }) : noRows();
    return {
      phase: run.phase,
      planned: toNumber(run.planned),
      items: ledger.items,
      outcomes: ledger.outcomes,
      reasons: ledger.reasons,
      duplicates: repeated ? await findDuplicates(knex, runId, slices) : noDifference(),
      ...parts,
      published,
      ledgerRows: ledger.rows,
      ...rows,
    };
  });
}

interface Ledger {
  items: number;
  outcomes: OutcomeCounts & { open: number };
  reasons: Partial<Record<FailureReason, number>>;
  /** All products. */
  repeats: Repeats;
  /** The stored products, each once per row it produced. */
  given: Fingerprint;
  rows: number;
  /** By `slot/epoch/seq`; the empty key holds items without a part. */
  byPart: Map<string, PartCounts>;
}

/** The totals of a part, or of the items that name it. */
interface PartCounts extends OutcomeCounts {
  rows: number;
}

const noCounts = (): PartCounts => ({ stored: 0, gone: 0, failed: 0, rows: 0 });

async function readLedger(knex: Knex, runId: string): Promise<Ledger> {
  const ledger: Ledger = {
    items: 0,
    outcomes: { open: 0, stored: 0, gone: 0, failed: 0 },
    reasons: {},
    repeats: new Repeats(),
    given: new Fingerprint(),
    rows: 0,
    byPart: new Map(),
  };
  for await (const page of ledgerPages(knex, runId)) for (const item of page) count(ledger, item);
  return ledger;
}

function count(ledger: Ledger, item: LedgerItem): void {
  const hashed = hashOf(item.product_id);
  ledger.items++;
  ledger.repeats.add(hashed);
  ledger.outcomes[item.outcome ?? 'open']++;
  if (item.outcome === null) return;
  if (item.outcome === 'failed' && item.reason) ledger.reasons[item.reason] = (ledger.reasons[item.reason] ?? 0) + 1;
  const rows = rowsGiven(item);
  if (rows > 0) ledger.given.add(hashed, rows);
  ledger.rows += rows;
  const key = item.seq === null ? '' : `${item.slot}/${item.epoch}/${item.seq}`;
  let counts = ledger.byPart.get(key);
  if (!counts) ledger.byPart.set(key, (counts = noCounts()));
  counts[item.outcome]++;
  counts.rows += rows;
}

async function compareParts(
  knex: Knex,
  runId: string,
  byPart: ReadonlyMap<string, PartCounts>,
): Promise<Pick<VerifyFacts, 'parts' | 'partsOff' | 'withoutPart'>> {
  const rows = await rowsOf<
    EpochId &
      OutcomeCounts & {
        seq: number;
        state: 'seen' | 'loaded' | 'failed';
        result_rows: number;
        unchanged: number | null;
      }
  >(knex('crawlfleet_parts').where({ run_id: runId }));
  const parts = { seen: 0, loaded: 0, failed: 0 };
  const partsOff = noDifference();
  const known = new Set<string>();
  for (const row of rows) {
    parts[row.state]++;
    const key = `${row.slot}/${row.epoch}/${row.seq}`;
    if (row.state === 'loaded') known.add(key);
    const items = byPart.get(key) ?? noCounts();
    const { stored, gone, failed, result_rows } = row;
    const same = items.stored === stored && items.gone === gone && items.failed === failed;
    if (!same || items.rows !== result_rows || (row.unchanged ?? 0) > stored) note(partsOff, key);
  }
  const withoutPart = noDifference();
  for (const [key, counts] of byPart) {
    // Only the main server's own verdict (failed) may come without a part.
    const items = counts.stored + counts.gone + (key === '' ? 0 : counts.failed);
    if (!known.has(key) && items > 0) note(withoutPart, key === '' ? 'no part named' : key, items);
  }
  return { parts, partsOff, withoutPart };
}

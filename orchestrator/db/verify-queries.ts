/** What `verify` needs from the database: the ledger counted item by item, the ledger of parts, and the result table. */
import type { Knex } from 'knex';
import { AppError } from '../../shared/domain/errors.ts';
import type { FailureReason, Outcome, OutcomeCounts } from '../../shared/domain/outcome.ts';
import type { RunPhase } from '../../shared/domain/states.ts';
import type { LedgerDifference as Difference, VerifyFacts } from '../control/verify-facts.ts';
import { ITEMS } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { inQuery } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { inPieces, toNumber, rowsOf, rowOf } from './rows.ts';
import { readSettings } from './run-shape.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { readTable } from './table-info.ts';

const EXAMPLES = 20;
const PAGE = 5_000;

/** Throws `run-unknown`. Memory: the IDs of the stored products. */
export function readVerifyFacts(db: Database, runId: string): Promise<VerifyFacts> {
  return inQuery(db, async (knex) => {
    const run = await rowOf<{ phase: RunPhase; planned: SqlNumber; request: string | null }>(
      knex('crawlfleet_runs').where({ id: runId }).first('phase', 'planned', 'request'),
    );
    if (!run) throw new AppError('run-unknown', `there is no run ${runId} in the database`);
    const ledger = await readLedger(knex, runId);
    const parts = await compareParts(knex, runId, ledger.byPart);
    const published = /^(completed|banned|failed|cancelled)$/.test(run.phase) && run.request !== 'cancel';
    const rows = published ? await compareRows(knex, db, runId, ledger.stored) : NO_ROWS();
    return {
      phase: run.phase,
      planned: toNumber(run.planned),
      items: ledger.items,
      outcomes: ledger.outcomes,
      reasons: ledger.reasons,
      duplicates: ledger.duplicates,
      ...parts,
      published,
      ...rows,
    };
  });
}

interface Ledger {
  items: number;
  outcomes: OutcomeCounts & { open: number };
  reasons: Partial<Record<FailureReason, number>>;
  duplicates: Difference;
  stored: Set<string>;
  /** By `slot/epoch/seq`; the empty key holds items without a part. */
  byPart: Map<string, OutcomeCounts>;
}

async function readLedger(knex: Knex, runId: string): Promise<Ledger> {
  const ledger: Ledger = {
    items: 0,
    outcomes: { open: 0, stored: 0, gone: 0, failed: 0 },
    reasons: {},
    duplicates: noDifference(),
    stored: new Set(),
    byPart: new Map(),
  };
  const seen = new Set<string>();
  for (let after = 0; ;) {
    const page = await rowsOf<ItemRow>(
      knex(ITEMS)
        .where({ run_id: runId })
        .where('n', '>', after)
        .orderBy('n')
        .limit(PAGE)
        .select('n', 'product_id', 'outcome', 'reason', 'slot', 'epoch', 'seq'),
    );
    if (page.length === 0) return ledger;
    after = toNumber(page.at(-1)!.n);
    for (const item of page) {
      if (seen.has(item.product_id)) note(ledger.duplicates, item.product_id);
      seen.add(item.product_id);
      count(ledger, item);
    }
  }
}

interface ItemRow {
  n: SqlNumber;
  product_id: string;
  outcome: Outcome | null;
  reason: FailureReason | null;
  slot: SqlNumber | null;
  epoch: SqlNumber | null;
  seq: SqlNumber | null;
}

function count(ledger: Ledger, item: ItemRow): void {
  ledger.items++;
  ledger.outcomes[item.outcome ?? 'open']++;
  if (item.outcome === null) return;
  if (item.outcome === 'failed' && item.reason) ledger.reasons[item.reason] = (ledger.reasons[item.reason] ?? 0) + 1;
  if (item.outcome === 'stored') ledger.stored.add(item.product_id);
  const key = item.seq === null ? '' : `${item.slot}/${item.epoch}/${item.seq}`;
  const counts = ledger.byPart.get(key) ?? { stored: 0, gone: 0, failed: 0 };
  counts[item.outcome]++;
  ledger.byPart.set(key, counts);
}

async function compareParts(
  knex: Knex,
  runId: string,
  byPart: ReadonlyMap<string, OutcomeCounts>,
): Promise<Pick<VerifyFacts, 'parts' | 'partsOff' | 'withoutPart'>> {
  const rows = await rowsOf<{
    slot: SqlNumber;
    epoch: SqlNumber;
    seq: SqlNumber;
    state: 'seen' | 'loaded' | 'failed';
    stored: SqlNumber;
    gone: SqlNumber;
    failed: SqlNumber;
  }>(knex('crawlfleet_parts').where({ run_id: runId }));
  const parts = { seen: 0, loaded: 0, failed: 0 };
  const partsOff = noDifference();
  const known = new Set<string>();
  for (const row of rows) {
    parts[row.state]++;
    const key = `${row.slot}/${row.epoch}/${row.seq}`;
    if (row.state === 'loaded') known.add(key);
    const items = byPart.get(key) ?? { stored: 0, gone: 0, failed: 0 };
    const same =
      items.stored === toNumber(row.stored) &&
      items.gone === toNumber(row.gone) &&
      items.failed === toNumber(row.failed);
    if (!same) note(partsOff, key);
  }
  const withoutPart = noDifference();
  for (const [key, counts] of byPart) {
    // Only the main server's own verdict (failed) may come without a part.
    const items = counts.stored + counts.gone + (key === '' ? 0 : counts.failed);
    if (!known.has(key) && items > 0) note(withoutPart, key === '' ? 'no part named' : key, items);
  }
  return { parts, partsOff, withoutPart };
}

type RowFacts = Pick<VerifyFacts, 'resultRows' | 'storedWithoutRow' | 'overwritten' | 'rowsWithoutItem'>;

const NO_ROWS = (): RowFacts => ({
  resultRows: 0,
  storedWithoutRow: noDifference(),
  overwritten: noDifference(),
  rowsWithoutItem: noDifference(),
});

/** IDs are compared here, by their bytes: the user's column may have a type or collation that would call others the same. */
async function compareRows(knex: Knex, db: Database, runId: string, stored: ReadonlySet<string>): Promise<RowFacts> {
  const facts = NO_ROWS();
  const { table } = (await readSettings(knex, runId)).results;
  const missing = new Set(stored);
  if (await readTable(knex, db, table)) {
    const rows = knex(table).where({ run_id: runId }).select('product_id').options({ timeout: LONG_STATEMENT_MS });
    for await (const row of rows.stream() as AsyncIterable<{ product_id: unknown }>) {
      const id = idText(row.product_id);
      facts.resultRows++;
      if (!stored.has(id)) note(facts.rowsWithoutItem, id);
      missing.delete(id);
    }
    for (const piece of inPieces([...missing], 1_000)) {
      const others = await rowsOf<{ product_id: unknown }>(
        knex(table).whereIn('product_id', piece).select('product_id'),
      );
      for (const row of others) {
        const id = idText(row.product_id);
        if (missing.delete(id)) note(facts.overwritten, id);
      }
    }
  }
  for (const id of missing) note(facts.storedWithoutRow, id);
  return facts;
}

function idText(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : String(value);
}

function noDifference(): Difference {
  return { count: 0, examples: [] };
}

function note(difference: Difference, example: string, items = 1): void {
  difference.count += items;
  if (difference.examples.length < EXAMPLES) difference.examples.push(example);
}

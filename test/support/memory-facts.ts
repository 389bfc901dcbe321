/** The facts for `verify` from a database in memory, counted item by item and row by row as readVerifyFacts does. */
import type { FailureReason, OutcomeCounts } from '../../shared/domain/outcome.ts';
import { noDifference, note, type VerifyFacts } from '../../orchestrator/control/verify/verify-facts.ts';
import { noRows } from '../../orchestrator/db/verify-rows.ts';
import type { MemoryDatabase, MemoryItem, MemoryRun } from '../../orchestrator/simulation/stores/memory-database.ts';
import { winnersOver } from '../../orchestrator/simulation/stores/memory-fills.ts';

type PartCounts = OutcomeCounts & { rows: number };

/** Throws `run-unknown`. */
export function readMemoryFacts(db: MemoryDatabase, runId: string): VerifyFacts {
  const run = db.run(runId);
  const outcomes = { open: 0, stored: 0, gone: 0, failed: 0 };
  const reasons: Partial<Record<FailureReason, number>> = {};
  const duplicates = noDifference();
  const seen = new Set<string>();
  const byPart = new Map<string, PartCounts>();
  for (const item of run.items) {
    if (seen.has(item.id)) note(duplicates, item.id);
    seen.add(item.id);
    outcomes[item.outcome ?? 'open']++;
    if (item.outcome === null) continue;
    if (item.outcome === 'failed' && item.reason) reasons[item.reason] = (reasons[item.reason] ?? 0) + 1;
    const key = partOf(item);
    const counts = byPart.get(key) ?? { stored: 0, gone: 0, failed: 0, rows: 0 };
    counts[item.outcome]++;
    counts.rows += item.rows;
    byPart.set(key, counts);
  }
  const { phase, request, planned } = run.record;
  const published = /^(completed|banned|failed|cancelled)$/.test(phase) && request !== 'cancel';
  return {
    phase,
    planned,
    items: run.items.length,
    outcomes,
    reasons,
    duplicates,
    ...compareParts(run, byPart),
    published,
    ledgerRows: run.items.reduce((sum, item) => sum + item.rows, 0),
    ...(published ? compareRows(db, run) : noRows()),
  };
}

const partOf = (item: MemoryItem): string => (item.seq === null ? '' : `${item.slot}/${item.epoch}/${item.seq}`);

function compareParts(
  run: MemoryRun,
  byPart: ReadonlyMap<string, PartCounts>,
): Pick<VerifyFacts, 'parts' | 'partsOff' | 'withoutPart'> {
  const parts = { seen: 0, loaded: 0, failed: 0 };
  const partsOff = noDifference();
  const known = new Set<string>();
  for (const [key, part] of run.parts) {
    parts[part.state]++;
    if (part.state === 'loaded') known.add(key);
    const items = byPart.get(key) ?? { stored: 0, gone: 0, failed: 0, rows: 0 };
    const names = ['stored', 'gone', 'failed', 'rows'] as const;
    if (names.some((name) => items[name] !== part[name])) note(partsOff, key);
  }
  const withoutPart = noDifference();
  for (const [key, counts] of byPart) {
    const items = counts.stored + counts.gone + (key === '' ? 0 : counts.failed);
    if (!known.has(key) && items > 0) note(withoutPart, key === '' ? 'no part named' : key, items);
  }
  return { parts, partsOff, withoutPart };
}

function isRightlyThere(db: MemoryDatabase, writer: unknown, winners: ReadonlySet<string>): boolean {
  return typeof writer !== 'string' || !db.runs.has(writer) || winners.has(writer);
}

function compareRows(db: MemoryDatabase, run: MemoryRun): ReturnType<typeof noRows> {
  const facts = noRows();
  const { settings, id } = run.record;
  const stored = new Map(run.items.filter((i) => i.outcome === 'stored').map((i) => [i.id, i.rows]));
  const found = new Map<string, number>();
  const others = new Set<string>();
  const winners = winnersOver(db, run);
  for (const row of db.table(settings.results.table).values()) {
    if (row.run_id === id) found.set(row.product_id, (found.get(row.product_id) ?? 0) + 1);
    else if (isRightlyThere(db, row.run_id, winners)) others.add(row.product_id);
  }
  // A later run left these without rows: stored with none, or gone and deleted.
  for (const name of winners) {
    const later = db.run(name);
    if (later.record.settings.results.table !== settings.results.table) continue;
    const deletes = later.record.settings.results.onGone === 'delete';
    for (const item of later.items)
      if ((item.outcome === 'stored' && item.rows === 0) || (deletes && item.outcome === 'gone')) others.add(item.id);
  }
  for (const [product, rows] of found) {
    facts.resultRows += rows;
    const expected = stored.get(product);
    if (expected === undefined) note(facts.rowsWithoutItem, product, rows);
    else if (expected !== rows) note(facts.rowsOff, product);
  }
  for (const [product, rows] of stored) {
    if (rows === 0 || found.has(product)) continue;
    if (!others.has(product)) {
      note(facts.storedWithoutRow, product);
      continue;
    }
    note(facts.overwritten, product);
    facts.replacedRows += rows;
  }
  return facts;
}

/**
 * Counts and compares what a database holds of a run, for `verify`. Its memory: the product IDs, whatever the number of
 * rows.
 */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { FailureReason, Outcome, OutcomeCounts } from '../../../shared/domain/outcome.ts';
import { noDifference, note, type VerifyFacts } from '../verify/verify-facts.ts';
import type { RunRecord } from '../model/stores.ts';
import { PUBLISHED } from './newer-runs.ts';

export interface LedgerItem {
  id: string;
  outcome: Outcome | null;
  reason: FailureReason | null;
  /** `slot/epoch/seq` of the part that settled it; empty where the main server did, or nothing has. */
  part: string;
  /** How many rows of the result table it produced. */
  rows: number;
  /** It was stored without pages that may have more rows. */
  partial: boolean;
  /** It was stored, and refused before its rows were published. */
  refused: boolean;
  /** False: the instance of that part was never granted it. */
  granted: boolean;
}

/** The ledger's row of a part. */
export interface LedgerPart extends EpochId, OutcomeCounts {
  seq: number;
  state: 'seen' | 'loaded' | 'failed';
  rows: number;
  /** How many of the stored products had an unchanged page; null or omitted without `site.conditional`. */
  unchanged?: number | null;
  /** How many of the stored products are partial; null or omitted: none. */
  partial?: number | null;
  /** How many of its results are for products that were never granted to its instance; null or omitted: none. */
  putAside?: number | null;
}

/** A run in a database. IDs are compared by their bytes, whatever the type or collation of the user's column. */
export interface VerifySource {
  run: Pick<RunRecord, 'phase' | 'planned' | 'request'>;
  items: Iterable<LedgerItem> | AsyncIterable<LedgerItem>;
  parts: readonly LedgerPart[];
  /** Products with rows of this run in the result table, and how many. */
  results(): Iterable<[id: string, rows: number]> | AsyncIterable<[id: string, rows: number]>;
  /** Products whose rows a later run or another program has rightly replaced; may include others. */
  replaced(ids: Iterable<string>): Iterable<string> | AsyncIterable<string>;
  /** Those that a later run has stored as partial products: it has replaced some of their rows and kept the others. */
  partlyReplaced(ids: Iterable<string>): Iterable<string> | AsyncIterable<string>;
}

type PartCounts = OutcomeCounts & { rows: number; partial: number };

const noCounts = (): PartCounts => ({ stored: 0, gone: 0, failed: 0, rows: 0, partial: 0 });

export async function compareFacts(source: VerifySource): Promise<VerifyFacts> {
  const { phase, planned, request } = source.run;
  const published = PUBLISHED.includes(phase) && request !== 'cancel';
  const { stored, byPart, ...ledger } = await readLedger(source.items);
  return {
    phase,
    planned,
    ...ledger,
    ...compareParts(source.parts, byPart),
    published,
    ...(await compareRows(source, published ? stored : null)),
  };
}

/** `stored`: the stored products, and how many rows each produced. */
async function readLedger(items: VerifySource['items']) {
  const ledger = {
    items: 0,
    outcomes: { open: 0, stored: 0, gone: 0, failed: 0 },
    reasons: {} as Partial<Record<FailureReason, number>>,
    duplicates: noDifference(),
    ungranted: noDifference(),
    partial: noDifference(),
    refused: 0,
    ledgerRows: 0,
    stored: new Map<string, number>(),
    byPart: new Map<string, PartCounts>(),
  };
  const seen = new Set<string>();
  for await (const { id, outcome, reason, part, rows, partial, refused, granted } of items) {
    ledger.items++;
    ledger.outcomes[outcome ?? 'open']++;
    if (seen.has(id)) note(ledger.duplicates, id);
    seen.add(id);
    if (outcome === null) continue;
    if (outcome === 'failed' && reason) ledger.reasons[reason] = (ledger.reasons[reason] ?? 0) + 1;
    if (outcome === 'stored') ledger.stored.set(id, rows);
    ledger.ledgerRows += rows;
    if (refused) ledger.refused++;
    if (!granted) note(ledger.ungranted, id);
    if (partial) note(ledger.partial, id);
    const counts = ledger.byPart.get(part) ?? noCounts();
    ledger.byPart.set(part, counts);
    counts[outcome]++;
    counts.rows += rows;
    if (partial) counts.partial++;
  }
  return ledger;
}

function compareParts(
  ledger: readonly LedgerPart[],
  byPart: ReadonlyMap<string, PartCounts>,
): Pick<VerifyFacts, 'parts' | 'partsOff' | 'withoutPart' | 'putAside'> {
  const parts = { seen: 0, loaded: 0, failed: 0 };
  const partsOff = noDifference();
  const putAside = noDifference();
  const known = new Set<string>();
  for (const part of ledger) {
    parts[part.state]++;
    const key = `${part.slot}/${part.epoch}/${part.seq}`;
    if (part.state === 'loaded') known.add(key);
    if (part.putAside) note(putAside, key, part.putAside);
    const items = byPart.get(key) ?? noCounts();
    const differs = (['stored', 'gone', 'failed', 'rows'] as const).some((of) => items[of] !== part[of]);
    if (differs || items.partial !== (part.partial ?? 0) || (part.unchanged ?? 0) > part.stored) note(partsOff, key);
  }
  const withoutPart = noDifference();
  for (const [key, counts] of byPart) {
    // Only the main server's own verdict (failed) may come without a part.
    const items = counts.stored + counts.gone + (key === '' ? 0 : counts.failed);
    if (!known.has(key) && items > 0) note(withoutPart, key === '' ? 'no part named' : key, items);
  }
  return { parts, partsOff, withoutPart, putAside };
}

/** Does every stored product have the rows it produced? Null: nothing is published. */
async function compareRows(source: VerifySource, stored: Map<string, number> | null) {
  const facts = {
    resultRows: 0,
    replacedRows: 0,
    storedWithoutRow: noDifference(),
    overwritten: noDifference(),
    rowsOff: noDifference(),
    rowsWithoutItem: noDifference(),
  };
  if (stored === null) return facts;
  /** Products with more or fewer rows than they gave, and how many are missing. */
  const off = new Map<string, number>();
  for await (const [id, rows] of source.results()) {
    facts.resultRows += rows;
    const expected = stored.get(id);
    if (expected === undefined) note(facts.rowsWithoutItem, id, rows);
    else if (rows !== expected) off.set(id, expected - rows);
    stored.delete(id);
  }
  const fewer = [...off].flatMap(([id, missing]) => (missing > 0 ? [id] : []));
  if (fewer.length > 0)
    for await (const id of source.partlyReplaced(fewer)) {
      note(facts.overwritten, id);
      facts.replacedRows += off.get(id) ?? 0;
      off.delete(id);
    }
  for (const id of off.keys()) note(facts.rowsOff, id);
  // A product without records has no rows that could be missing.
  for (const [id, rows] of stored) if (rows === 0) stored.delete(id);
  if (stored.size > 0)
    for await (const id of source.replaced(stored.keys())) {
      const rows = stored.get(id);
      if (rows === undefined) continue;
      note(facts.overwritten, id);
      facts.replacedRows += rows;
      stored.delete(id);
    }
  for (const id of stored.keys()) note(facts.storedWithoutRow, id);
  return facts;
}

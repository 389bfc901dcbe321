/**
 * Loads one part inside the transaction that holds its ledger row, so that a part is loaded wholly or not at all,
 * whatever dies when. What a product became is written once: the first outcome wins.
 */
import type { Knex } from 'knex';
import type { FailureReason, Outcome, OutcomeCounts } from '../../shared/domain/outcome.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { SqlValue } from './bulk-insert.ts';
import { bulkInsert } from './bulk-insert.ts';
import type { ChunkRow } from './chunk-rows.ts';
import { CHUNKS, ITEMS, closeSettled } from './chunk-rows.ts';
import { UnfitValue, toCrawledAt, toSqlValue } from './column-types.ts';
import type { Database } from './connect.ts';
import type { RunShape } from './run-shape.ts';
import type { SqlNumber } from './rows.ts';
import { inPieces, toNumber, rowsOf } from './rows.ts';
import { stagingColumns } from './staging.ts';

export interface PartPlace {
  slot: number;
  epoch: number;
  seq: number;
}

/** What is written for a product beside its row. */
interface Settlement {
  n: number;
  id: string;
  outcome: Outcome;
  reason: FailureReason | null;
  detail: string | null;
}

const LIST = 1_000;
const DETAIL_CHARS = 500;

/** Counts only what this load ended: products that had an outcome already are left as they are. */
export async function loadResults(
  trx: Knex.Transaction,
  db: Database,
  runId: string,
  shape: RunShape,
  place: PartPlace,
  results: readonly ItemResult[],
  nowMs: number,
): Promise<OutcomeCounts> {
  const open = await lockOpen(trx, runId, results);
  const settlements = open.map(settle);
  await stageRows(trx, db, shape, open, settlements);
  await writeOutcomes(trx, runId, place, settlements, nowMs);
  await closeReturned(trx, runId, settlements);
  const counts = { stored: 0, gone: 0, failed: 0 };
  for (const s of settlements) counts[s.outcome]++;
  return counts;
}

/** The results whose product is in the plan under that number and id, and has no outcome; each product once, sorted by id as the staging table is. */
async function lockOpen(trx: Knex.Transaction, runId: string, results: readonly ItemResult[]): Promise<ItemResult[]> {
  const byN = new Map<number, ItemResult>();
  for (const result of results) if (!byN.has(result.n)) byN.set(result.n, result);
  const open: ItemResult[] = [];
  const numbers = [...byN.keys()].sort((a, b) => a - b);
  for (const piece of inPieces(numbers, LIST)) {
    const rows = await rowsOf<{ n: SqlNumber; product_id: string; outcome: Outcome | null }>(
      trx(ITEMS).where({ run_id: runId }).whereIn('n', piece).forUpdate().select('n', 'product_id', 'outcome'),
    );
    for (const row of rows) {
      const result = byN.get(toNumber(row.n))!;
      if (row.outcome === null && row.product_id === result.id) open.push(result);
    }
  }
  // Rows in the order of the primary key go in a quarter faster.
  return open.sort((a, b) => (a.id < b.id ? -1 : 1));
}

function settle(result: ItemResult): Settlement {
  const { n, id } = result;
  switch (result.outcome) {
    case 'stored':
      return { n, id, outcome: 'stored', reason: null, detail: null };
    case 'gone':
      return { n, id, outcome: 'gone', reason: null, detail: `HTTP ${result.status}` };
    case 'failed':
      return { n, id, outcome: 'failed', reason: result.reason, detail: cut(result.detail) };
  }
}

/** Puts the rows of stored products into staging; one that cannot go in makes its product failed(load). */
async function stageRows(
  trx: Knex.Transaction,
  db: Database,
  shape: RunShape,
  results: readonly ItemResult[],
  settlements: Settlement[],
): Promise<void> {
  const rows: SqlValue[][] = [];
  const settlementOf: Settlement[] = [];
  results.forEach((result, i) => {
    if (result.outcome !== 'stored') return;
    const row = toRow(shape, result);
    if (row instanceof UnfitValue) return refuse(settlements[i]!, row.detail);
    rows.push(row);
    settlementOf.push(settlements[i]!);
  });
  const target = { table: shape.staging, columns: stagingColumns(shape.mapping), existing: 'keep' } as const;
  for (const { index, detail } of await bulkInsert(trx, db, target, rows)) refuse(settlementOf[index]!, detail);
}

function toRow(shape: RunShape, result: ItemResult & { outcome: 'stored' }): SqlValue[] | UnfitValue {
  const row: SqlValue[] = [result.id];
  for (const field of shape.mapping.fields) {
    const value = toSqlValue(field, result.row[field.name]);
    if (value instanceof UnfitValue) return value;
    row.push(value);
  }
  row.push(result.url, toCrawledAt(result.at, shape.crawledAt));
  return row;
}

function refuse(settlement: Settlement, detail: string): void {
  settlement.outcome = 'failed';
  settlement.reason = 'load';
  settlement.detail = cut(detail);
}

function cut(detail: string): string {
  // A cut through a surrogate pair leaves half of it, which no database takes.
  return detail.slice(0, DETAIL_CHARS).toWellFormed();
}

async function writeOutcomes(
  trx: Knex.Transaction,
  runId: string,
  place: PartPlace,
  settlements: readonly Settlement[],
  nowMs: number,
): Promise<void> {
  const stored = settlements.filter((s) => s.outcome === 'stored').map((s) => s.n);
  for (const piece of inPieces(stored, LIST)) {
    await trx(ITEMS)
      .where({ run_id: runId })
      .whereIn('n', piece)
      .update({ outcome: 'stored', ...place, settled_at: nowMs });
  }
  const others = settlements.filter((s) => s.outcome !== 'stored');
  // Each has a detail of its own, so they travel as rows; all of them exist, so this only updates.
  for (const piece of inPieces(others, LIST / 4)) {
    await trx(ITEMS)
      .insert(
        piece.map(({ n, id, outcome, reason, detail }) => ({
          run_id: runId,
          n,
          product_id: id,
          outcome,
          reason,
          detail,
          ...place,
          settled_at: nowMs,
        })),
      )
      .onConflict(['run_id', 'n'])
      .merge(['outcome', 'reason', 'detail', 'slot', 'epoch', 'seq', 'settled_at']);
  }
}

/** A late result may settle the last product of a chunk that had been taken back and waits for somebody. */
async function closeReturned(trx: Knex.Transaction, runId: string, settlements: readonly Settlement[]): Promise<void> {
  if (settlements.length === 0) return;
  let first = Infinity;
  let last = 0;
  for (const { n } of settlements) {
    first = Math.min(first, n);
    last = Math.max(last, n);
  }
  const waiting = await rowsOf<ChunkRow>(
    trx(CHUNKS)
      .where({ run_id: runId, state: 'waiting' })
      .where('generation', '>', 1)
      .where('first_n', '<=', last)
      .where('last_n', '>=', first),
  );
  await closeSettled(trx, runId, waiting);
}

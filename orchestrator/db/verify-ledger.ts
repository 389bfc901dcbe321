/** Reads a run's ledger item by item, for `verify`: all of it in pages, or the products of one slice. */
import type { Knex } from 'knex';
import type { FailureReason, Outcome } from '../../shared/domain/outcome.ts';
import { type LedgerDifference, noDifference, note } from '../control/verify/verify-facts.ts';
import { ITEMS } from './chunk-rows.ts';
import { isIn, type Slice } from './fingerprint.ts';
import { rowsOf } from './rows.ts';

const PAGE = 5_000;

export interface LedgerItem {
  n: number;
  product_id: string;
  outcome: Outcome | null;
  reason: FailureReason | null;
  slot: number | null;
  epoch: number | null;
  seq: number | null;
  result_rows: number | null;
}

/** How many rows of the result table an item produced. */
export function rowsGiven(item: Pick<LedgerItem, 'outcome' | 'result_rows'>): number {
  // No number means one row: see the migration that added the column.
  return item.outcome === 'stored' ? (item.result_rows ?? 1) : 0;
}

/** In the order of the products. */
export async function* ledgerPages(knex: Knex, runId: string): AsyncGenerator<LedgerItem[]> {
  for (let after = 0; ;) {
    const page = await rowsOf<LedgerItem>(
      knex(ITEMS)
        .where({ run_id: runId })
        .where('n', '>', after)
        .orderBy('n')
        .limit(PAGE)
        .select('n', 'product_id', 'outcome', 'reason', 'slot', 'epoch', 'seq', 'result_rows'),
    );
    if (page.length === 0) return;
    after = page.at(-1)!.n;
    yield page;
  }
}

/** The stored products of a slice, and how many rows each produced. */
export async function readStored(knex: Knex, runId: string, slice: Slice): Promise<Map<string, number>> {
  const stored = new Map<string, number>();
  for await (const page of ledgerPages(knex, runId))
    for (const item of page)
      if (item.outcome === 'stored' && isIn(slice, item.product_id)) stored.set(item.product_id, rowsGiven(item));
  return stored;
}

/** Products that are in the ledger more than once. */
export async function findDuplicates(knex: Knex, runId: string, slices: readonly Slice[]): Promise<LedgerDifference> {
  const duplicates = noDifference();
  for (const slice of slices) {
    const seen = new Set<string>();
    for await (const page of ledgerPages(knex, runId))
      for (const { product_id: id } of page) {
        if (!isIn(slice, id)) continue;
        if (seen.has(id)) note(duplicates, id);
        seen.add(id);
      }
  }
  return duplicates;
}

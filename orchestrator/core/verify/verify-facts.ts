/** The database's facts about a run, for `verify`: the ledger counted item by item, its parts, and the result table. */
import type { FailureReason, OutcomeCounts } from '../../../shared/domain/outcome.ts';
import type { RunPhase } from '../../../shared/domain/states.ts';

const EXAMPLES = 20;

/** A set of products or parts, most of which should be empty. */
export interface LedgerDifference {
  count: number;
  /** Product IDs, or names of parts `slot/epoch/seq`: at most EXAMPLES. */
  examples: string[];
}

export interface VerifyFacts {
  phase: RunPhase;
  /** The planned products, from the run's row. */
  planned: number;
  /** Rows in the ledger, and what became of them. */
  items: number;
  outcomes: OutcomeCounts & { open: number };
  /** How many of the gone and failed were stored by their part, and refused before their rows were published. */
  refused: number;
  /** Stored products that are partial: their rows may not be all. */
  partial: LedgerDifference;
  reasons: Partial<Record<FailureReason, number>>;
  /** Product IDs that are in the ledger more than once. */
  duplicates: LedgerDifference;
  parts: { seen: number; loaded: number; failed: number };
  /** Parts whose counts differ from the items that name them. */
  partsOff: LedgerDifference;
  /** Items stored or gone that name no loaded part. */
  withoutPart: LedgerDifference;
  /** Items whose part is of an instance that they were never granted to; nothing in a run that keeps no grants. */
  ungranted: LedgerDifference;
  /**
   * Results that were not loaded because their products were never granted to their instance: their number and the
   * parts.
   */
  putAside: LedgerDifference;
  /** False before publishing and after a cancelled run: then the result table is not compared. */
  published: boolean;
  /** Rows that the stored products gave: one each, with `rows` in the mapping any number, including none. */
  ledgerRows: number;
  /** Rows of the result table that carry this run. */
  resultRows: number;
  /** Stored products that gave rows and have none at all in the result table. */
  storedWithoutRow: LedgerDifference;
  /** Stored products whose rows now carry another run, or are gone: a later crawl has replaced them. */
  overwritten: LedgerDifference;
  /** How many of the ledger's rows are those of such products. */
  replacedRows: number;
  /** Stored products that have rows of this run in the result table, but not as many as they gave. */
  rowsOff: LedgerDifference;
  /** Rows that carry this run for products that are not stored in its ledger: their number and the products. */
  rowsWithoutItem: LedgerDifference;
}

export function noDifference(): LedgerDifference {
  return { count: 0, examples: [] };
}

/** Counts `items` more, and keeps the example while there is room. */
export function note(difference: LedgerDifference, example: string, items = 1): void {
  difference.count += items;
  if (difference.examples.length < EXAMPLES) difference.examples.push(example);
}

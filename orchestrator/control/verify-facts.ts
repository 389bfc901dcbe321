/** What the database says of a run, for its proof: the ledger counted item by item, its parts, and the result table. */
import type { FailureReason, OutcomeCounts } from '../../shared/domain/outcome.ts';
import type { RunPhase } from '../../shared/domain/states.ts';

/** Something that should be empty. */
export interface LedgerDifference {
  count: number;
  /** At most 20 product IDs, or names of parts `slot/epoch/seq`. */
  examples: string[];
}

export interface VerifyFacts {
  phase: RunPhase;
  /** As the run's row says. */
  planned: number;
  /** Rows in the ledger, and what became of them. */
  items: number;
  outcomes: OutcomeCounts & { open: number };
  reasons: Partial<Record<FailureReason, number>>;
  /** Product IDs that are in the ledger more than once. */
  duplicates: LedgerDifference;
  parts: { seen: number; loaded: number; failed: number };
  /** Parts whose counts differ from the items that name them. */
  partsOff: LedgerDifference;
  /** Items stored or gone that name no loaded part. */
  withoutPart: LedgerDifference;
  /** False before publishing and after a cancelled run: then the result table is not compared. */
  published: boolean;
  /** Rows of the result table that carry this run. */
  resultRows: number;
  /** Stored products with no row at all in the result table. */
  storedWithoutRow: LedgerDifference;
  /** Stored products whose row carries another run by now: a later crawl wrote it. */
  overwritten: LedgerDifference;
  /** Rows that carry this run for products that are not stored in its ledger. */
  rowsWithoutItem: LedgerDifference;
}

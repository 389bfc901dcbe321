/** The fill-rate guard: a crawl whose rows are much emptier than those of earlier runs is held, not published. Pure. */
import { type FailureReason, NOT_CRAWLED, type OutcomeCounts } from '../../../shared/domain/outcome.ts';
import type { FillRates } from '../model/report.ts';
import type { RunRecord } from '../model/stores.ts';

/** Maximum completed runs of the same result table that a run is compared with. */
export const GUARD_RUNS = 5;

/** Null when no product was crawled: then there is nothing to compare, and nothing to publish either. */
export function storedShare(
  outcomes: OutcomeCounts & { reasons: Partial<Record<FailureReason, number>> },
): number | null {
  const left = NOT_CRAWLED.reduce((sum, reason) => sum + (outcomes.reasons[reason] ?? 0), 0);
  const crawled = outcomes.stored + outcomes.gone + outcomes.failed - left;
  return crawled > 0 ? outcomes.stored / crawled : null;
}

/** True for a retry, and for a few due products of a long list: they may all have failed or vanished before. */
export function mayStoreNothing(
  { parentId, settings }: Pick<RunRecord, 'parentId' | 'settings'>,
  { stored, gone, failed }: OutcomeCounts,
): boolean {
  return parentId !== null || (settings.list?.length !== undefined && stored + gone + failed < SMALL_NIGHT);
}

const SMALL_NIGHT = 100;

/**
 * Why the run is suspicious, in words with figures; null when it is not, or when there is no earlier run to compare
 * with. A field that no earlier run had is not compared. `onlyFields` for products that have failed before, and may
 * again: a retry, a small night.
 */
export function findSuspicion(
  now: FillRates,
  earlier: readonly FillRates[],
  minFill: number,
  onlyFields = false,
): string | null {
  if (earlier.length === 0) return null;
  const faults: string[] = [];
  const judge = (what: string, share: number, shares: readonly number[]): void => {
    const mean = shares.reduce((sum, s) => sum + s, 0) / shares.length;
    if (share < minFill * mean) faults.push(`${what} ${percent(share)} (before: ${percent(mean)})`);
  };
  if (!onlyFields) judge('products stored', now.stored, shareOf(earlier.map((run) => run.stored)));
  for (const [field, share] of Object.entries(now.fields)) {
    const known = shareOf(earlier.map((run) => run.fields[field]));
    if (known.length > 0) judge(`field ${field} filled`, share, known);
  }
  if (faults.length === 0) return null;
  const runs = earlier.length === 1 ? 'the last completed run' : `the last ${earlier.length} completed runs`;
  return `the crawl is much emptier than ${runs}: ${faults.join(', ')}; held below ${percent(minFill)} of before`;
}

const shareOf = (shares: readonly (number | undefined)[]): number[] => shares.filter((s) => s !== undefined);

export const percent = (share: number): string => `${Math.round(share * 1_000) / 10} %`;

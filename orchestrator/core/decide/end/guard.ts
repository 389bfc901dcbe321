/** The fill-rate guard: a crawl whose rows are much emptier than those of earlier runs is held, not published. Pure. */
import { type FailureReason, NOT_CRAWLED, type OutcomeCounts } from '../../../../shared/domain/outcome.ts';
import type { FillRates } from '../../model/report.ts';
import type { RunRecord } from '../../model/stores.ts';

/** Maximum completed runs of the same result table that a run is compared with. */
const GUARD_RUNS = 5;
/** Runs that show what is usual of a field: a season of sales belongs to it. */
export const BAND_RUNS = 90;

/**
 * The share of the crawled products that were stored; null when none was crawled: then there is nothing to compare, and
 * nothing to publish either.
 */
export function storedShare(
  outcomes: OutcomeCounts & { reasons: Partial<Record<FailureReason, number>> },
): number | null {
  const left = NOT_CRAWLED.reduce((sum, reason) => sum + (outcomes.reasons[reason] ?? 0), 0);
  const crawled = outcomes.stored + outcomes.gone + outcomes.failed - left;
  return crawled > 0 ? outcomes.stored / crawled : null;
}

/** True for a retry, and for a few due or new products of many: they may all have failed or vanished before. */
export function mayStoreNothing(
  { parentId, settings }: Pick<RunRecord, 'parentId' | 'settings'>,
  { stored, gone, failed }: OutcomeCounts,
): boolean {
  const isPart = settings.list?.length !== undefined || settings.discover !== undefined;
  return parentId !== null || (isPart && stored + gone + failed < SMALL_NIGHT);
}

const SMALL_NIGHT = 100;

/**
 * Why the run is suspicious, in words with figures; null when it is not, or when there is no earlier run to compare
 * with. A field that no earlier run had is not compared, and one that is filled in some seasons only may be empty in
 * the others. @param earlier newest first. `onlyFields` for products that have failed before, and may again: a retry, a
 * small night.
 */
export function findSuspicion(
  now: FillRates,
  earlier: readonly FillRates[],
  minFill: number,
  onlyFields = false,
): string | null {
  if (earlier.length === 0) return null;
  const last = earlier.slice(0, GUARD_RUNS);
  const faults: string[] = [];
  const judge = (what: string, share: number, shares: readonly number[], lowest = Infinity): void => {
    const mean = shares.reduce((sum, s) => sum + s, 0) / shares.length;
    if (share < minFill * Math.min(mean, lowest)) faults.push(`${what} ${percent(share)} (before: ${percent(mean)})`);
  };
  const sharesOf = (field: string, runs: readonly FillRates[]): number[] =>
    runs.map((run) => run.fields[field]).filter((share) => share !== undefined);
  if (!onlyFields)
    judge(
      'products stored',
      now.stored,
      last.map((run) => run.stored),
    );
  for (const [field, share] of Object.entries(now.fields)) {
    const known = sharesOf(field, last);
    if (known.length > 0) judge(`field ${field} filled`, share, known, lowestUsual(sharesOf(field, earlier)));
  }
  if (faults.length === 0) return null;
  const runs = last.length === 1 ? 'the last completed run' : `the last ${last.length} completed runs`;
  return `the crawl is much emptier than ${runs}: ${faults.join(', ')}; held below ${percent(minFill)} of before`;
}

/** The lowest but one: a single bad night that a person has published is not usual yet. */
export function lowestUsual(shares: readonly number[]): number {
  const sorted = [...shares].sort((a, b) => a - b);
  return sorted[sorted.length < 3 ? 0 : 1] ?? Infinity;
}

export const percent = (share: number): string => `${Math.round(share * 1_000) / 10} %`;

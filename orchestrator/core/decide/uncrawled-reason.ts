/** The note with the run when its crawl ends, and why products were left without an outcome then. Pure. */
import { FAILURE_REASONS, type FailureReason } from '../../../shared/domain/outcome.ts';
import { LOSS } from './slot-attempts.ts';
import type { InstanceRecord, PartRecord } from '../model/stores.ts';

type Noted = { reason: string | null };

const SITE_DOWN = 'site-down';

/** The note for the run's row and its events, read by main servers that resume the run. Null: nothing to note. */
export function endNote(rest: FailureReason | null, isSiteDown: boolean): string | null {
  const words = [...(rest === null ? [] : [rest]), ...(isSiteDown ? [SITE_DOWN] : [])];
  return words.length === 0 ? null : words.join(' ');
}

/** The reason noted when crawling ended. */
export function uncrawledReason(run: Noted): FailureReason {
  const words = wordsOf(run);
  return FAILURE_REASONS.find((r) => words.includes(r)) ?? 'lost-instance';
}

/** True when the site was down when crawling ended. */
export const endedSiteDown = (run: Noted): boolean => wordsOf(run).includes(SITE_DOWN);

const wordsOf = ({ reason }: Noted): string[] => reason?.split(' ') ?? [];

/**
 * The reason for the `open` products themselves: `upload` when they had all been crawled by the deadline, but their
 * instances could not bring the results to the bucket. Some of those in `loaded` parts settle nothing: their products
 * go on at another host.
 */
export function openReason(
  rest: FailureReason,
  open: number,
  instances: readonly Pick<InstanceRecord, 'slot' | 'epoch' | 'reason' | 'progress'>[],
  loaded: readonly Pick<PartRecord, 'slot' | 'epoch' | 'products'>[],
): FailureReason {
  if (rest !== 'deadline') return rest;
  let stuck = 0;
  for (const { slot, epoch, reason, progress } of instances) {
    // Products of an instance that was lost earlier went to others.
    if (progress === null || (reason !== null && reason !== LOSS.overdue)) continue;
    const own = loaded.filter((part) => part.slot === slot && part.epoch === epoch);
    const arrived = own.reduce((sum, { products }) => sum + products, 0);
    stuck += Math.max(0, progress.stored + progress.gone + progress.failed - arrived);
  }
  return open > 0 && stuck >= open ? 'upload' : rest;
}

/** How a run ends: its state and exit code from what became of the products. Pure. */
import { EXIT, type ExitCode } from '../../../../shared/domain/exit-codes.ts';
import { FAILURE_REASONS, type FailureReason } from '../../../../shared/domain/outcome.ts';
import { isStallCause, stallKind } from '../../model/stall-causes.ts';
import type { LaunchEnd } from '../launches/launch-end.ts';
import type { LedgerCounts, StopRequest, WorkReader } from '../../model/stores.ts';
import { stallReason } from '../watchdog.ts';

/** Counts of all URLs, those of link pages among them. */
type Counted = Awaited<ReturnType<WorkReader['outcomes']>>;

export interface EndInput extends Omit<Counted, 'open' | 'linkPages'> {
  /** The link pages of a discovery: they are no products. */
  linkPages?: Omit<LedgerCounts, 'open'>;
  request: StopRequest | null;
  /** The failure reason of the products that were left when crawling ended. */
  uncrawledReason: FailureReason;
  onTime: boolean;
  /** Maximum share of failed products in a complete run. */
  maxFailed: number;
  /** Failed products that are left alone as the user or an operator wants it: no failures of the run. Omitted: none. */
  leftAlone?: number;
  /**
   * The part of a slower pace, asked for in mid-run, in this many products that are left; null where it has none.
   * Omitted: none.
   */
  slowedBy?: (left: number) => string | null;
  /** The site was down when the crawl ended. */
  siteDown: boolean;
  /** What was observed of the cause by which the watchdog has ended the run. */
  stallDetail?: string | undefined;
  /** Why the launches failed; null when they did not. It counts where products were left without an instance. */
  noInstances: LaunchEnd | null;
  /** A retry, or a few due products of a long list: they may all have failed or vanished before. Default: false. */
  mayStoreNothing?: boolean;
  /** Why the rows must not be published unchecked; null or omitted when they may. */
  suspicion?: string | null;
}

export interface RunEnd {
  state: 'completed' | 'held' | 'banned' | 'failed' | 'cancelled';
  exitCode: ExitCode;
  reason: string | null;
}

/** How a run ends that a person has cancelled, whatever else became of it. */
export const CANCELLED = { exitCode: EXIT.interrupted, reason: 'cancelled' } as const;

/** Causes that take precedence over held results in the exit code: scripts must see them first. */
const BEFORE_HELD: readonly ExitCode[] = [EXIT.config, EXIT.capacity, EXIT.budget, EXIT.banned, EXIT.siteDown];

/**
 * The first cause that applies, in the order of the exit codes' table: nothing launched, budget, banned, deadline,
 * failed products. A person's stop request comes before the deadline and the failures it causes. Suspicious rows are
 * held whatever the end; then only causes that come before held results in the table keep their exit code: "deadline
 * missed" would imply that the rows are published.
 */
export function endOf(input: EndInput): RunEnd {
  const end = openEnd(input);
  const suspicion = input.suspicion ?? null;
  if (suspicion === null || input.request === 'cancel') return end;
  return {
    state: 'held',
    exitCode: BEFORE_HELD.includes(end.exitCode) ? end.exitCode : EXIT.held,
    reason: end.reason === null ? suspicion : `${suspicion}; in addition: ${end.reason}`,
  };
}

type OpenEnd = RunEnd & { state: Exclude<RunEnd['state'], 'held'> };

const ending = (state: OpenEnd['state'], exitCode: ExitCode, reason: string | null): OpenEnd => {
  return { state, exitCode, reason };
};

function openEnd(input: EndInput): OpenEnd {
  const { request, planned, failed } = input;
  const left = input.reasons[input.uncrawledReason] ?? 0;
  const nothing = planned > 0 && (input.reasons['lost-instance'] ?? 0) === planned;
  const isStranded = nothing || (input.uncrawledReason === 'lost-instance' && left > 0);
  if (input.noInstances !== null && request === null && isStranded) {
    const { cause, reason } = input.noInstances;
    const code = cause === 'rights' ? EXIT.config : EXIT.capacity;
    if (nothing) return ending('failed', code, reason);
    return ending('completed', code, `${left} products not crawled: ${reason}`);
  }
  if (request === null && input.uncrawledReason === 'budget' && left > 0)
    return ending('completed', EXIT.budget, `run.max_cost reached: ${left} products not crawled`);
  // If all products were settled after all, the open circuit breaker has cost nothing.
  if (request === 'banned' && left > 0)
    return ending('banned', EXIT.banned, `banned by the site: ${left} products not crawled`);
  if (isStallCause(request) && left > 0)
    return ending('failed', stallKind(request).exitCode, stallReason(request, left, input.stallDetail));
  if (input.siteDown && request === null && failed > input.maxFailed * planned)
    return ending('completed', EXIT.siteDown, `the site is down: ${failed} of ${planned} products failed`);
  if (request === 'stop') return ending('cancelled', EXIT.interrupted, 'stopped');
  if (request === 'cancel') return { state: 'cancelled', ...CANCELLED };
  // Crawling stopped because the mapping reads nothing: more time would not have helped.
  if (request === 'site-changed' && left > 0)
    return ending('failed', EXIT.failedProducts, `the site or its mapping has changed: ${left} products not crawled`);
  if (nothing) return ending('failed', EXIT.failedProducts, 'no instance crawled anything');
  const missed = missedDeadline(input, left);
  if (missed !== null) return ending('completed', EXIT.deadline, `deadline missed: ${missed}`);
  const products = productsOf(input);
  const { leftAlone = 0 } = input;
  const [wanted, missing] = [products.planned - leftAlone, products.failed - leftAlone];
  if (missing / Math.max(1, wanted) > input.maxFailed) {
    const reason =
      leftAlone === 0
        ? `${missing} of ${wanted} products failed`
        : `${missing} of ${wanted} products failed, beside ${leftAlone} that are left alone`;
    return ending('completed', EXIT.failedProducts, reason);
  }
  // A discovery whose lists fail finds nothing.
  if (input.linkPages !== undefined && failed / Math.max(1, planned) > input.maxFailed) {
    const { linkPages } = input;
    return ending('completed', EXIT.failedProducts, `${linkPages?.failed} of ${linkPages?.planned} link pages failed`);
  }
  if (products.planned === 0 || products.stored > 0) return ending('completed', EXIT.complete, null);
  const what = `nothing was stored: of ${products.planned} products ${products.gone} are gone and ${products.failed} failed`;
  return ending('completed', input.mayStoreNothing === true ? EXIT.complete : EXIT.failedProducts, what);
}

/** The counts without link pages. */
export function productsOf({
  planned,
  stored,
  gone,
  failed,
  reasons,
  linkPages: pages,
}: Pick<EndInput, 'planned' | 'stored' | 'gone' | 'failed' | 'reasons' | 'linkPages'>): Omit<LedgerCounts, 'open'> {
  if (pages === undefined) return { planned, stored, gone, failed, reasons };
  const left = FAILURE_REASONS.map(
    (reason) => [reason, (reasons[reason] ?? 0) - (pages.reasons[reason] ?? 0)] as const,
  );
  return {
    planned: planned - pages.planned,
    stored: stored - pages.stored,
    gone: gone - pages.gone,
    failed: failed - pages.failed,
    reasons: Object.fromEntries(left.filter(([, n]) => n > 0)),
  };
}

function missedDeadline({ reasons, uncrawledReason, onTime, slowedBy }: EndInput, left: number): string | null {
  if (left > 0 && (uncrawledReason === 'deadline' || uncrawledReason === 'robots')) {
    if (uncrawledReason === 'robots') return `${left} products not crawled, because robots.txt could not be read`;
    const asked = slowedBy?.(left) ?? null;
    const why = asked === null ? '' : `, ${asked}`;
    return `${left} products not crawled${why}`;
  }
  const stuck = reasons.upload ?? 0;
  if (stuck > 0) return `the results of ${stuck} products could not be uploaded`;
  return onTime ? null : 'published late';
}

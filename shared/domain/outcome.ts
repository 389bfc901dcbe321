/** The result of a product. Every planned product ends in exactly one outcome. */

const OUTCOMES = ['stored', 'gone', 'failed'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** The complete list of reasons a product can fail for. Reports and tests rely on it. */
export const FAILURE_REASONS = [
  'http-status',
  'network',
  'timeout',
  'redirect',
  'content-type',
  'too-large',
  'parse',
  'robots',
  'banned',
  'site-changed',
  'poison',
  'lost-instance',
  'upload',
  'load',
  'deadline',
  'budget',
  'cancelled',
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** Reasons for products that no instance crawled, or whose result never arrived: they say nothing about the page. */
export const NOT_CRAWLED: readonly FailureReason[] = [
  'robots',
  'banned',
  'site-changed',
  'lost-instance',
  'upload',
  'deadline',
  'budget',
  'cancelled',
];

/** True for a failure that may be transient, so the product is retried once at the end of its shard. */
export function isRetryable(reason: FailureReason): boolean {
  switch (reason) {
    case 'http-status':
    case 'network':
    case 'timeout':
    case 'parse':
      return true;
    case 'redirect':
    case 'content-type':
    case 'too-large':
    case 'robots':
    case 'banned':
    case 'site-changed':
    case 'poison':
    case 'lost-instance':
    case 'upload':
    case 'load':
    case 'deadline':
    case 'budget':
    case 'cancelled':
      return false;
  }
}

/** Number of products per outcome. `failed` always equals the sum over `reasons`. */
export interface OutcomeCounts {
  stored: number;
  gone: number;
  failed: number;
}

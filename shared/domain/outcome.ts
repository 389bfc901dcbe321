/** The result of a product. Every planned product ends in exactly one outcome. */

export type Outcome = 'stored' | 'gone' | 'failed';

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
  'assert',
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

const RETRYABLE: readonly FailureReason[] = ['http-status', 'network', 'timeout', 'parse'];

/** True for a failure that may be transient, so the product is retried once at the end of its shard. */
export const isRetryable = (reason: FailureReason): boolean => RETRYABLE.includes(reason);

/** Number of products per outcome. `failed` always equals the sum over `reasons`. */
export interface OutcomeCounts {
  stored: number;
  gone: number;
  failed: number;
}

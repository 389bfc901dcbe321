/** When a product is due again, from what the list says of it and what earlier runs have found. Pure. */
import type { ListedProduct } from '../../core/db/product-source.ts';

export interface RecrawlPolicy {
  /** Interval of a product with score 0. */
  baseMs: number;
  /** A score shortens the interval to base x exp(-k x score). */
  k: number;
  /** A category's own base. */
  everyMs: Readonly<Record<string, number>>;
  /** Largest share of a night that one category may take; 1: all of it. */
  maxShare: number;
}

/** What earlier runs have found. */
export interface CrawledProduct {
  atMs: number;
  outcome: 'stored' | 'gone' | 'failed';
  /** How often that outcome came in a row. */
  inARow: number;
  /** How long its page has been watched, crawl to crawl, and how often it had changed. */
  watchedMs: number;
  changes: number;
}

/** Learning halves or doubles an interval twice at most. */
const FACTORS = { min: 1 / 4, max: 4 };
/** A failed product comes back after this share of its base, then after twice as long each time. */
const FIRST_RETRY = 1 / 30;
/** A product that is gone is asked for at twice its interval, then at twice that, up to this many times its base. */
const RAREST_GONE = 8;

/** The score within its bounds. */
export const importanceOf = ({ score }: Pick<ListedProduct, 'score'>): number => Math.min(1, Math.max(0, score));

/** The interval without learning: from score and category alone. */
export function intervalMs(listed: ListedProduct, { baseMs, k, everyMs }: RecrawlPolicy): number {
  return (everyMs[listed.category ?? ''] ?? baseMs) * Math.exp(-k * importanceOf(listed));
}

/**
 * What learning multiplies the interval with: a page that changed more often than once per interval comes sooner. At a
 * given number of requests the mean age of copies is least when intervals are proportional to the cube root of the time
 * between changes; the first change is assumed, so that one crawl teaches little.
 */
export function learnedFactor({ watchedMs, changes }: CrawledProduct, intervalMs: number): number {
  const changesPerInterval = ((changes + 1) * intervalMs) / (watchedMs + intervalMs);
  return Math.min(FACTORS.max, Math.max(FACTORS.min, Math.cbrt(1 / changesPerInterval)));
}

/** -Infinity: at once, as a product that was never crawled, or has changed since. */
export function dueAtMs(listed: ListedProduct, crawled: CrawledProduct | null, policy: RecrawlPolicy): number {
  if (crawled === null || (listed.changedAtMs ?? -Infinity) > crawled.atMs) return -Infinity;
  return crawled.atMs + ownIntervalMs(listed, crawled, policy);
}

/** The interval from this crawl to the next, by its outcome. */
export function ownIntervalMs(listed: ListedProduct, crawled: CrawledProduct, policy: RecrawlPolicy): number {
  const usualMs = intervalMs(listed, policy);
  const doubled = 2 ** Math.min(30, crawled.inARow);
  if (crawled.outcome === 'failed') return Math.min(usualMs, (policy.baseMs * FIRST_RETRY * doubled) / 2);
  if (crawled.outcome === 'gone') return Math.max(usualMs, Math.min(usualMs * doubled, policy.baseMs * RAREST_GONE));
  return usualMs * learnedFactor(crawled, usualMs);
}

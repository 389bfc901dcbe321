/** How many pages a product has: the mean, by which runs are planned, and the limit, at which its crawl ends. Pure. */

/** `site.pages_per_product` as configured: a number is the mean. */
export type PagesPerProduct = number | { mean: number; max: number };

/** The limit where none is configured, of a mean up to half of it. */
export const DEFAULT_MAX_PAGES = 20;

/** The limit of a mean without one leaves room for products that have twice as many pages. */
export function pagesOf(configured: PagesPerProduct): { mean: number; max: number } {
  if (typeof configured !== 'number') return configured;
  return { mean: configured, max: Math.max(DEFAULT_MAX_PAGES, Math.ceil(2 * configured)) };
}

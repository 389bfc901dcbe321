/** How large a discovery begins, and how large it may grow. */
import type { FitProducts } from '../../core/db/data-feature.ts';
import { largest } from '../../core/plan/largest.ts';

/** How many URLs a discovery will take: none of these exceeds the next one. */
export interface ExpectedUrls {
  /** Those that wait already. */
  waiting: number;
  /** The URLs that the last discovery took, if they are more. */
  likely: number;
  /** `discover.pages`. */
  most: number;
}

/**
 * Plans for the URLs that are likely to be found, as far as they fit, and at least for those that wait. `growth` is the
 * largest fleet that the run may have, and its chunks are those of that fleet: with those of a single seed, thousands
 * of URLs would be offered one by one.
 */
export const fitUrls =
  ({ waiting, likely, most }: ExpectedUrls): FitProducts =>
  ({ plan: planOf }) => {
    const fitting = (limit: number): number => {
      const fits = (n: number): boolean => planOf(n).verdict === 'feasible';
      return fits(limit) ? limit : largest(limit, fits);
    };
    const fits = waiting === 0 ? 0 : fitting(likely);
    const plan = planOf(Math.max(waiting, fits));
    if (plan.products === 0) return { plan };
    if (fits < waiting) {
      const fewer = `discover.pages: ${fits} (the others wait for the next discovery)`;
      return { plan: { ...plan, growth: null, remedies: [...(fits === 0 ? [] : [fewer]), ...plan.remedies] } };
    }
    const urls = Math.max(fits, fitting(most));
    const { instances, cost, chunkSize } = planOf(urls);
    const growth = { urls, most, instances, cost: cost.total };
    return { plan: { ...plan, chunkSize, chunks: Math.ceil(plan.products / chunkSize), growth } };
  };

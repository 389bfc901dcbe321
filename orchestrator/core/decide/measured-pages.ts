/** Compares the requests that products take with those that the run was planned for: its end depends on them. Pure. */
import type { Action } from '../model/actions.ts';
import type { World } from '../model/world.ts';

/** Products after which the mean says something. */
const LEAST_PRODUCTS = 10;
/** A mean beyond this many times the planned one is no chance. */
const CLEARLY = 1.5;
/** Minimum share of products with a page: the requests of a failing site, which are repeated, are no measure. */
const SERVED_SHARE = 0.9;

/** One alarm in a run whose products take many more requests than planned. */
export function pagesNote(world: Pick<World, 'run' | 'fleet'>): Action[] {
  const { pages } = world.run.plan;
  const mean = pages === undefined ? null : measuredPages(world);
  if (pages === undefined || mean === null || mean <= CLEARLY * pages.mean) return [];
  const rounded = Math.ceil(mean);
  const max = Math.max(pages.max, 2 * rounded);
  const detail =
    `products take ${mean.toFixed(1)} requests on average, and the run was planned for ${pages.mean} ` +
    `(site.pages_per_product): it may end later than planned. For the next run set site.pages_per_product: ` +
    `{ mean: ${rounded}, max: ${max} }`;
  return [{ kind: 'note', note: { key: 'site.pages_per_product', event: 'forecast', detail }, alarm: true }];
}

/** Requests a product, at least; null while nothing can be said. */
function measuredPages({ run, fleet }: Pick<World, 'run' | 'fleet'>): number | null {
  const atOnce = run.plan.domains?.count ?? 1;
  let [requests, served, seen, begun] = [0, 0, 0, 0];
  for (const { progress } of fleet.all) {
    if (progress === null) continue;
    const { stored, gone, failed, pending, rendered, canaries, misses = [] } = progress;
    // Where the browser repeats a request (site.render: auto), both were for one page.
    requests += Math.max(progress.requests - rendered, rendered) - canaries;
    served += stored + gone;
    seen += stored + gone + failed + misses.reduce((sum, { waiting }) => sum + waiting, 0);
    // The requests for products that have no outcome yet count, so these products do.
    begun += Math.min(pending, atOnce);
  }
  if (served < LEAST_PRODUCTS || served < SERVED_SHARE * seen) return null;
  return requests / (seen + begun);
}

/** What one night crawls: of the due products as many as fit, most overdue first; of a discovery what waits, and more as it is found. */
import type { Plan } from '../../core/plan/plan.ts';
import { MAX_IN_REGION } from '../../core/config/schema.ts';
import { makePlan, type PlanFacts } from '../../core/prepare/make-plan.ts';
import type { ExpectedUrls, ProductList } from '../../core/prepare/products.ts';

export interface Planned {
  plan: Plan;
  products: ProductList;
}

/**
 * Without `products.recrawl` the plan of all of them. A night that cannot crawl a single product gets the refusal of all.
 * @param count number of products to plan for, whatever the list says
 */
export function fitNight(facts: PlanFacts, count?: number): Planned {
  if (count !== undefined) return { plan: makePlan(facts, { products: count }), products: facts.products };
  const { night, discovery } = facts.products;
  if (discovery) return { plan: planDiscovery(facts, discovery), products: facts.products };
  const { recrawl } = facts.config.values.products;
  if (!night || !recrawl) return { plan: makePlan(facts), products: facts.products };
  const planOf = (ids: string[]): Plan => makePlan({ ...facts, products: { ...facts.products, ids } });
  let choice = night.choose(recrawl.capacity ?? Infinity);
  let plan = planOf(choice.ids);
  if (plan.verdict !== 'feasible' && plan.verdict !== 'too-few-products') {
    const most = largest(choice.ids.length, (n) => planOf(choice.ids.slice(0, n)).verdict === 'feasible');
    if (most > 0) {
      choice = night.choose(most);
      plan = planOf(choice.ids);
    }
  }
  const { listed, unseen, due, productsPerDay } = night.backlog;
  const regions = facts.regions?.list.map((each) => ({ ...each, maxInstances: MAX_IN_REGION, vcpuQuota: null }));
  const everyDay = {
    products: Math.ceil(productsPerDay),
    minInstances: 1,
    maxInstances: MAX_IN_REGION * (regions?.length ?? 1),
    maxCost: null,
    vcpuQuota: null,
    ...(regions ? { regions } : {}),
  };
  const fresh = makePlan(facts, everyDay);
  const keepsFresh = { products: everyDay.products, instances: fresh.instances, cost: fresh.cost.total };
  const { carriedOver } = choice;
  return {
    plan: {
      ...plan,
      recrawl: { listed, unseen, due, carriedOver, keepsFresh: fresh.verdict === 'feasible' ? keepsFresh : null },
    },
    products: { ...facts.products, ids: choice.ids },
  };
}

/**
 * For the URLs that are likely to be found, as far as they fit, and at least for those that wait. `growth` is the
 * largest fleet that the run may have, and its chunks are those of that fleet: with those of a single seed, thousands of
 * URLs would be offered one by one.
 */
function planDiscovery(facts: PlanFacts, { waiting, likely, most }: ExpectedUrls): Plan {
  const planOf = (products: number): Plan => makePlan(facts, { products });
  const fitting = (limit: number): number => {
    const fits = (n: number): boolean => planOf(n).verdict === 'feasible';
    return fits(limit) ? limit : largest(limit, fits);
  };
  const fits = waiting === 0 ? 0 : fitting(likely);
  const plan = planOf(Math.max(waiting, fits));
  if (plan.products === 0) return plan;
  if (fits < waiting) {
    const fewer = `discover.pages: ${fits} (the others wait for the next discovery)`;
    return { ...plan, growth: null, remedies: [...(fits === 0 ? [] : [fewer]), ...plan.remedies] };
  }
  const urls = Math.max(fits, fitting(most));
  const { instances, cost, chunkSize } = planOf(urls);
  return {
    ...plan,
    chunkSize,
    chunks: Math.ceil(plan.products / chunkSize),
    growth: { urls, most, instances, cost: cost.total },
  };
}

/** The largest number below `limit` that fits, if smaller ones always do; 0 when none does. */
function largest(limit: number, fits: (n: number) => boolean): number {
  let [low, high] = [0, limit];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

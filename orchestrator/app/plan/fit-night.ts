/** With `products.recrawl`: as many of the due products as one night can crawl, most overdue first. */
import type { Plan } from '../../plan/plan.ts';
import { MAX_IN_REGION } from '../config/schema.ts';
import { makePlan, type PlanFacts } from './make-plan.ts';
import type { ProductList } from './products.ts';

export interface Planned {
  plan: Plan;
  products: ProductList;
}

/** Without `products.recrawl` the plan of all of them. A night that cannot crawl a single product gets the refusal of all. */
export function fitNight(facts: PlanFacts): Planned {
  const { night } = facts.products;
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

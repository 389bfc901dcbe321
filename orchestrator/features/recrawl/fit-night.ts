/** Which products of products.query a night crawls: of the due ones as many as fit, most overdue first. */
import type { Database } from '../../core/db/connect.ts';
import type { ChosenProducts, FitProducts, ProductQuery } from '../../core/db/data-feature.ts';
import { largest } from '../../core/plan/largest.ts';
import { noteCrawls, readCrawls } from './crawls.ts';
import { Night } from './night.ts';

/** The products that are due, by what earlier runs into the table have found; null without `products.recrawl`. */
export async function chooseNight(db: Database, query: ProductQuery): Promise<ChosenProducts | null> {
  const { source, recrawl, resultTable, mayWrite } = query;
  if (recrawl === null) return null;
  const nowMs = db.clock.now();
  if (mayWrite) await noteCrawls(db, resultTable, nowMs);
  const { base, k, every, score, max_share: maxShare, capacity } = recrawl;
  const night = new Night({ baseMs: base, k, everyMs: every, maxShare }, nowMs);
  const crawls = await readCrawls(db, resultTable);
  const seen = new Set<string>();
  let listed = 0;
  for await (const product of source.listed(score)) {
    listed++;
    if (seen.has(product.id)) continue;
    seen.add(product.id);
    night.add(product, crawls.get(product.id) ?? null);
  }
  const duplicates = listed - seen.size;
  return { ids: night.choose(Infinity).ids, duplicates, listed: seen.size, fit: fitNight(night, capacity) };
}

/** A night that cannot crawl a single product gets the refusal of all. */
export function fitNight(night: Night, capacity: number | null): FitProducts {
  return ({ plan: planOf, planUnlimited }) => {
    let choice = night.choose(capacity ?? Infinity);
    let plan = planOf(choice.ids);
    if (plan.verdict !== 'feasible' && plan.verdict !== 'too-few-products') {
      const most = largest(choice.ids.length, (n) => planOf(choice.ids.slice(0, n)).verdict === 'feasible');
      if (most > 0) {
        choice = night.choose(most);
        plan = planOf(choice.ids);
      }
    }
    const { listed, unseen, due, productsPerDay } = night.backlog;
    const products = Math.ceil(productsPerDay);
    const fresh = planUnlimited(products);
    const keepsFresh =
      fresh.verdict === 'feasible' ? { products, instances: fresh.instances, cost: fresh.cost.total } : null;
    const { ids, carriedOver } = choice;
    return { plan: { ...plan, recrawl: { listed, unseen, due, carriedOver, keepsFresh } }, ids };
  };
}

import { describe, expect, it } from 'vitest';
import { configSchema } from '../../../../orchestrator/core/config/schema.ts';
import { fitNight } from '../../../../orchestrator/features/recrawl/fit-night.ts';
import type { PlanFacts } from '../../../../orchestrator/core/prepare/make-plan.ts';
import { renderPlan } from '../../../../orchestrator/core/plan/render-plan.ts';
import { Night } from '../../../../orchestrator/features/recrawl/night.ts';
import { aRun, ALLOW_ALL } from '../../core/builders.ts';

const REGIONS = ['eu-west-1', 'us-east-1'];

/** A catalogue that has to be crawled every day, which takes about 14 instances in four hours. */
function factsOf(aws: Record<string, unknown>, regions: PlanFacts['regions'] = null): PlanFacts {
  const values = configSchema.parse({
    site: {
      product_url: 'https://shop.example/item/{id}',
      mapping: {},
      interval: '10s',
      user_agent: 'examplebot/1.0 (+https://example.com/bot)',
    },
    products: { query: 'select 1 as id', recrawl: { base: '1d' } },
    database: { url: 'sqlite:/x.db' },
    run: { deadline: '4h' },
    aws,
  });
  const night = new Night({ baseMs: 86_400_000, k: 0, everyMs: {}, maxShare: 1 }, Date.UTC(2026, 10, 26));
  for (let i = 0; i < 20_000; i++)
    night.add({ id: `p${i}`, score: 0, changedAtMs: null, priority: 0, category: null }, null);
  return {
    config: { values, mapping: structuredClone(aRun().settings.mapping), file: '/fleet.yaml', features: [] },
    target: { dryRun: false, kind: 'aws', region: REGIONS[0]!, bucket: 'b', endpoint: null },
    products: { ids: night.choose(Infinity).ids, duplicates: 0, night },
    robots: ALLOW_ALL,
    prices: { lists: [], warnings: [] },
    quota: { vcpus: 4, note: null },
    regions,
    browser: 'ready',
  };
}

/** A discovery at which this many URLs wait. */
function discoveryOf(waiting: number, run: object = {}, { likely = waiting, most = 10_000 } = {}): PlanFacts {
  const { config, ...facts } = factsOf({});
  return {
    ...facts,
    config: { ...config, values: { ...config.values, run: { ...config.values.run, ...run } } },
    products: { ids: ['/'], duplicates: 0, discovery: { waiting, likely, most } },
    quota: { vcpus: null, note: null },
  };
}

describe('the plan of a discovery', () => {
  it('is made for the URLs that wait, with room for those that it finds', () => {
    const { plan } = fitNight(discoveryOf(61));
    expect(plan).toMatchObject({ verdict: 'feasible', products: 61, instances: 1, chunks: 1 });
    expect(plan.growth).toMatchObject({ urls: 10_000, most: 10_000 });
    expect(plan.growth!.instances).toBeGreaterThan(7);
    expect(plan.growth!.cost).toBeGreaterThan(plan.cost.total);
    expect(renderPlan(plan)).toMatch(/^URLs +61$/m);
    expect(renderPlan(plan)).toMatch(/^each +61 URLs in chunks of 61, room/m);
    expect(renderPlan(plan)).toMatch(/^growth +as it finds more, up to 10,000 URLs \(discover.pages\): \d+ instances/m);
  });

  it('grows as far as its limits allow', () => {
    const { plan } = fitNight(discoveryOf(1, { max_instances: 2 }));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 1, growth: { instances: 2, most: 10_000 } });
    const { urls } = plan.growth!;
    expect(urls).toBeGreaterThan(plan.capacityEach);
    expect(urls).toBeLessThanOrEqual(2 * plan.capacityEach);
    expect(renderPlan(plan).replaceAll(/\s+/g, ' ')).toContain('more does not fit, and waits for the next discovery');
  });

  it('counts on as many as the last one took, where they fit', () => {
    expect(fitNight(discoveryOf(61, {}, { likely: 3_000 })).plan).toMatchObject({
      products: 3_000,
      verdict: 'feasible',
    });
    const { plan } = fitNight(discoveryOf(61, { max_instances: 1 }, { likely: 3_000 }));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 1 });
    expect(plan.products).toBeLessThan(3_000);
  });

  it('that cannot crawl what waits is refused, and the remedy is discover.pages', () => {
    const { plan } = fitNight(discoveryOf(5_000, { max_instances: 2 }));
    expect(plan).toMatchObject({ verdict: 'infeasible', growth: null });
    expect(renderPlan(plan)).toMatch(/^URLs +5,000$/m);
    const fewer = Number(/^discover\.pages: (\d+) /.exec(plan.remedies[0]!)![1]);
    expect(fitNight(discoveryOf(fewer, { max_instances: 2 })).plan.verdict).toBe('feasible');
    expect(fitNight(discoveryOf(fewer + 1, { max_instances: 2 })).plan.verdict).toBe('infeasible');
    // No number of URLs would help against a deadline that is shorter than a boot.
    const { remedies } = fitNight(discoveryOf(5_000, { deadline: 60_000 })).plan;
    expect(remedies.join()).not.toContain('discover.pages');
  });

  it('of nothing is nothing', () => {
    expect(fitNight(discoveryOf(0)).plan).toMatchObject({ verdict: 'feasible', products: 0, instances: 0 });
  });
});

describe('the plan of a night', () => {
  it('takes what the quota allows, and says what would keep the whole list fresh without it', () => {
    const { plan, products } = fitNight(factsOf({}));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 2, recrawl: { due: 20_000 } });
    expect(products.ids.length).toBe(20_000 - plan.recrawl!.carriedOver.products);
    expect(plan.recrawl!.keepsFresh!.products).toBe(20_000);
    expect(plan.recrawl!.keepsFresh!.instances).toBeGreaterThan(13);
  });

  it('says the same of several regions, without their limits', () => {
    const list = REGIONS.map((region) => ({ region, maxInstances: 1, weight: null, vcpuQuota: 2 }));
    const named = REGIONS.map((region) => ({ region, max_instances: 1 }));
    const { plan } = fitNight(factsOf({ regions: named }, { list, notes: [] }));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 2 });
    expect(plan.regions!.map(({ region, instances }) => [region, instances])).toEqual(REGIONS.map((r) => [r, 1]));
    expect(plan.recrawl!.keepsFresh).toEqual({
      ...fitNight(factsOf({})).plan.recrawl!.keepsFresh,
      cost: expect.any(Number) as number,
    });
  });
});

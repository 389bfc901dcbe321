import { describe, expect, it } from 'vitest';
import { configSchema } from '../../../../orchestrator/core/config/schema.ts';
import { fitUrls } from '../../../../orchestrator/features/discovery/fit-urls.ts';
import { type PlanFacts, planWhatFits } from '../../../../orchestrator/core/prepare/make-plan.ts';
import { renderPlan } from '../../../../orchestrator/core/plan/render-plan.ts';
import { aRun, ALLOW_ALL } from '../../core/builders.ts';

/** A discovery at which this many URLs wait. */
function discoveryOf(waiting: number, run: object = {}, { likely = waiting, most = 10_000 } = {}): PlanFacts {
  const values = configSchema.parse({
    site: {
      product_url: 'https://shop.example/item/{id}',
      mapping: {},
      interval: '10s',
      user_agent: 'examplebot/1.0 (+https://example.com/bot)',
    },
    products: { query: 'select 1 as id' },
    database: { url: 'sqlite:/x.db' },
    run: { deadline: '4h' },
    aws: {},
  });
  return {
    config: {
      values: { ...values, run: { ...values.run, ...run } },
      mapping: structuredClone(aRun().settings.mapping),
      file: '/fleet.yaml',
      features: [],
    },
    target: { dryRun: false, kind: 'aws', region: 'eu-west-1', bucket: 'b', endpoint: null },
    products: { ids: ['/'], duplicates: 0, fit: fitUrls({ waiting, likely, most }) },
    robots: ALLOW_ALL,
    prices: { lists: [], warnings: [] },
    quota: { vcpus: null, note: null },
    browser: 'ready',
  };
}

describe('the plan of a discovery', () => {
  it('is made for the URLs that wait, with room for those that it finds', () => {
    const { plan } = planWhatFits(discoveryOf(61));
    expect(plan).toMatchObject({ verdict: 'feasible', products: 61, instances: 1, chunks: 1 });
    expect(plan.growth).toMatchObject({ urls: 10_000, most: 10_000 });
    expect(plan.growth!.instances).toBeGreaterThan(7);
    expect(plan.growth!.cost).toBeGreaterThan(plan.cost.total);
    expect(renderPlan(plan)).toMatch(/^URLs +61$/m);
    expect(renderPlan(plan)).toMatch(/^each +61 URLs in chunks of 61, room/m);
    expect(renderPlan(plan)).toMatch(/^growth +as it finds more, up to 10,000 URLs \(discover.pages\): \d+ instances/m);
  });

  it('grows as far as its limits allow', () => {
    const { plan } = planWhatFits(discoveryOf(1, { max_instances: 2 }));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 1, growth: { instances: 2, most: 10_000 } });
    const { urls } = plan.growth!;
    expect(urls).toBeGreaterThan(plan.capacityEach);
    expect(urls).toBeLessThanOrEqual(2 * plan.capacityEach);
    expect(renderPlan(plan).replaceAll(/\s+/g, ' ')).toContain('more does not fit, and waits for the next discovery');
  });

  it('counts on as many as the last one took, where they fit', () => {
    expect(planWhatFits(discoveryOf(61, {}, { likely: 3_000 })).plan).toMatchObject({
      products: 3_000,
      verdict: 'feasible',
    });
    const { plan } = planWhatFits(discoveryOf(61, { max_instances: 1 }, { likely: 3_000 }));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 1 });
    expect(plan.products).toBeLessThan(3_000);
  });

  it('that cannot crawl what waits is refused, and the remedy is discover.pages', () => {
    const { plan } = planWhatFits(discoveryOf(5_000, { max_instances: 2 }));
    expect(plan).toMatchObject({ verdict: 'infeasible', growth: null });
    expect(renderPlan(plan)).toMatch(/^URLs +5,000$/m);
    const fewer = Number(/^discover\.pages: (\d+) /.exec(plan.remedies[0]!)![1]);
    expect(planWhatFits(discoveryOf(fewer, { max_instances: 2 })).plan.verdict).toBe('feasible');
    expect(planWhatFits(discoveryOf(fewer + 1, { max_instances: 2 })).plan.verdict).toBe('infeasible');
    // No number of URLs would help against a deadline that is shorter than a boot.
    const { remedies } = planWhatFits(discoveryOf(5_000, { deadline: 60_000 })).plan;
    expect(remedies.join()).not.toContain('discover.pages');
  });

  it('of nothing is nothing', () => {
    expect(planWhatFits(discoveryOf(0)).plan).toMatchObject({ verdict: 'feasible', products: 0, instances: 0 });
  });
});

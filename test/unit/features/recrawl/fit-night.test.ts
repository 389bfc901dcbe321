import { describe, expect, it } from 'vitest';
import { configSchema } from '../../../../orchestrator/core/config/schema.ts';
import { fitNight } from '../../../../orchestrator/features/recrawl/fit-night.ts';
import { type PlanFacts, planWhatFits } from '../../../../orchestrator/core/prepare/make-plan.ts';
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
    products: { ids: night.choose(Infinity).ids, duplicates: 0, fit: fitNight(night, null) },
    robots: ALLOW_ALL,
    prices: { lists: [], warnings: [] },
    quota: { vcpus: 4, note: null },
    regions,
    browser: 'ready',
  };
}

describe('the plan of a night', () => {
  it('takes what the quota allows, and says what would keep the whole list fresh without it', () => {
    const { plan, products } = planWhatFits(factsOf({}));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 2, recrawl: { due: 20_000 } });
    expect(products.ids.length).toBe(20_000 - plan.recrawl!.carriedOver.products);
    expect(plan.recrawl!.keepsFresh!.products).toBe(20_000);
    expect(plan.recrawl!.keepsFresh!.instances).toBeGreaterThan(13);
  });

  it('says the same of several regions, without their limits', () => {
    const list = REGIONS.map((region) => ({ region, maxInstances: 1, weight: null, vcpuQuota: 2 }));
    const named = REGIONS.map((region) => ({ region, max_instances: 1 }));
    const { plan } = planWhatFits(factsOf({ regions: named }, { list, notes: [] }));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 2 });
    expect(plan.regions!.map(({ region, instances }) => [region, instances])).toEqual(REGIONS.map((r) => [r, 1]));
    expect(plan.recrawl!.keepsFresh).toEqual({
      ...planWhatFits(factsOf({})).plan.recrawl!.keepsFresh,
      cost: expect.any(Number) as number,
    });
  });
});

/** Plans over several regions: which get how many instances, what that costs, and what the limits allow. */
import { describe, expect, it } from 'vitest';
import { actualCost } from '../../../../orchestrator/core/plan/prices.ts';
import { renderPlan } from '../../../../orchestrator/core/plan/render-plan.ts';
import { type PlanRegion, spread } from '../../../../orchestrator/core/plan/spread.ts';
import { HOUR, plan } from '../../../support/plan-input.ts';

const at = (region: string, change: Partial<PlanRegion> = {}): PlanRegion => ({
  region,
  maxInstances: 1_000,
  weight: null,
  vcpuQuota: null,
  ...change,
});
const PRICES: Record<string, number> = { dear: 3, cheap: 1, middle: 2 };
const over = (instances: number, ...regions: PlanRegion[]) =>
  Object.fromEntries(
    spread(regions, instances, { vcpus: 2, priceOf: (region) => PRICES[region]! }).map((p) => [p.region, p.instances]),
  );

describe('spread', () => {
  it('fills the cheapest region first, within its quota and its own limit', () => {
    expect(over(10, at('dear'), at('cheap'), at('middle'))).toEqual({ cheap: 10 });
    expect(over(10, at('dear'), at('cheap', { vcpuQuota: 9 }), at('middle', { maxInstances: 3 }))).toEqual({
      dear: 3,
      cheap: 4,
      middle: 3,
    });
  });

  it('goes by the weights where there are any', () => {
    expect(over(9, at('dear', { weight: 2 }), at('cheap'))).toEqual({ dear: 6, cheap: 3 });
    const full = at('cheap', { weight: 8, maxInstances: 2 });
    expect(over(9, at('dear', { weight: 1 }), full)).toEqual({ dear: 7, cheap: 2 });
  });
});

describe('a plan over regions', () => {
  const regions = [at('ap-northeast-1'), at('eu-west-1', { vcpuQuota: 30 }), at('us-east-1', { maxInstances: 5 })];

  it('takes the cheapest mix that the limits allow, and says it by region', () => {
    const found = plan({ regions });
    expect(found).toMatchObject({ verdict: 'feasible', instances: 22, vcpuQuota: null });
    expect(found.regions!.map((r) => [r.region, r.instances, r.vcpus])).toEqual([
      ['ap-northeast-1', 2, 4],
      ['eu-west-1', 15, 30],
      ['us-east-1', 5, 10],
    ]);
    expect(found.regions!.reduce((sum, r) => sum + r.cost, 0)).toBeCloseTo(found.cost.total, 4);
    expect(found.cost.traffic).toBeGreaterThan(0);
    const text = renderPlan(found).replaceAll(/\s+/g, ' ');
    expect(text).toMatch(/regions ap-northeast-1 2, \$0\.\d+; eu-west-1 15, 30 of 30 vCPUs, \$0\.\d+; us-east-1 5, \$/);
    expect(text).toContain('traffic between regions $0.');
    expect(text).toContain('44 (quota unknown in a region)');
  });

  it('takes the type that is cheapest where instances run, not where the bucket is', () => {
    const prices = [{ region: 'us-east-1', of: '2026-11-01', hourly: { 't3.nano': 0.0052, 't4g.nano': 0.0061 } }];
    const instanceTypes = ['t4g.nano', 't3.nano'];
    expect(plan({ instanceTypes, prices, regions: [at('us-east-1')] }).instanceType).toBe('t3.nano');
    expect(plan({ instanceTypes, prices }).instanceType).toBe('t4g.nano');
  });

  it('is refused when all regions together do not allow enough', () => {
    const found = plan({ regions: regions.slice(1) });
    expect(found.verdict).toBe('over-quota');
    expect(found.faults.join()).toContain(
      'the regions together allow 20 by quota and max_instances: eu-west-1 15, us-east-1 5',
    );
    expect(found.remedies.join()).toContain('2 more instances in aws.regions');
  });

  it('costs the same in one region of a list as in the short form', () => {
    const [long, short] = [plan({ regions: [at('ap-northeast-1')] }), plan()];
    expect(long.cost).toEqual(short.cost);
    expect(short).not.toHaveProperty('regions');
  });
});

it('the bill of a run counts each instance in its region, a balancer in each, and the traffic to the bucket', () => {
  const lived = (region: string) => ({ region, instanceType: 't4g.nano', launchedAtMs: 0, endedAtMs: HOUR });
  const common = { startedAtMs: 0, finishedAtMs: HOUR, products: 0 };
  const [one, two] = ['us-east-1', 'eu-west-1'].map((region) =>
    actualCost({ ...common, region, instances: [lived(region)] }),
  );
  const both = actualCost({ ...common, region: 'us-east-1', instances: [lived('us-east-1'), lived('eu-west-1')] });
  expect(both.instances).toBeCloseTo(one!.instances + two!.instances, 6);
  expect(both.balancer).toBeCloseTo(one!.balancer + two!.balancer, 6);
  expect(both.traffic).toBeCloseTo(0.05 * 0.02, 6);
});

import { describe, expect, it } from 'vitest';
import { drawDays, FinishModel } from '../../../../orchestrator/core/plan/finish-model.ts';
import { lastLaunchMs, shareOf, workOf } from '../../../../orchestrator/core/plan/fleet-sums.ts';
import type { PlanInput } from '../../../../orchestrator/core/plan/plan.ts';
import { momentsAbove, normalCdf, normalQuantile, normalTail } from '../../../../orchestrator/core/plan/lognormal.ts';
import { seededRandom } from '../../../../shared/adapters/random.ts';
import { planInput } from '../../../support/plan-input.ts';

const modelOf = (input: PlanInput) => new FinishModel(input, workOf(input), drawDays(seededRandom(3)));

/** Share of runs on time by sampling every boot, with negligible page times. */
function sampledChance(input: PlanInput, instances: number, endMs: number): number {
  const random = seededRandom(11);
  const sigma = Math.log(input.bootP95Ms / input.bootP50Ms) / 1.6448536;
  const normal = () => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  const { each } = shareOf(input.products, instances);
  const crawlMs = (each - 1) * workOf(input).paceMs + input.pageP50Ms;
  const runs = 4_000;
  let onTime = 0;
  for (let run = 0; run < runs; run++) {
    const common = normal() * Math.sqrt(0.25);
    let endsMs = 0;
    for (let slot = 1; slot <= instances; slot++) {
      const bootMs = input.bootP50Ms * Math.exp(sigma * (common + normal() * Math.sqrt(0.75)));
      const startMs = Math.max(lastLaunchMs(slot) + bootMs, input.balancerMs);
      endsMs = Math.max(endsMs, startMs + crawlMs + input.tailMs);
    }
    if (endsMs <= endMs) onTime++;
  }
  return onTime / runs;
}

describe('FinishModel', () => {
  it.each([3, 20, 60])('agrees with sampling every boot of %i instances', (instances) => {
    const input = planInput({ products: 100 * instances, balancerMs: 0, pageP50Ms: 1 });
    const model = modelOf(input);
    for (const share of [0.5, 0.95]) {
      const endMs = model.endMs(share, instances);
      expect(Math.abs(sampledChance(input, instances, endMs) - share)).toBeLessThan(0.05);
    }
  });

  it('has probability 0 before the balancer takes traffic, and approaches 1', () => {
    const model = modelOf(planInput({ products: 1 }));
    expect(model.chanceBy(200_000, 1)).toBe(0);
    expect(model.chanceBy(10_000_000, 1)).toBeCloseTo(1, 6);
  });

  it('predicts a later p95 end with slower pages', () => {
    const quick = modelOf(planInput({ intervalMs: 100, pageP50Ms: 200 }));
    const slow = modelOf(planInput({ intervalMs: 100, pageP50Ms: 400 }));
    expect(slow.endMs(0.95, 5)).toBeGreaterThan(quick.endMs(0.95, 5));
  });

  it('treats a fleet without spread as deterministic', () => {
    const model = modelOf(planInput({ products: 10, bootP50Ms: 1_000, bootP95Ms: 1_000, balancerMs: 0, pageP50Ms: 0 }));
    const endMs = model.endMs(0.5, 1);
    expect(model.endMs(0.999, 1)).toBe(endMs);
    expect(model.chanceBy(endMs - 100, 1)).toBe(0);
  });
});

describe('the normal distribution', () => {
  it.each([
    [0, 0.5],
    [1, 0.158655254],
    [-1, 0.841344746],
    [4, 3.16712e-5],
    [6, 9.86588e-10],
  ])('has a tail above %d of %d', (x, tail) => {
    expect(normalTail(x) / tail).toBeCloseTo(1, 4);
  });

  it('has quantiles that invert its distribution function', () => {
    for (const p of [1e-6, 0.01, 0.5, 0.95, 0.999999]) expect(normalCdf(normalQuantile(p))).toBeCloseTo(p, 6);
  });

  it('has the moments of a lognormal above a floor', () => {
    expect(momentsAbove(0, 1, 0.5).mean).toBeCloseTo(Math.exp(0.125), 5);
    expect(momentsAbove(1_000, 1, 0.5)).toMatchObject({ mean: 1_000 });
    expect(momentsAbove(1_000, 1, 0.5).variance).toBeLessThan(1);
    expect(momentsAbove(5, 0, 1)).toEqual({ mean: 5, variance: 0 });
  });
});

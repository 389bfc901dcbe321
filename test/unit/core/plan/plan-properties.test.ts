import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PlanInput } from '../../../../orchestrator/core/plan/plan.ts';
import { HOUR, plan } from '../../../support/plan-input.ts';

const RUNS = 12;

const input = fc.record({
  products: fc.integer({ min: 0, max: 20_000 }),
  deadlineMs: fc.integer({ min: 30_000, max: 8 * HOUR }),
  intervalMs: fc.integer({ min: 100, max: 30_000 }),
  pageP50Ms: fc.integer({ min: 1, max: 5_000 }),
  minInstances: fc.integer({ min: 1, max: 5 }),
});
const seed = fc.integer({ min: 0, max: 1_000 });

// Plans of any size, each with many random draws: seconds of computing.
describe('planRun, for any input', { timeout: 90_000 }, () => {
  it('never needs fewer instances for more products', () => {
    fc.assert(
      fc.property(input, seed, fc.integer({ min: 1, max: 2_000 }), (base, s, more) => {
        const small = plan(base, s);
        const large = plan({ ...base, products: base.products + more }, s);
        fc.pre(large.verdict === 'feasible' && large.onTimeProbability >= 0.999);
        expect(small.verdict).toBe('feasible');
        expect(large.instances).toBeGreaterThanOrEqual(small.instances);
      }),
      { numRuns: RUNS },
    );
  });

  it('never needs more instances for a later deadline', () => {
    fc.assert(
      fc.property(input, seed, fc.integer({ min: 1, max: HOUR }), (base, s, more) => {
        const soon = plan(base, s);
        fc.pre(soon.verdict === 'feasible' && soon.onTimeProbability >= 0.999);
        const later = plan({ ...base, deadlineMs: base.deadlineMs + more }, s);
        expect(later.verdict).toBe('feasible');
        expect(later.instances).toBeLessThanOrEqual(soon.instances);
      }),
      { numRuns: RUNS },
    );
  });

  it('ends by the deadline when it is feasible, and gives no instance more than its capacity', () => {
    fc.assert(
      fc.property(input, seed, (base, s) => {
        const p = plan(base, s);
        fc.pre(p.verdict === 'feasible');
        expect(p.endP95Ms).toBeLessThanOrEqual(base.deadlineMs);
        expect(p.productsEach).toBeLessThanOrEqual(p.capacityEach);
        expect(p.instances).toBeGreaterThanOrEqual(p.lowerBoundInstances);
        expect(p.instances * p.productsEach).toBeGreaterThanOrEqual(base.products);
        expect(p.instances).toBeLessThanOrEqual(base.products);
      }),
      { numRuns: RUNS },
    );
  });

  it('never exceeds a limit, and always gives a reason when it is infeasible', () => {
    const limits = fc.record({
      maxInstances: fc.integer({ min: 1, max: 50 }),
      maxRatePerSecond: fc.option(fc.double({ min: 0.05, max: 5, noNaN: true })),
      vcpuQuota: fc.option(fc.integer({ min: 0, max: 60 })),
      maxCost: fc.option(fc.double({ min: 0.01, max: 3, noNaN: true })),
    });
    fc.assert(
      fc.property(input, limits, seed, (base, limit, s) => {
        const given: Partial<PlanInput> = { ...base, ...limit };
        const p = plan(given, s);
        if (p.verdict !== 'feasible') {
          expect(p.faults.length).toBeGreaterThan(0);
          return;
        }
        expect(p.faults).toEqual([]);
        expect(p.instances).toBeLessThanOrEqual(limit.maxInstances);
        if (limit.vcpuQuota !== null) expect(p.vcpus).toBeLessThanOrEqual(limit.vcpuQuota);
        if (limit.maxCost !== null) expect(p.cost.total).toBeLessThanOrEqual(limit.maxCost + 1e-9);
        if (limit.maxRatePerSecond !== null) {
          expect((p.instances * 1_000) / p.intervalMs).toBeLessThanOrEqual(limit.maxRatePerSecond + 1e-6);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

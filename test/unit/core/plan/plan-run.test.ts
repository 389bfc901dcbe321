import { describe, expect, it } from 'vitest';
import { defaultsFor } from '../../../../orchestrator/core/plan/defaults.ts';
import { HOUR, plan } from '../../../support/plan-input.ts';

describe('planRun', () => {
  it('plans 30,000 products at 10 s in 4 h close to the lower bound, on time and for about a dollar', () => {
    const p = plan();
    expect(p).toMatchObject({ verdict: 'feasible', instances: 22, lowerBoundInstances: 21, instanceType: 't4g.nano' });
    expect(p.instances / ((p.products * p.intervalMs) / p.deadlineMs)).toBeLessThanOrEqual(1.1);
    expect(p.onTimeProbability).toBeGreaterThanOrEqual(0.999);
    expect(p.endP50Ms).toBeLessThanOrEqual(p.endP95Ms);
    expect(p.endP95Ms).toBeLessThanOrEqual(p.deadlineMs);
    expect(p.cost.instances + p.cost.ipv4 + p.cost.balancer).toBeLessThanOrEqual(1);
    expect(p.cost.total).toBeGreaterThan(p.cost.instances + p.cost.ipv4 + p.cost.balancer);
    expect(p.cost.total).toBeLessThan(1.15);
  });

  it('includes the addresses of an internet-facing balancer in its price', () => {
    const facing = plan({ balancerAddresses: 2 });
    expect(facing.cost.balancer - plan().cost.balancer).toBeCloseTo((2 * 0.005 * facing.endP50Ms) / HOUR, 4);
    const { instances, ipv4, balancer } = plan({ balancerAddresses: 2, region: 'us-east-1' }).cost;
    expect(instances + ipv4 + balancer).toBeLessThanOrEqual(1);
  });

  it('gives the same plan for the same seed', () => {
    expect(plan({}, 7)).toEqual(plan({}, 7));
  });

  it('plans three instances for the demo: 400 products at 200 ms in 45 s in the sandbox', () => {
    const p = plan({ products: 400, intervalMs: 200, deadlineMs: 45_000, ...defaultsFor('sandbox') });
    expect(p).toMatchObject({ verdict: 'feasible', instances: 3 });
  });

  const equal = (count: number) => Array.from({ length: count }, () => ({ share: 1 / count, delayMs: 0 }));

  it('plans half of the instances for two equal domains, and little more for uneven shards', () => {
    const p = plan({ domains: equal(2) });
    expect(p).toMatchObject({ verdict: 'feasible', instances: 12, lowerBoundInstances: 11 });
    expect(p.paceMs).toBeCloseTo(plan().paceMs / 2);
    expect(p.domains).toEqual({ count: 2, busiestShare: 0.5 });
    expect(p.onTimeProbability).toBeGreaterThanOrEqual(0.999);
    expect(plan({ domains: equal(1) })).toEqual(plan());
  });

  it('counts with the busiest domain, by its weight or its Crawl-delay', () => {
    const uneven = plan({
      domains: [
        { share: 0.9, delayMs: 0 },
        { share: 0.1, delayMs: 0 },
      ],
    });
    expect(uneven.lowerBoundInstances).toBe(19);
    const slow = plan({
      domains: [
        { share: 0.9, delayMs: 0 },
        { share: 0.1, delayMs: 120_000 },
      ],
    });
    expect(slow.lowerBoundInstances).toBe(25);
    expect(slow.paceMs).toBeGreaterThan(uneven.paceMs);
  });

  it('counts with the time of a page, because an instance has one at a time', () => {
    const pageP50Ms = 4_000;
    expect(plan({ domains: equal(10), pageP50Ms }).paceMs).toBeGreaterThanOrEqual(pageP50Ms);
  });

  it('counts with a part of the time of a page where an instance has several at once, at other domains', () => {
    const slow = { domains: equal(10), pageP50Ms: 4_000 };
    const pages = (pagesAtOnce: number) => plan({ ...slow, pagesAtOnce });
    expect(pages(1)).toEqual(plan(slow));
    expect(pages(2).paceMs).toBeCloseTo(plan(slow).paceMs / 2, 0);
    expect(pages(2).instances).toBeLessThan(plan(slow).instances * 0.6);
    // The pages of one domain come one after the other, and its interval remains.
    expect(pages(64)).toEqual({ ...pages(10), domains: pages(64).domains });
    expect(pages(64).paceMs).toBeGreaterThanOrEqual(1_000);
    expect(pages(4).domains).toEqual({ count: 10, busiestShare: 0.1, pages: 4 });
    const uneven = [0.9, 0.1].map((share) => ({ share, delayMs: 0 }));
    expect(plan({ domains: uneven, pageP50Ms: 60_000, pagesAtOnce: 2 }).paceMs).toBeGreaterThanOrEqual(0.9 * 60_000);
    expect(plan({ pagesAtOnce: 8 })).toEqual(plan());
  });

  it('keeps max_rate over all domains together', () => {
    const maxRatePerSecond = 2;
    const [one, two] = [plan({ maxRatePerSecond }), plan({ maxRatePerSecond, domains: equal(2) })];
    expect(one).toMatchObject({ verdict: 'infeasible' });
    expect(one.faults.join()).toContain('2.2/s together');
    expect(two).toMatchObject({ verdict: 'infeasible' });
    expect(two.faults.join()).toContain('at one request per 10s and domain each, 2.4/s together');
    expect(plan({ products: 20_000, maxRatePerSecond, domains: equal(2) })).toMatchObject({ verdict: 'feasible' });
    // Below the rate of one instance at both domains.
    const slow = plan({ products: 100, maxRatePerSecond: 0.1, domains: equal(2) });
    expect(slow).toMatchObject({ verdict: 'feasible', instances: 1, intervalMs: 20_000 });
  });

  it('F52: plans nothing for no products', () => {
    const p = plan({ products: 0 });
    expect(p).toMatchObject({ verdict: 'feasible', instances: 0, chunks: 0, vcpus: 0, onTimeProbability: 1 });
    expect(p.cost.total).toBe(0);
  });

  it('plans one instance for one product, whatever min_instances', () => {
    expect(plan({ products: 1, minInstances: 5 })).toMatchObject({
      verdict: 'feasible',
      instances: 1,
      productsEach: 1,
    });
  });

  it('gives each instance one product when the interval is longer than the window', () => {
    const p = plan({ products: 3, intervalMs: HOUR, deadlineMs: HOUR / 6 });
    expect(p).toMatchObject({ verdict: 'feasible', instances: 3, productsEach: 1, lowerBoundInstances: 3 });
  });

  it('respects min_instances when fewer would suffice', () => {
    expect(plan({ products: 100, minInstances: 4 })).toMatchObject({ verdict: 'feasible', instances: 4 });
  });

  it('warns when a limit is below min_instances', () => {
    const p = plan({ minInstances: 30, maxInstances: 25 });
    expect(p).toMatchObject({ verdict: 'feasible', instances: 25 });
    expect(p.warnings.join()).toContain('run.max_instances');
  });

  it('uses the page time as the pace where pages are slower than the interval', () => {
    const fast = plan({ intervalMs: 100, products: 100_000 });
    const slow = plan({ intervalMs: 100, products: 100_000, pageP50Ms: 2_000 });
    expect(slow.paceMs).toBeGreaterThanOrEqual(2_000);
    expect(slow.instances).toBeGreaterThan(2 * fast.instances);
  });

  it('plans the balancer in parallel with the boot, not after it', () => {
    expect(plan({ balancerMs: 180_000, bootP95Ms: 120_000 }).rampMs).toBe(60_000);
    expect(plan({ balancerMs: 0 }).rampMs).toBe((plan({ balancerMs: 0 }).instances - 1) * 500);
  });

  it('stretches the interval when the rate limit of the fleet is below one request per interval', () => {
    const p = plan({ products: 100, maxRatePerSecond: 0.05 });
    expect(p).toMatchObject({ verdict: 'feasible', instances: 1, intervalMs: 20_000 });
    expect(p.warnings.join()).toContain('site.max_rate');
  });

  it('plans a million products on about two thousand instances quickly', () => {
    const p = plan({ products: 1_000_000, deadlineMs: HOUR, pageP50Ms: 200, intervalMs: 5_000 });
    expect(p).toMatchObject({ verdict: 'feasible' });
    expect(p.instances).toBeGreaterThan(1_900);
  });
});

describe('planRun over a limit', () => {
  it.each([
    ['run.max_instances', { maxInstances: 10 }, 'infeasible', ['run.max_instances: 22', 'run.max_instances is 10']],
    ['site.max_rate', { maxRatePerSecond: 1 }, 'infeasible', ['site.max_rate: 2.2/s', 'site.max_rate is 1/s']],
    ['the quota', { vcpuQuota: 5 }, 'over-quota', ['aws.vcpu_quota: 44', 'L-1216C47A in ap-northeast-1 is 5']],
    ['run.max_cost', { maxCost: 0.5 }, 'over-budget', ['run.max_cost: 1.', 'run.max_cost is $0.50']],
  ] as const)('names %s, and what would help', (_, change, verdict, [remedy, fault]) => {
    const p = plan(change);
    expect(p.verdict).toBe(verdict);
    expect(p.faults).toHaveLength(1);
    expect(p.faults[0]).toContain(fault);
    expect(p.remedies.some((r) => r.startsWith(remedy))).toBe(true);
  });

  it('names all violated limits together', () => {
    const p = plan({ maxInstances: 10, vcpuQuota: 5, maxCost: 0.5 });
    expect(p.verdict).toBe('infeasible');
    expect(p.faults).toHaveLength(3);
    expect(p.remedies).toHaveLength(1);
  });

  it('reports how many vCPUs are needed and available', () => {
    expect(plan({ vcpuQuota: 5 }).faults[0]).toMatch(/44 vCPUs .* is 5, enough for 2 instances/);
  });

  it('requests a quota for the plan plus the vCPUs in use', () => {
    const quota = { code: 'L-1216C47A', total: 64, inUse: 50, source: 'service-quotas' as const };
    const p = plan({ vcpuQuota: 14, quota });
    expect(p.faults[0]).toMatch(
      /44 vCPUs .* quota L-1216C47A in ap-northeast-1 is 64, of which 50 are in use: 14 are left, enough for 7 instances/,
    );
    expect(p.remedies.join()).toMatch(/a quota of 94 vCPUs .*--quota-code L-1216C47A --desired-value 94 /);
  });

  it('names the quota that counts the type', () => {
    const p = plan({ vcpuQuota: 8, instanceTypes: ['g5.xlarge'] });
    expect(p.faults[0]).toContain('L-DB2E81BA');
    expect(p.remedies.join()).toMatch(/L-DB2E81BA, Running On-Demand G and VT instances.*--quota-code L-DB2E81BA/);
    expect(JSON.stringify(p)).not.toContain('L-1216C47A');
  });

  it.each([
    ['the number of instances', { maxInstances: 10 }],
    ['the rate', { maxRatePerSecond: 0.5 }],
    ['the quota', { vcpuQuota: 5 }],
    ['the start phase alone', { deadlineMs: 60_000 }],
    ['the start phase alone, with a budget', { deadlineMs: 60_000, maxCost: 2 }],
    ['a launch rate that uses up the window', { products: 1_000_000, deadlineMs: HOUR }],
  ] as const)('gives a feasible earliest end when the time is too short for %s', (_, change) => {
    const p = plan(change);
    expect(p.verdict).not.toBe('feasible');
    expect(p.earliestEndMs).not.toBeNull();
    const again = plan({ ...change, deadlineMs: p.earliestEndMs! });
    expect(again.verdict).toBe('feasible');
    expect(p.remedies[0]).toMatch(/^--deadline (\d+[hms])+$/);
  });

  it('has no earliest end when the budget does not cover the instance hours', () => {
    expect(plan({ maxCost: 0.5 }).earliestEndMs).toBeNull();
    expect(plan({ maxCost: 0.5, maxInstances: 3 }).earliestEndMs).toBeNull();
  });

  it('blames a rate limit below the rate of one instance', () => {
    const p = plan(
      { products: 2, deadlineMs: 240_112, intervalMs: 100, pageP50Ms: 1, maxInstances: 1, maxRatePerSecond: 0.05 },
      12,
    );
    expect(p.verdict).toBe('infeasible');
    expect(p.faults).toEqual([expect.stringContaining('site.max_rate is 0.05/s')]);
    expect(p.remedies.join()).toContain('site.max_rate');
  });

  it('has no earliest end when the quota allows no instance', () => {
    expect(plan({ vcpuQuota: 1 })).toMatchObject({ verdict: 'over-quota', earliestEndMs: null });
  });

  it('warns instead of refusing when only the reserve does not fit', () => {
    const slowBoots = { deadlineMs: 3 * HOUR, bootP95Ms: 600_000, products: 20_000 };
    const wanted = plan(slowBoots).instances;
    const p = plan({ ...slowBoots, maxInstances: wanted - 1 });
    expect(p.verdict).toBe('feasible');
    expect(p.instances).toBeLessThan(wanted);
    expect(p.onTimeProbability).toBeLessThan(0.999);
    expect(p.warnings.join()).toContain('reserve');
  });

  it('counts the worst case against the budget, not the estimate', () => {
    const estimate = plan().cost.total;
    expect(plan({ maxCost: estimate }).verdict).toBe('over-budget');
    expect(plan({ maxCost: estimate * 1.2 }).verdict).toBe('feasible');
  });
});

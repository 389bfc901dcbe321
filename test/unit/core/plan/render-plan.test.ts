import { describe, expect, it } from 'vitest';
import { renderPlan, startInWords } from '../../../../orchestrator/core/plan/render-plan.ts';
import { plan } from '../../../support/plan-input.ts';

describe('renderPlan', () => {
  it('shows the fleet, its finish, its price and the lower bound', () => {
    const text = renderPlan(plan({ vcpuQuota: 64 }), 5);
    expect(text).toContain('22 x t4g.nano (lower bound 21)');
    expect(text).toContain('44 of 64 in the quota, 20 left');
    expect(text).toMatch(/cost +about \$1\.\d\d, cap \$5\.00/);
    expect(text).toMatch(/on time in 99\.9\d %/);
    expect(text).toContain('This fits.');
  });

  it('says in one sentence what is about to start', () => {
    const p = plan({});
    const nowMs = Date.UTC(2026, 10, 27, 1);
    expect(startInWords(p, false, nowMs)).toMatch(
      /^On AWS, for about \$1\.\d\d: 30,000 products with 22 instances \(t4g\.nano\), probably over by 2026-11-27 0\d:\d\d UTC, deadline 2026-11-27 05:00 UTC\.$/,
    );
    expect(startInWords(p, true, nowMs)).toMatch(
      /^Dry run on this machine, which costs nothing: 30,000 products with /,
    );
  });

  it('says what several domains of the shop add', () => {
    const domains = [
      { share: 2 / 3, delayMs: 0 },
      { share: 1 / 3, delayMs: 0 },
    ];
    const text = renderPlan(plan({ domains }), 5);
    expect(text).toContain('one request per 10s, domain and address');
    expect(text).toContain('2 at the same time; the busiest has 66.66 % of the products');
    expect(text).toContain('(lower bound 14)');
  });

  it('shows the violated limits and the remedies', () => {
    const p = plan({ maxInstances: 10 });
    const text = renderPlan(p, null);
    expect(text).toContain('run.max_instances is 10');
    expect(text).toContain('What would help, either of:');
    for (const remedy of p.remedies) expect(text).toContain(remedy);
  });

  it('is short for no products', () => {
    expect(renderPlan(plan({ products: 0 }), null)).toBe('products      0\n\nNothing to crawl.');
  });

  it.each([
    {},
    { maxInstances: 3, vcpuQuota: 5, maxCost: 0.1, maxRatePerSecond: 0.01 },
    { deadlineMs: 60_000 },
    { region: 'sa-east-1', minInstances: 30, maxInstances: 25 },
    { products: 1_000_000 },
    { domains: Array.from({ length: 10 }, () => ({ share: 0.1, delayMs: 0 })) },
    { domains: Array.from({ length: 10 }, () => ({ share: 0.1, delayMs: 0 })), pagesAtOnce: 8 },
  ])('stays within 80 columns for %o', (change) => {
    const lines = renderPlan(plan(change), 0.1).split('\n');
    expect(Math.max(...lines.map((l) => l.length))).toBeLessThanOrEqual(80);
  });
});

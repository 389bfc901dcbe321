import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../shared/adapters/random.ts';
import { hostGapMs } from '../../../../shared/domain/host-policy.ts';
import { costOfRecord, nightOfHost, nightOfHosts, nightRulesOf } from '../../../../orchestrator/core/plan/host-sums.ts';
import { planRun } from '../../../../orchestrator/core/plan/plan-run.ts';
import type { Plan, PlanInput } from '../../../../orchestrator/core/plan/plan.ts';
import { hosts, renderPlan, tonight } from '../../../../orchestrator/core/plan/render-plan.ts';
import { HOUR, planInput } from '../../../support/plan-input.ts';

const SECOND = 1_000;
const RULES = { windowMs: 4 * HOUR, intervalMs: 15 * SECOND, requestsEach: 1 };
const host = (records: number, delayMs = 0) => ({ records, delayMs });
const many = (count: number, records: number) => Array.from({ length: count }, () => host(records));

describe('what a night can do of one host', () => {
  it('is all of a short one, and its robots.txt', () => {
    expect(nightOfHost(host(3), RULES)).toEqual({ records: 3, requests: 4, lengthMs: 3 * hostGapMs(15 * SECOND, 0) });
  });

  it('is what its pace leaves room for, less an hourly robots.txt', () => {
    const { records, requests, lengthMs } = nightOfHost(host(5_000), RULES);
    // A twentieth of the window is kept free: 902 requests of 15.15 s, four of them for robots.txt.
    expect(records).toBe(1 + Math.floor((0.95 * RULES.windowMs) / 15_150) - 4);
    expect(requests).toBe(records + 4);
    expect(lengthMs).toBeLessThanOrEqual(0.95 * RULES.windowMs);
  });

  it('is less with a Crawl-delay, and with several requests for each record', () => {
    const { records } = nightOfHost(host(5_000), RULES);
    expect(nightOfHost(host(5_000, 60 * SECOND), RULES).records).toBeLessThan(records / 3.9);
    expect(nightOfHost(host(5_000), { ...RULES, requestsEach: 2 }).records).toBe(Math.floor(records / 2));
  });

  it('is nothing where robots.txt takes all requests, or the window is over', () => {
    expect(nightOfHost(host(5), { ...RULES, intervalMs: HOUR }).records).toBe(0);
    expect(nightOfHost(host(5), { ...RULES, windowMs: -1 })).toEqual({ records: 0, requests: 0, lengthMs: 0 });
  });
});

describe('what a night can do of a list', () => {
  it('says what it leaves, at how many hosts, and for how many nights', () => {
    const night = nightOfHosts([host(5_000), ...many(10, 2)], RULES);
    expect(night).toMatchObject({ hosts: 11, listed: 5_020, cutHosts: 1, nights: 6 });
    expect(night.records).toBe(nightOfHost(host(5_000), RULES).records + 20);
    expect(tonight(night)).toBe('919 of 5,020 tonight');
    expect(hosts(night)).toBe(
      '11; 1 has more than a night allows at its pace, whatever the fleet: the largest takes 6 nights',
    );
  });

  it('takes as long as its longest host', () => {
    expect(nightOfHosts([host(10), host(3)], RULES).longestMs).toBe(10 * hostGapMs(15 * SECOND, 0));
    expect(nightOfHosts([], RULES)).toMatchObject({ records: 0, longestMs: 0, nights: 0 });
  });

  it('counts what hosts without an answer cost in time, and no requests of theirs', () => {
    const alive = costOfRecord(nightOfHosts(many(100, 2), RULES));
    expect(alive).toEqual({ requestsEach: 1.5, deadMs: 0 });
    const dead = costOfRecord(nightOfHosts(many(100, 2), RULES, 0.2));
    expect(dead.requestsEach).toBeCloseTo(1.2);
    // Twenty hosts keep a place for four times five seconds each.
    expect(dead.deadMs).toBeCloseTo((20 * 20 * SECOND) / 200);
  });
});

describe('the plan for many hosts', () => {
  const planFor = (loads: ReturnType<typeof many>, change: Partial<PlanInput> = {}): Plan => {
    const base = planInput({ intervalMs: 15 * SECOND, pagesAtOnce: 8, ...change });
    const night = nightOfHosts(loads, nightRulesOf(base));
    return planRun({ ...base, products: night.records, hosts: night }, seededRandom(1));
  };

  it('has as many instances as keep up, and more of them do not end a long host sooner', () => {
    const few = planFor(many(50, 500));
    expect(few).toMatchObject({ verdict: 'feasible', instances: 1, products: 25_000 });
    const fleet = planFor(many(50, 500), { minInstances: 8 });
    expect(fleet.instances).toBe(8);
    expect(few.endP50Ms).toBeGreaterThan(500 * hostGapMs(15 * SECOND, 0));
    expect(Math.abs(fleet.endP50Ms - few.endP50Ms)).toBeLessThan(60 * SECOND);
  });

  it('takes more instances for more hosts, fewer for more places, and more for hosts without an answer', () => {
    const of = (change: Partial<PlanInput>, count = 100_000): number => planFor(many(count, 4), change).instances;
    expect(of({}, 200_000)).toBeGreaterThan(1.8 * of({}));
    expect(of({ pagesAtOnce: 16 })).toBeLessThan(0.6 * of({}));
    const base = planInput({ intervalMs: 15 * SECOND, pagesAtOnce: 8 });
    const night = nightOfHosts(many(100_000, 4), nightRulesOf(base), 0.3);
    expect(planRun({ ...base, products: night.records, hosts: night }, seededRandom(1)).instances).toBeGreaterThan(
      of({}),
    );
  });

  it('is on time as a longest host of the whole window is', () => {
    expect(planFor([host(100_000)])).toMatchObject({ verdict: 'feasible', instances: 1 });
  });

  it('says in words what the night does, at which pace', () => {
    const text = renderPlan(planFor([host(100_000), ...many(20, 1)]));
    expect(text).toMatch(/^records +904 of 100,020 tonight$/m);
    expect(text).toMatch(/^hosts +21; 1 has more than a night allows at its pace, whatever the$/m);
    expect(text).toMatch(/^pace +one request per 15s and host \(planned with \d+ms a record\)$/m);
  });
});

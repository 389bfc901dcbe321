import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LOSS_REASON } from '../../../orchestrator/core/model/loss-reason.ts';
import {
  affordable,
  billWith,
  canAfford,
  isShortOfMoney,
  spendingOf,
} from '../../../orchestrator/core/decide/launches/budget.ts';
import { admitLaunches } from '../../../orchestrator/core/decide/launches/launch-admission.ts';
import type { Action } from '../../../orchestrator/core/model/actions.ts';
import { drainAtMs, powerOffAtMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import type { InstanceRecord, RunRecord } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { costOfRun } from '../../../orchestrator/core/decide/end/cost-of-run.ts';
import { workersOf } from '../../../orchestrator/core/decide/shares/workers.ts';
import { actualCost } from '../../../orchestrator/core/plan/prices.ts';
import { aClaim, anInstance, aPlan, aRefusal, aRun, aWorld, START_MS, type WorldChange } from './builders.ts';

const HOUR_MS = 3_600_000;
/** t4g.nano in Tokyo with its IPv4 address and volume, without requests to S3. */
const NANO_HOUR = 0.0054 + 0.005 + (8 * 0.096) / 730;

const runWith = (maxCost: number | null): RunRecord => {
  const run = aRun();
  return { ...run, settings: { ...run.settings, run: { ...run.settings.run, maxCost } } };
};

const world = (maxCost: number | null, instances: InstanceRecord[], atMs = 0, change: WorldChange = {}): World =>
  aWorld({ run: runWith(maxCost), instances, nowMs: START_MS + atMs, ...change });

const three = (change: Partial<InstanceRecord> = {}): InstanceRecord[] => [0, 1, 2].map((s) => anInstance(s, change));

describe('spending', () => {
  it('F45: counts the running instances, and one more, until the end of the grace period', () => {
    const hours = 4 + 1 / 6;
    const { committed, each } = spendingOf(world(1, three()));
    expect(each).toBeCloseTo(hours * NANO_HOUR, 2);
    expect(committed).toBeCloseTo(3 * hours * NANO_HOUR + 5 * (0.0243 + 0.02 * 0.008), 2);
  });

  it('counts the public addresses of the balancer until that time, once', () => {
    const internal = spendingOf(world(1, three()));
    const run = runWith(1);
    const aws = { ...run.settings.aws, balancerScheme: 'internet-facing' as const };
    const facing = spendingOf(world(1, three(), 0, { run: { ...run, settings: { ...run.settings, aws } } }));
    expect(facing.each).toBeCloseTo(internal.each, 6);
    expect(facing.committed - internal.committed).toBeCloseTo(2 * (4 + 1 / 6) * 0.005, 4);
  });

  it('counts an ended instance by its real lifetime, and a claim as a running instance', () => {
    const ended = { phase: 'terminated' as const, terminatedAtMs: START_MS + HOUR_MS };
    const base = spendingOf(world(1, []));
    expect(spendingOf(world(1, [anInstance(0, ended)])).committed - base.committed).toBeCloseTo(NANO_HOUR, 2);
    expect(spendingOf(world(1, [aClaim(1)])).committed - base.committed).toBeCloseTo(base.each, 4);
    expect(spendingOf(world(1, [aRefusal(2, 'pool', START_MS)])).committed).toBe(base.committed);
  });

  it('counts an unanswered launch until it is known to have failed', () => {
    const answer = { kind: 'unknown', message: 'timeout' } as const;
    const with0 = (phase: 'lost' | 'terminated') =>
      spendingOf(world(1, [anInstance(0, { phase, instanceId: null, answer, attempts: 2 })])).committed;
    const base = spendingOf(world(1, [])).committed;
    expect(with0('lost')).toBeGreaterThan(base);
    expect(with0('terminated')).toBe(base);
  });

  it('is lower for a later launch, and higher for a larger type', () => {
    const early = spendingOf(world(1, []));
    expect(spendingOf(world(1, [], 2 * HOUR_MS)).each).toBeLessThan(early.each * 0.6);
    expect(spendingOf(world(1, []), { instanceType: 't4g.small' }).each).toBeGreaterThan(early.each);
  });
});

describe('a run of several regions', () => {
  const region = aRun().settings.aws.region;
  const place = { subnets: [], securityGroups: [], image: null, loadBalancer: null };
  const share = { vcpus: 0, vcpuQuota: null, cost: 0 };
  /** The bucket is in the first region; the plan has instances in the first two. */
  const REGIONS = [region, 'us-east-1', 'eu-west-1'];
  const over = (maxCost: number | null): RunRecord => {
    const run = runWith(maxCost);
    const aws = { ...run.settings.aws, regions: REGIONS.map((name) => ({ region: name, ...place })) };
    const regions = [
      { region, instances: 1, ...share },
      { region: 'us-east-1', instances: 2, ...share },
    ];
    return { ...run, settings: { ...run.settings, aws }, plan: { ...run.plan, instances: 3, regions } };
  };
  const eachIn = (there: string): number =>
    spendingOf(world(1, [], 0, { run: over(1) }), { region: there, instanceType: 't4g.nano' }).each;

  it('counts a launch at the price of its region, with the bundle that it fetches from another one', () => {
    const hours = 4 + 1 / 6;
    const dearer = hours * (0.0054 - 0.0042);
    const volume = (hours * 8 * (0.096 - 0.08)) / 730;
    const traffic = 0.05 * 0.09 + aRun().planned * 0.000_001 * 0.02;
    // Both are rounded to a hundredth of a cent.
    const saved = eachIn(region) - eachIn('us-east-1');
    expect(Math.abs(saved - (dearer + volume - traffic))).toBeLessThan(1e-4);
  });

  it('counts the load balancer of a region for which the plan has none, once', () => {
    const run = over(1);
    const { committed, each } = spendingOf(world(1, [], 0, { run }), { region: 'eu-west-1' });
    expect(each - eachIn('us-east-1')).toBeGreaterThan(5 * 0.02);
    const there = anInstance(0);
    const one = [{ ...there, request: { ...there.request, region: 'eu-west-1' } }];
    const second = spendingOf(world(1, one, 0, { run }), { region: 'eu-west-1' });
    expect(second.committed).toBeCloseTo(committed + each, 3);
    expect(second.each).toBeLessThan(each - 5 * 0.02);
  });

  it('counts a claim before its pool is known in the region for which the plan has the slot', () => {
    const claims = [0, 1].map((slot): Action => ({ kind: 'claim', slot, epoch: 1, pool: null }));
    const known = billWith(world(1, [], 0, { run: over(1) }), { region }, { region: 'us-east-1' });
    const admitted = (cap: number) =>
      admitLaunches(world(cap, [], 0, { run: over(cap), pools: null }), claims).filter((a) => a.kind === 'claim');
    expect(admitted(known + 1e-5)).toEqual(claims);
    expect(admitted(known - 1e-5)).toEqual(claims.slice(0, 1));
  });

  it('I5: the bill never exceeds the cap, in whichever region launches are admitted', () => {
    const steps = fc.array(
      fc.record({
        there: fc.constantFrom(...REGIONS),
        waitMs: fc.integer({ min: 0, max: HOUR_MS }),
        lifeMs: fc.integer({ min: 1, max: 6 * HOUR_MS }),
      }),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(steps, fc.double({ min: 0.3, max: 1, noNaN: true }), (launches, cap) => {
        const run = over(cap);
        const endMs = powerOffAtMs(run);
        const all: InstanceRecord[] = [];
        let nowMs = START_MS;
        for (const [slot, { there, waitMs, lifeMs }] of launches.entries()) {
          nowMs = Math.min(endMs, nowMs + waitMs);
          const now = aWorld({ run, instances: seenAt(all, nowMs), nowMs });
          const pool = { region: there, subnetId: 's', instanceType: 't4g.nano' };
          const claim: Action = { kind: 'claim', slot, epoch: 1, pool };
          if (!admitLaunches(now, [claim]).includes(claim)) continue;
          const terminatedAtMs = Math.min(endMs, nowMs + lifeMs);
          const launched = anInstance(slot, { launchedAtMs: nowMs, claimedAtMs: nowMs, terminatedAtMs });
          all.push({ ...launched, request: { ...launched.request, region: there } });
        }
        const end = all.map((r): InstanceRecord => ({ ...r, phase: 'terminated' }));
        const { actual } = costOfRun({ ...run, finishedAtMs: endMs }, end, 0, endMs);
        return actual.total <= cap + 1e-5 * (launches.length + 1);
      }),
    );
  });
});

/** As the rows were before the instances ended that are alive at this moment. */
const seenAt = (all: readonly InstanceRecord[], nowMs: number): InstanceRecord[] =>
  all.map((r) => (r.terminatedAtMs! > nowMs ? { ...r, terminatedAtMs: null } : { ...r, phase: 'terminated' }));

describe('canAfford', () => {
  it('allows everything without a cap, and nothing beyond it', () => {
    expect(
      affordable(
        world(null, three()),
        Array.from({ length: 1_000 }, (_, i) => i),
      ),
    ).toBe(1_000);
    const { committed, each } = spendingOf(world(1, three()));
    const cap = committed + 2.5 * each;
    expect(affordable(world(cap, three()), [3, 4])).toBe(2);
    expect(affordable(world(cap, three()), [3, 4, 5])).toBe(2);
  });

  it('I5: the bill never exceeds the cap, whatever is launched while it returns true', () => {
    const steps = fc.array(
      fc.record({ waitMs: fc.integer({ min: 0, max: HOUR_MS }), lifeMs: fc.integer({ min: 1, max: 6 * HOUR_MS }) }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(steps, fc.double({ min: 0.1, max: 1, noNaN: true }), (launches, cap) => {
        const run = runWith(cap);
        const endMs = powerOffAtMs(run);
        const all: InstanceRecord[] = [];
        let nowMs = START_MS;
        for (const [slot, { waitMs, lifeMs }] of launches.entries()) {
          nowMs = Math.min(endMs, nowMs + waitMs);
          if (!canAfford(aWorld({ run, instances: seenAt(all, nowMs), nowMs }), slot)) continue;
          const terminatedAtMs = Math.min(endMs, nowMs + lifeMs);
          all.push(anInstance(slot, { launchedAtMs: nowMs, claimedAtMs: nowMs, terminatedAtMs }));
        }
        const bill = actualCost({
          region: run.settings.aws.region,
          instances: all.map((r) => ({
            instanceType: 't4g.nano',
            launchedAtMs: r.launchedAtMs!,
            endedAtMs: r.terminatedAtMs!,
          })),
          startedAtMs: START_MS,
          finishedAtMs: endMs,
          products: run.planned,
        });
        // A millionth of a dollar of rounding for each of its five parts.
        return bill.total <= cap + 1e-5 * (launches.length + 1);
      }),
    );
  });
});

describe('isShortOfMoney', () => {
  const lost = (slot: number): InstanceRecord =>
    anInstance(slot, { phase: 'terminated', reason: LOSS_REASON.silent, terminatedAtMs: START_MS + HOUR_MS });
  const atEnd = drainAtMs(aRun()) - START_MS + 1;
  const capBelowOneMore = (): number => {
    const then = world(1, [anInstance(0), lost(1)], HOUR_MS);
    const { committed, each } = spendingOf(then);
    return committed + each / 2;
  };

  it('F45: reports at the end that a lost slot could not be afforded when it became free', () => {
    const plan = { ...aRun().plan, instances: 2 };
    const end = (maxCost: number | null): World =>
      world(maxCost, [anInstance(0), lost(1)], atEnd, { run: { ...runWith(maxCost), plan } });
    expect(isShortOfMoney(end(capBelowOneMore()))).toBe(true);
    expect(isShortOfMoney(end(1))).toBe(false);
    expect(isShortOfMoney(end(null))).toBe(false);
  });

  it('does not blame the budget for a slot that was lost too late, nor for one that was not needed', () => {
    const cap = capBelowOneMore();
    const late = drainAtMs(aRun()) - 1_000;
    const run = { ...runWith(cap), plan: { ...aRun().plan, instances: 1 } };
    for (const change of [
      { reason: LOSS_REASON.silent, terminatedAtMs: late },
      { reason: LOSS_REASON.notNeeded, terminatedAtMs: START_MS + 1 },
    ]) {
      const instances = [anInstance(0, { phase: 'terminated', ...change })];
      expect(isShortOfMoney(aWorld({ run, instances, nowMs: START_MS + atEnd }))).toBe(false);
    }
  });
});

it('sums up as many bills for many empty slots as for few', () => {
  const billsFor = (slots: number): number => {
    let bills = 0;
    const plan = Object.defineProperty(aPlan({ instances: slots }), 'prices', { get: () => void bills++ });
    workersOf(world(1_000, [anInstance(0)], 0, { run: { ...runWith(1_000), plan } }));
    return bills;
  };
  expect(billsFor(200)).toBeGreaterThan(0);
  expect(billsFor(200)).toBe(billsFor(20));
});

it('visits each row once for any number of launches', () => {
  let visits = 0;
  const rows = Array.from({ length: 40 }, (_, slot) => {
    const { launchedAtMs, ...row } = anInstance(slot);
    return Object.defineProperty(row as InstanceRecord, 'launchedAtMs', {
      get: () => (visits++, launchedAtMs),
      enumerable: true,
    });
  });
  const visitsFor = (launches: number): number => {
    visits = 0;
    const now = world(1_000, rows);
    const slots = Array.from({ length: launches }, (_, i) => rows.length + i);
    const claims = slots.map((slot): Action => ({ kind: 'claim', slot, epoch: 1, pool: null }));
    expect(affordable(now, slots)).toBe(launches);
    for (const slot of slots) expect(canAfford(now, slot)).toBe(true);
    expect(admitLaunches(now, claims).filter((a) => a.kind === 'claim')).toHaveLength(launches);
    return visits;
  };
  expect(visitsFor(1)).toBeGreaterThan(0);
  expect(visitsFor(200)).toBe(visitsFor(1));
});

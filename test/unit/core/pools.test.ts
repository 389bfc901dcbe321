import { describe, expect, it } from 'vitest';
import { LOSS_REASON } from '../../../orchestrator/core/model/loss-reason.ts';
import type { Pool, Pools } from '../../../orchestrator/core/model/launch-history.ts';
import { dryUntilMs, isTrial, nextPool, poolsFor } from '../../../orchestrator/core/decide/launches/pools.ts';
import type { RefusalCause } from '../../../orchestrator/core/cloud/compute.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { admitLaunches } from '../../../orchestrator/core/decide/launches/launch-admission.ts';
import type { Action } from '../../../orchestrator/core/model/actions.ts';
import { launchGate } from '../../../orchestrator/core/decide/launches/launch-gate.ts';
import { anInstance, aPlan, aRefusal, aRun, aWorld, START_MS, type WorldChange } from './builders.ts';

const REGION = 'ap-northeast-1';
const POOLS: Pools = {
  regions: [{ name: REGION, subnetIds: ['a', 'c', 'd'] }],
  instanceTypes: ['t4g.nano', 't4g.small'],
};
const NANO_A: Pool = { region: REGION, subnetId: 'a', instanceType: 't4g.nano' };
const NANO_C: Pool = { region: REGION, subnetId: 'c', instanceType: 't4g.nano' };
const DRY_MS = 180_000;

const inPool = (slot: number, pool: Pool, change: Partial<InstanceRecord>): InstanceRecord => {
  const record = anInstance(slot, change);
  return { ...record, request: { ...record.request, ...pool } };
};

const refused = (slot: number, pool: Pool, atMs: number, cause: RefusalCause = 'pool'): InstanceRecord =>
  inPool(slot, pool, aRefusal(slot, cause, START_MS + atMs));

const world = (instances: InstanceRecord[], atMs: number, change: WorldChange = {}): World =>
  aWorld({ instances, nowMs: START_MS + atMs, pools: POOLS, ...change });

const everyPool = (atMs: number): InstanceRecord[] =>
  poolsFor(POOLS, 0).map((pool, slot) => refused(slot, pool, atMs + slot));

describe('poolsFor', () => {
  it('starts each slot in a different subnet and tries all subnets before the next type', () => {
    expect(poolsFor(POOLS, 1).map((p) => `${p.instanceType} ${p.subnetId}`)).toEqual([
      't4g.nano c',
      't4g.nano d',
      't4g.nano a',
      't4g.small c',
      't4g.small d',
      't4g.small a',
    ]);
  });
});

describe('nextPool', () => {
  it('leaves the choice to the claim while the pools are unknown', () => {
    expect(nextPool(world([], 0, { pools: null }), 0)).toEqual({ kind: 'pool', pool: null });
  });

  it('F5: skips a dry pool for three minutes of a four-hour run, for every slot', () => {
    const instances = [refused(3, NANO_A, 0)];
    expect(nextPool(world(instances, DRY_MS - 1), 0)).toEqual({ kind: 'pool', pool: NANO_C });
    expect(nextPool(world(instances, DRY_MS), 0)).toEqual({ kind: 'pool', pool: NANO_A });
  });

  it('F5: with every pool dry, waits for the first that is due', () => {
    expect(nextPool(world(everyPool(0), 60_000), 2)).toEqual({ kind: 'wait' });
  });

  it('does not try a dry pool with a second slot before the first has its result', () => {
    const asked = inPool(4, NANO_A, { phase: 'claimed', instanceId: null, launchedAtMs: null, attempts: 0 });
    const instances = [...everyPool(0), { ...asked, claimedAtMs: START_MS + DRY_MS }];
    expect(nextPool(world(instances, DRY_MS), 0)).toMatchObject({ kind: 'wait' });
  });

  it('F34: never reuses the subnet in which the slot shared an address', () => {
    const one: Pools = { regions: [{ name: REGION, subnetIds: ['a'] }], instanceTypes: ['t4g.nano'] };
    const shared = inPool(0, NANO_A, { phase: 'terminated', reason: LOSS_REASON.sharedAddress });
    expect(nextPool(world([shared], 0), 0)).toEqual({ kind: 'pool', pool: NANO_C });
    expect(nextPool(world([shared], 0, { pools: one }), 0)).toEqual({ kind: 'none' });
    expect(nextPool(world([shared], 0), 3)).toEqual({ kind: 'pool', pool: NANO_A });
  });

  it('F13: prefers another subnet after an instance that never became healthy', () => {
    const one: Pools = { regions: [{ name: REGION, subnetIds: ['a'] }], instanceTypes: ['t4g.nano'] };
    const unfit = inPool(0, NANO_A, { phase: 'terminated', reason: LOSS_REASON.neverHealthy });
    expect(nextPool(world([unfit], 0), 0)).toEqual({ kind: 'pool', pool: NANO_C });
    expect(nextPool(world([unfit], 0, { pools: one }), 0)).toEqual({ kind: 'pool', pool: NANO_A });
  });
});

describe('the pools of several regions', () => {
  const SECOND = 'eu-west-1';
  const pools: Pools = {
    regions: [
      { name: REGION, subnetIds: ['a'] },
      { name: SECOND, subnetIds: ['x'] },
    ],
    instanceTypes: ['t4g.nano'],
  };
  const share = (region: string, instances: number) => ({ region, instances, vcpus: 0, vcpuQuota: null, cost: 0 });
  const plan = aPlan({ instances: 3, regions: [share(REGION, 1), share(SECOND, 2)] });
  const { settings } = aRun();
  const there = (region: string, maxInstances = 9) => ({
    region,
    subnets: [],
    securityGroups: [],
    image: null,
    loadBalancer: null,
    maxInstances,
  });
  const over = (instances: InstanceRecord[], most?: number): World => {
    const aws = { ...settings.aws, regions: [there(REGION, most), there(SECOND, most)] };
    return world(instances, 0, { pools, run: aRun({ plan, settings: { ...settings, aws } }) });
  };
  const placeOf = (given: World, slot: number) => {
    const next = nextPool(given, slot);
    return next.kind === 'pool' ? next.pool?.region : next.kind;
  };
  const up = (slot: number, region: string) => inPool(slot, { region, subnetId: 's', instanceType: 't4g.nano' }, {});

  it('are tried from the region for which the plan has the slot; slots beyond the plan are spread as it is', () => {
    const given = over([]);
    expect([0, 1, 2, 3, 4].map((slot) => placeOf(given, slot))).toEqual([REGION, SECOND, SECOND, REGION, SECOND]);
  });

  it('are passed over in a region that is out, or has its most instances', () => {
    const given = over([]);
    given.regions[1]!.isOut = true;
    expect(placeOf(given, 1)).toBe(REGION);
    expect(placeOf(over([up(1, SECOND)], 1), 2)).toBe(REGION);
    expect(placeOf(over([up(0, REGION), up(1, SECOND)], 1), 2)).toBe('wait');
  });

  it('get no more claims in one round than their region has room for', () => {
    const given = over([up(0, REGION)], 2);
    const wishes = [1, 2, 3].map((slot): Action => {
      return { kind: 'claim', slot, epoch: 1, pool: { region: REGION, subnetId: 'a', instanceType: 't4g.nano' } };
    });
    expect(admitLaunches(given, wishes)).toEqual(wishes.slice(0, 1));
  });

  it('wait for the quota of their own region only', () => {
    const refusal = aRefusal(1, 'quota', START_MS);
    const given = over([{ ...refusal, request: { ...refusal.request, region: SECOND } }]);
    expect(placeOf(given, 1)).toBe(REGION);
    expect(launchGate(given, given.regions[0])).toBe('open');
    expect(launchGate(given, given.regions[1]!)).toBe('held');
  });
});

describe('a dry pool', () => {
  const until = (instances: InstanceRecord[]): number | null => {
    const untilMs = dryUntilMs(world(instances, 0), NANO_A);
    return untilMs === null ? null : untilMs - START_MS;
  };

  it('is skipped for longer each time it is still dry, up to four times as long', () => {
    const at = [0, 180_000, 540_000, 1_300_000, 2_100_000];
    const rounds = at.map((_, i) => at.slice(0, i + 1).map((atMs, slot) => refused(slot, NANO_A, atMs)));
    expect(rounds.map((r, i) => until(r)! - at[i]!)).toEqual([1, 2, 4, 4, 4].map((n) => n * DRY_MS));
  });

  it('is skipped no longer after many refusals at once than after one', () => {
    const many = Array.from({ length: 20 }, (_, slot) => refused(slot, NANO_A, slot * 500));
    expect(until(many)).toBe(19 * 500 + DRY_MS);
  });

  it('is reset once it has provided an instance', () => {
    const given = inPool(9, NANO_A, { launchedAtMs: START_MS + 400_000 });
    const before = [refused(0, NANO_A, 0), refused(1, NANO_A, 200_000)];
    expect(isTrial(world(before, 0), NANO_A)).toBe(true);
    expect(isTrial(world([...before, given], 0), NANO_A)).toBe(false);
    expect(until([...before, given])).toBeNull();
    expect(until([...before, given, refused(2, NANO_A, 500_000)])).toBe(500_000 + DRY_MS);
  });

  it('does not become dry through a refusal for another cause', () => {
    expect(until([refused(0, NANO_A, 0, 'quota')])).toBeNull();
  });
});

import { describe, expect, it } from 'vitest';
import { LOSS_REASON } from '../../../orchestrator/control/model/loss-reason.ts';
import type { Pool, Pools } from '../../../orchestrator/control/model/launch-history.ts';
import { dryUntilMs, isTrial, nextPool, poolsFor } from '../../../orchestrator/control/launching/pools.ts';
import type { RefusalCause } from '../../../orchestrator/cloud/compute.ts';
import type { InstanceRecord } from '../../../orchestrator/control/model/stores.ts';
import type { World } from '../../../orchestrator/control/model/world.ts';
import { anInstance, aRefusal, aWorld, START_MS, type WorldChange } from './builders.ts';

const POOLS: Pools = { subnetIds: ['a', 'c', 'd'], instanceTypes: ['t4g.nano', 't4g.small'] };
const NANO_A: Pool = { subnetId: 'a', instanceType: 't4g.nano' };
const NANO_C: Pool = { subnetId: 'c', instanceType: 't4g.nano' };
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
    const one: Pools = { subnetIds: ['a'], instanceTypes: ['t4g.nano'] };
    const shared = inPool(0, NANO_A, { phase: 'terminated', reason: LOSS_REASON.sharedAddress });
    expect(nextPool(world([shared], 0), 0)).toEqual({ kind: 'pool', pool: NANO_C });
    expect(nextPool(world([shared], 0, { pools: one }), 0)).toEqual({ kind: 'none' });
    expect(nextPool(world([shared], 0), 3)).toEqual({ kind: 'pool', pool: NANO_A });
  });

  it('F13: prefers another subnet after an instance that never became healthy', () => {
    const one: Pools = { subnetIds: ['a'], instanceTypes: ['t4g.nano'] };
    const unfit = inPool(0, NANO_A, { phase: 'terminated', reason: LOSS_REASON.neverHealthy });
    expect(nextPool(world([unfit], 0), 0)).toEqual({ kind: 'pool', pool: NANO_C });
    expect(nextPool(world([unfit], 0, { pools: one }), 0)).toEqual({ kind: 'pool', pool: NANO_A });
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

/**
 * Rows of the fault matrix about launches and the life of a slot: whole runs by the real control loop, with an EC2 in
 * memory that fails as the real one does. Limits are those of a run of eight minutes.
 */
import { describe, expect, it } from 'vitest';
import { limitsFor } from '../../../shared/domain/limits.ts';
import type { Compute, LaunchResult } from '../../../orchestrator/cloud/compute.ts';
import { spendingOf } from '../../../orchestrator/control/launching/budget.ts';
import { aWorld } from '../../unit/control/builders.ts';
import type { RunShape } from './run-stage.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { WholeRun } from './whole-run.ts';

const SMALL: RunShape = { products: 40, instances: 3, chunkSize: 2, intervalMs: 200 };
/** Long enough for a test to act in the middle of it. */
const SLOW: RunShape = { products: 120, instances: 3, chunkSize: 2, intervalMs: 1_000 };
const LIMITS = limitsFor(480_000);
const VISIBLE_MS = 60_000;

let whole: WholeRun;

const calls = (name: keyof Compute): number => whole.cloud.compute.calls.filter((c) => c.name === name).length;
const NO_MACHINE = { kind: 'refused', cause: 'pool', message: 'InsufficientInstanceCapacity' } as const;
const setQuota = (quota: number): void => {
  const { compute } = whole.cloud;
  const refusal = { kind: 'refused', cause: 'quota', message: 'VcpuLimitExceeded' } as const;
  compute.refusalOf = () => (compute.alive().length < quota ? null : refusal);
};
const alarms = (): string => whole.server!.alarms.join('\n');

describe('a launch without an answer', () => {
  it('F1: whose instance is visible only after half a minute is adopted, and no second one is launched', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.behaviour.invisibleMs = 30_000;
    whole.cloud.compute.launchFaults.push('reply-lost', 'reply-lost', 'reply-lost', 'reply-lost');
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });

  it('F2: is repeated with the token of the first call', async () => {
    whole = await WholeRun.open(SMALL);
    const nothing: LaunchResult = { kind: 'unknown', message: 'socket hang up' };
    whole.cloud.compute.launchFaults.push(nothing, nothing, nothing, nothing);
    await whole.play();
    await expectAllStored(whole);
    const launches = whole.cloud.compute.calls.filter((c) => c.name === 'launch');
    expect(launches).toHaveLength(7);
    expect(new Set(launches.map((c) => c.detail)).size).toBe(3);
  });

  it('F2: whose retry is refused is adopted when its tags appear: the refusal proves nothing about the first call', async () => {
    whole = await WholeRun.open({ ...SLOW, instances: 1, intervalMs: 500 });
    whole.cloud.compute.behaviour.invisibleMs = 5_000;
    whole.cloud.compute.launchFaults.push('reply-lost', {
      kind: 'refused',
      cause: 'quota',
      message: 'VcpuLimitExceeded',
    });
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1']);
  });

  it('F9: whose token is used is adopted when its tags appear', async () => {
    whole = await WholeRun.open(SMALL);
    const { compute } = whole.cloud;
    const launch = compute.launch.bind(compute);
    compute.launch = async (request) => {
      Reflect.deleteProperty(compute, 'launch');
      await launch(request);
      return { kind: 'unknown', message: 'IdempotentParameterMismatch', tokenUsed: true };
    };
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });

  it('F9: whose token is used and has no visible instance gets a new epoch after the minute of possible invisibility', async () => {
    whole = await WholeRun.open({ ...SLOW, instances: 1, intervalMs: 500 });
    whole.cloud.compute.launchFaults.push({ kind: 'unknown', message: 'IdempotentParameterMismatch', tokenUsed: true });
    await whole.start();
    const startMs = whole.clock.now();
    await whole.until('the next epoch', () => whole.launches() === 2);
    expect(whole.clock.now() - startMs).toBeGreaterThan(VISIBLE_MS);
    await whole.untilEnd();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.2']);
  });

  it('F9: whose token belongs to a dead instance gets a new epoch at once, in the same pool', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.launchFaults.push({ kind: 'refused', cause: 'spent', message: 'IdempotentInstanceTerminated' });
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.2', '1.1', '2.1']);
    const [first, second] = await whole.instances();
    expect(second!.request.subnetId).toBe(first!.request.subnetId);
    expect(second!.request.clientToken).not.toBe(first!.request.clientToken);
  });
});

describe('EC2 without machines', () => {
  it('F4: launches k of n: the launched ones continue, and the refused slot gets its instance in another zone', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.refusalOf = ({ subnetId }) => (subnetId === 'subnet-0000000c' ? NO_MACHINE : null);
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.2', '2.1']);
    expect(whole.cloud.compute.all().map((i) => i.zone)).toEqual(Array(3).fill('ap-northeast-1a'));
  });

  it('F5: in all pools makes the run wait without spinning, and use new capacity', async () => {
    whole = await WholeRun.open(SMALL);
    const dryMs = 5 * LIMITS.dryPoolMs;
    const wetMs = whole.clock.now() + dryMs;
    whole.cloud.compute.refusalOf = () => (whole.clock.now() < wetMs ? NO_MACHINE : null);
    await whole.start();
    await whole.until('time to pass', () => whole.launches() > 0);
    const endMs = whole.clock.now() + dryMs;
    await whole.until('machines', () => whole.clock.now() >= endMs);
    // The first round, then one trial per pool and period.
    expect(whole.launches()).toBeLessThanOrEqual(3 + 2 * 3);
    await whole.untilEnd();
    await expectAllStored(whole);
    // One alarm per pool.
    expect(whole.server!.alarms.filter((a) => a.includes('pool'))).toHaveLength(2);
  });

  it('F5: permanently ends the run with the code for capacity, long before it would spin', async () => {
    whole = await WholeRun.open({ ...SMALL, deadlineMs: 120_000 });
    whole.cloud.compute.refusalOf = () => NO_MACHINE;
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 19 });
    await expectSound(whole);
    expect(whole.launches()).toBeLessThan(50);
  });
});

describe('EC2 that refuses', () => {
  it('F6: for the quota is retried only when an instance has ended; the run continues and names the quota to request', async () => {
    whole = await WholeRun.open(SLOW);
    setQuota(2);
    await whole.start();
    await whole.until('the refusal', () => whole.launches() >= 3);
    await whole.until('some pages', () => whole.fleet.instances.filter((i) => i.fetched >= 2).length === 2);
    expect(whole.launches()).toBe(3);
    expect(alarms()).toContain('Ask AWS for 6 vCPUs');
    expect(alarms()).toContain('L-1216C47A');
    setQuota(3);
    whole.cloud.compute.kill(whole.fleet.instances[0]!.id);
    await whole.untilEnd();
    await expectAllStored(whole);
    expect(whole.launches()).toBeLessThanOrEqual(6);
    expect(whole.server!.alarms.filter((a) => a.includes('quota'))).toHaveLength(1);
  });

  it('F6: for the quota permanently is retried once in ten scaled minutes, until it is too late to boot', async () => {
    whole = await WholeRun.open(SMALL);
    setQuota(0);
    await whole.start();
    await whole.until('the refusal', () => whole.launches() >= 1);
    const before = whole.launches();
    const endMs = whole.clock.now() + 3.5 * LIMITS.quotaPauseMs;
    await whole.until('time to pass', () => whole.clock.now() > endMs);
    expect(whole.launches() - before).toBeGreaterThanOrEqual(2);
    expect(whole.launches() - before).toBeLessThanOrEqual(5);
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 19 });
    await expectSound(whole);
  });

  it('F7: with throttling for a minute has launched everything soon after, by few calls', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.throttle.allUntilMs = whole.clock.now() + 60_000;
    await whole.start();
    await whole.until('the launches', () => whole.cloud.compute.alive().length === 3, 120_000);
    expect(whole.launches()).toBeLessThan(3 * 80);
    await whole.untilEnd();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });
});

describe('EC2 that is slow to know', () => {
  it('F8: hides young instances, also from a second main server: none is taken for gone', async () => {
    whole = await WholeRun.open(SLOW);
    whole.cloud.compute.behaviour.invisibleMs = 30_000;
    await whole.start((name) => name === 'balancers.register' && 'before');
    await whole.untilDead();
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });

  it('F43: answers NotFound to a terminate: that is no proof of its end; the terminate is retried and an alarm raised', async () => {
    whole = await WholeRun.open({ ...SMALL, products: 6 });
    whole.cloud.compute.behaviour.unknownMs = 30_000;
    await whole.play();
    await expectAllStored(whole);
    expect(alarms()).toMatch(/was terminated, but EC2 still shows it as running; TerminateInstances is retried/);
  });
});

describe('an instance that does not come into service', () => {
  it('F10: never sends hello, and is replaced once with its console kept', async () => {
    whole = await WholeRun.open(SLOW);
    whole.fleet.boots = (machine) => machine.tags['crawlfleet:slot'] !== '1';
    whole.cloud.compute.consoles.set('i-00000000000000002', 'cloud-init: failed to fetch the bundle');
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.1', '1.2', '2.1']);
    const silent = (await whole.instances()).filter((r) => r.slot === 1);
    expect(silent.map((r) => r.reason)).toEqual(['no-hello', 'no-hello']);
    expect(silent[0]!.consoleOutput).toContain('failed to fetch the bundle');
  });

  it('F13: never gets healthy while others are, and is replaced in another zone with the reason of the load balancer', async () => {
    whole = await WholeRun.open(SLOW);
    const { forcedHealth } = whole.cloud.balancers;
    whole.fleet.onBoot = ({ id, slot, epoch }) => void (slot === 1 && epoch === 1 && forcedHealth.set(id, 'unused'));
    whole.fleet.route = (targets, turn) => {
      const fit = targets.filter((t) => !forcedHealth.has(t.id));
      return fit[turn % Math.max(1, fit.length)];
    };
    await whole.start();
    await whole.until('the replacement', () => whole.machines().includes('1.2'), LIMITS.healthyMs + 10_000);
    await whole.untilEnd();
    await expectAllStored(whole);
    const [unfit, next] = (await whole.instances()).filter((r) => r.slot === 1);
    expect(unfit).toMatchObject({ reason: 'never-healthy', lastError: 'Target.NotInUse' });
    expect(next!.request.subnetId).not.toBe(unfit!.request.subnetId);
  });

  it('F34: sends hello from the address of another: it gets nothing, and its slot is filled from another subnet', async () => {
    whole = await WholeRun.open(SLOW);
    whole.fleet.onBoot = (instance) => {
      if (instance.slot < 2 && instance.epoch === 1) Object.assign(instance, { address: '127.0.0.77' });
    };
    await whole.play();
    await expectAllStored(whole);
    await expectParted('127.0.0.77');
  });

  it('F34: has the address of another in EC2: it is given up before its hello', async () => {
    whole = await WholeRun.open(SLOW);
    const { compute } = whole.cloud;
    const usual = compute.addressOf;
    compute.addressOf = (i) =>
      i.tags.Name!.endsWith(' 0.1') || i.tags.Name!.endsWith(' 1.1') ? '203.0.113.7' : usual(i);
    await whole.play();
    await expectAllStored(whole);
    await expectParted('203.0.113.7');
  });

  async function expectParted(address: string): Promise<void> {
    const shared = (await whole.instances()).filter((r) => r.reason === 'shared-address');
    expect(shared).toHaveLength(1);
    const { slot, request, progress } = shared[0]!;
    expect(progress?.assigned ?? 0).toBe(0);
    const next = (await whole.instances()).find((r) => r.slot === slot && r.epoch === 2)!;
    expect(next.request.subnetId).not.toBe(request.subnetId);
    expect(alarms()).toContain(`has the address ${address} of slot`);
    expect(alarms()).toContain('NAT');
  }
});

describe('the end of a machine', () => {
  it('F43: that may not be terminated is reported, the run ends without it, and it switches itself off', async () => {
    whole = await WholeRun.open(SMALL);
    await whole.start();
    await whole.until('an instance', () => whole.fleet.instances.length > 0);
    const [first] = whole.fleet.instances;
    whole.cloud.compute.protected.add(first!.id);
    await whole.until('the alarm', () => alarms().includes('OperationNotPermitted'));
    expect(alarms()).toContain(`${first!.id} cannot be terminated`);
    await whole.until('the results', async () => whole.record().phase === 'completed', 120_000);
    expect(whole.clock.now()).toBeLessThan(whole.run.deadlineAtMs - 60_000);
    expect(whole.cloud.compute.isRunning(first!.id)).toBe(true);
    // Its own timer.
    whole.cloud.compute.kill(first!.id);
    await whole.untilEnd();
    await expectAllStored(whole);
  });

  it('does not wait for ELBv2: terminated although no target can be deregistered', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.balancers.deregister = () => Promise.reject(new Error('ServiceUnavailable'));
    await whole.play();
    await expectAllStored(whole);
    expect(calls('terminate')).toBe(3);
  });
});

describe('F45: run.max_cost', () => {
  const figures = () => {
    const { committed, each } = spendingOf({
      ...aWorld({ instances: [] }),
      run: whole.run as never,
      nowMs: whole.clock.now(),
    });
    return { committed, each };
  };
  const openWith = async (shape: RunShape, cap: (of: ReturnType<typeof figures>) => number): Promise<void> => {
    whole = await WholeRun.open(shape);
    const maxCost = cap(figures());
    whole = await WholeRun.open({ ...shape, maxCost });
  };

  it('blocks first launches: the run continues with what it can pay, and reports why', async () => {
    await openWith(SMALL, ({ committed, each }) => committed + 2.5 * each);
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toHaveLength(2);
    expect(whole.server!.alarms.filter((a) => a.includes('run.max_cost'))).toHaveLength(1);
    expect(alarms()).toMatch(/one more up to \$0\.0\d+, and the cap is \$0\.0\d/);
  });

  it('blocks a replacement that would exceed it: what is left ends as failed(budget), exit code 14', async () => {
    await openWith({ ...SLOW, instances: 1 }, ({ committed, each }) => committed + 1.02 * each);
    await whole.start();
    await whole.until('some pages', () => whole.fleet.instances[0]?.fetched === 3);
    whole.cloud.compute.kill(whole.fleet.instances[0]!.id);
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 14 });
    await expectSound(whole);
    const { reasons } = await whole.outcomes();
    expect(reasons.budget).toBeGreaterThan(100);
    expect(whole.machines()).toEqual(['0.1']);
  });
});

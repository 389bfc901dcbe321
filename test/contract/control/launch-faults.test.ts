/**
 * Rows of the fault matrix about launches and the life of a slot: whole runs by the real control loop, with an EC2 in
 * memory that fails as the real one does. Limits are those of a run of eight minutes.
 */
import { describe, expect, it } from 'vitest';
import { limitsFor } from '../../../shared/domain/limits.ts';
import type { Compute, LaunchResult } from '../../../orchestrator/cloud/compute.ts';
import { spendingOf } from '../../../orchestrator/control/launching/budget.ts';
import type { InstanceRecord } from '../../../orchestrator/control/model/stores.ts';
import { aWorld } from '../../unit/control/builders.ts';
import type { RunShape } from './run-stage.ts';
import { WholeRun } from './whole-run.ts';

const SMALL: RunShape = { products: 40, instances: 3, chunkSize: 2, intervalMs: 200 };
/** Long enough for a test to act in the middle of it. */
const SLOW: RunShape = { products: 120, instances: 3, chunkSize: 2, intervalMs: 1_000 };
const LIMITS = limitsFor(480_000);
const VISIBLE_MS = 60_000;

let whole: WholeRun;

/** I1, I2, I3 and I7, and the exit code 0. */
async function expectComplete(): Promise<void> {
  expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0, balancer: null });
  await expectSound();
}

async function expectSound(): Promise<void> {
  const verdict = await whole.verdict();
  expect(verdict.differences).toEqual([]);
  expect(verdict.products.open).toBe(0);
  expect(whole.cloud.compute.alive()).toEqual([]);
  expect(whole.cloud.balancers.names()).toEqual([]);
  expect(new Set(whole.machines()).size).toBe(whole.machines().length);
}

const records = (): Promise<InstanceRecord[]> => whole.stores.of(whole.run.id).fleet.instances();
const calls = (name: keyof Compute): number => whole.cloud.compute.calls.filter((c) => c.name === name).length;
const alarms = (): string => whole.server!.alarms.join('\n');

describe('a launch without an answer', () => {
  it('F1: whose instance is visible only after half a minute is adopted, and no second one is launched', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.behaviour.invisibleMs = 30_000;
    whole.cloud.compute.launchFaults.push('reply-lost', 'reply-lost', 'reply-lost', 'reply-lost');
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });

  it('F2: is repeated with the token of the first call', async () => {
    whole = await WholeRun.open(SMALL);
    const nothing: LaunchResult = { kind: 'unknown', message: 'socket hang up' };
    whole.cloud.compute.launchFaults.push(nothing, nothing, nothing, nothing);
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
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
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
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
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });

  it('F9: whose token is used and has no visible instance gets a new epoch after the minute of possible invisibility', async () => {
    whole = await WholeRun.open({ ...SLOW, instances: 1, intervalMs: 500 });
    whole.cloud.compute.launchFaults.push({ kind: 'unknown', message: 'IdempotentParameterMismatch', tokenUsed: true });
    await whole.start();
    const startMs = whole.clock.now();
    await whole.until('the next epoch', () => calls('launch') === 2);
    expect(whole.clock.now() - startMs).toBeGreaterThan(VISIBLE_MS);
    await whole.untilEnd();
    await expectComplete();
    expect(whole.machines()).toEqual(['0.2']);
  });

  it('F9: whose token belongs to a dead instance gets a new epoch at once, in the same pool', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.launchFaults.push({ kind: 'refused', cause: 'spent', message: 'IdempotentInstanceTerminated' });
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    expect(whole.machines()).toEqual(['0.2', '1.1', '2.1']);
    const [first, second] = await records();
    expect(second!.request.subnetId).toBe(first!.request.subnetId);
    expect(second!.request.clientToken).not.toBe(first!.request.clientToken);
  });
});

describe('EC2 without machines', () => {
  it('F4: launches k of n: the launched ones continue, and the refused slot gets its instance in another zone', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.dryOut(Infinity, { subnetId: 'subnet-0000000c' });
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    expect(whole.machines()).toEqual(['0.1', '1.2', '2.1']);
    expect(whole.cloud.compute.all().map((i) => i.zone)).toEqual(Array(3).fill('ap-northeast-1a'));
  });

  it('F5: in one pool is retried there only after three scaled minutes', async () => {
    whole = await WholeRun.open({ ...SLOW, instances: 6 });
    whole.cloud.compute.dryOut(Infinity, { subnetId: 'subnet-0000000a' });
    await whole.start();
    await whole.until('a full fleet', () => whole.cloud.compute.alive().length === 6);
    // The claims of all three slots were in flight together; later claims chose another pool without a call.
    expect(calls('launch')).toBeLessThanOrEqual(9);
    await whole.untilEnd();
    await expectComplete();
  });

  it('F5: in all pools makes the run wait without spinning, and use new capacity', async () => {
    whole = await WholeRun.open(SMALL);
    const dryMs = 5 * LIMITS.dryPoolMs;
    whole.cloud.compute.dryOut(whole.clock.now() + dryMs);
    await whole.start();
    await whole.until('time to pass', () => calls('launch') > 0);
    const endMs = whole.clock.now() + dryMs;
    await whole.until('machines', () => whole.clock.now() >= endMs);
    // The first round, then one trial per pool and period.
    expect(calls('launch')).toBeLessThanOrEqual(3 + 2 * 3);
    await whole.untilEnd();
    await expectComplete();
    // One alarm per pool.
    expect(whole.server!.alarms.filter((a) => a.includes('pool'))).toHaveLength(2);
  });

  it('F5: permanently ends the run with the code for capacity, long before it would spin', async () => {
    whole = await WholeRun.open({ ...SMALL, deadlineMs: 120_000 });
    whole.cloud.compute.dryOut(Infinity);
    await whole.start();
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 19 });
    await expectSound();
    expect(calls('launch')).toBeLessThan(50);
  });
});

describe('EC2 that refuses', () => {
  it('F6: for the quota is retried only when an instance has ended; the run continues and names the quota to request', async () => {
    whole = await WholeRun.open(SLOW);
    whole.cloud.compute.behaviour.quota = 2;
    await whole.start();
    await whole.until('the refusal', () => calls('launch') >= 3);
    await whole.until('some pages', () => whole.fleet.instances.filter((i) => i.fetched >= 2).length === 2);
    expect(calls('launch')).toBe(3);
    expect(alarms()).toContain('Ask AWS for 6 vCPUs');
    expect(alarms()).toContain('L-1216C47A');
    whole.cloud.compute.behaviour.quota = 3;
    whole.cloud.compute.kill(whole.fleet.instances[0]!.id);
    await whole.untilEnd();
    await expectComplete();
    expect(calls('launch')).toBeLessThanOrEqual(6);
    expect(whole.server!.alarms.filter((a) => a.includes('quota'))).toHaveLength(1);
  });

  it('F6: for the quota permanently is retried once in ten scaled minutes, until it is too late to boot', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.behaviour.quota = 0;
    await whole.start();
    await whole.until('the refusal', () => calls('launch') >= 1);
    const before = calls('launch');
    const endMs = whole.clock.now() + 3.5 * LIMITS.quotaPauseMs;
    await whole.until('time to pass', () => whole.clock.now() > endMs);
    expect(calls('launch') - before).toBeGreaterThanOrEqual(2);
    expect(calls('launch') - before).toBeLessThanOrEqual(5);
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 19 });
    await expectSound();
  });

  it('F7: with throttling for a minute has launched everything soon after, by few calls', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.compute.throttle.allUntilMs = whole.clock.now() + 60_000;
    await whole.start();
    await whole.until('the launches', () => whole.cloud.compute.alive().length === 3, 120_000);
    expect(calls('launch')).toBeLessThan(3 * 80);
    await whole.untilEnd();
    await expectComplete();
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });
});

describe('EC2 that is slow to know', () => {
  it('F8: hides young instances, also from a second main server: none is taken for gone', async () => {
    whole = await WholeRun.open(SLOW);
    whole.cloud.compute.behaviour.invisibleMs = 30_000;
    await whole.start((name) => name === 'balancers.register' && 'before');
    await whole.untilDead();
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });

  it('F43: answers NotFound to a terminate: that is no proof of its end; the terminate is retried and an alarm raised', async () => {
    whole = await WholeRun.open({ ...SMALL, products: 6 });
    whole.cloud.compute.behaviour.unknownMs = 30_000;
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    expect(alarms()).toMatch(/was terminated, but EC2 still shows it as running; TerminateInstances is retried/);
  });
});

describe('an instance that does not come into service', () => {
  it('F10: never sends hello, and is replaced once with its console kept', async () => {
    whole = await WholeRun.open(SLOW);
    whole.fleet.boots = (machine) => machine.tags['crawlfleet:slot'] !== '1';
    whole.cloud.compute.consoles.set('i-00000000000000002', 'cloud-init: failed to fetch the bundle');
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    expect(whole.machines()).toEqual(['0.1', '1.1', '1.2', '2.1']);
    const silent = (await records()).filter((r) => r.slot === 1);
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
    await expectComplete();
    const [unfit, next] = (await records()).filter((r) => r.slot === 1);
    expect(unfit).toMatchObject({ reason: 'never-healthy', lastError: 'Target.NotInUse' });
    expect(next!.request.subnetId).not.toBe(unfit!.request.subnetId);
  });

  it('F34: sends hello from the address of another: it gets nothing, and its slot is filled from another subnet', async () => {
    whole = await WholeRun.open(SLOW);
    whole.fleet.onBoot = (instance) => {
      if (instance.slot < 2 && instance.epoch === 1) Object.assign(instance, { address: '127.0.0.77' });
    };
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    await expectParted('127.0.0.77');
  });

  it('F34: sends hello through the same NAT as another: the source address reveals it', async () => {
    whole = await WholeRun.open(SLOW);
    whole.fleet.onBoot = (instance) => void Object.assign(instance, { address: `10.0.0.${instance.slot + 4}` });
    const connect = whole.fleet.connect.bind(whole.fleet);
    whole.fleet.connect = (callbacks, died) => {
      const hello = callbacks.hello.bind(callbacks);
      callbacks.hello = async (callback) => {
        const behind = callback.slot < 2 && callback.epoch === 1;
        if (behind) return hello({ ...callback, source: '::ffff:203.0.113.50' });
        // The remaining instances have the addresses that EC2 shows: no proxy is between.
        const record = await whole.stores.of(whole.run.id).fleet.get(callback);
        return hello({ ...callback, source: `::ffff:${record?.address}` });
      };
      connect(callbacks, died);
    };
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    await expectParted('203.0.113.50');
  });

  it('F34: sends hello through a public proxy as all others do: none is given up for it', async () => {
    whole = await WholeRun.open(SLOW);
    whole.fleet.onBoot = (instance) => void Object.assign(instance, { address: `10.0.0.${instance.slot + 4}` });
    const connect = whole.fleet.connect.bind(whole.fleet);
    whole.fleet.connect = (callbacks, died) => {
      const hello = callbacks.hello.bind(callbacks);
      callbacks.hello = async (callback) => {
        const { slot, epoch } = callback;
        // EC2 has not shown this one's address yet: the source is the only evidence, also for a repeated hello.
        if (slot === 0) await whole.server!.core.fleet.patch({ slot, epoch }, { address: null });
        const answer = await hello({ ...callback, source: '104.16.1.1' });
        await hello({ ...callback, source: '104.16.1.1' });
        return answer;
      };
      connect(callbacks, died);
    };
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    expect((await records()).filter((r) => r.reason === 'shared-address')).toEqual([]);
  });

  it('F34: has the address of another in EC2: it is given up before its hello', async () => {
    whole = await WholeRun.open(SLOW);
    const { compute } = whole.cloud;
    const usual = compute.addressOf;
    compute.addressOf = (i) =>
      i.tags.Name!.endsWith(' 0.1') || i.tags.Name!.endsWith(' 1.1') ? '203.0.113.7' : usual(i);
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
    await expectParted('203.0.113.7');
  });

  async function expectParted(address: string): Promise<void> {
    const shared = (await records()).filter((r) => r.reason === 'shared-address');
    expect(shared).toHaveLength(1);
    const { slot, request, progress } = shared[0]!;
    expect(progress?.assigned ?? 0).toBe(0);
    const next = (await records()).find((r) => r.slot === slot && r.epoch === 2)!;
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
    await expectComplete();
  });

  it('does not wait for ELBv2: terminated although no target can be deregistered', async () => {
    whole = await WholeRun.open(SMALL);
    whole.cloud.balancers.deregister = () => Promise.reject(new Error('ServiceUnavailable'));
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
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
    await whole.start();
    await whole.untilEnd();
    await expectComplete();
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
    await expectSound();
    const { reasons } = await whole.stores.of(whole.run.id).work.outcomes();
    expect(reasons.budget).toBeGreaterThan(100);
    expect(whole.machines()).toEqual(['0.1']);
  });

  it('that one instance would exceed launches nothing', async () => {
    await openWith(SMALL, ({ committed, each }) => committed + 0.5 * each);
    await whole.start();
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 14 });
    expect(calls('launch')).toBe(0);
  });
});

/**
 * Rows of the fault matrix about launches and the life of a slot: whole runs by the real control loop, with an EC2 in
 * memory that fails as the real one does. Limits are those of a run of eight minutes.
 */
import { describe, expect, it } from 'vitest';
import { limitsFor } from '../../../shared/domain/limits.ts';
import type { Compute } from '../../../orchestrator/core/cloud/compute.ts';
import { spendingOf } from '../../../orchestrator/core/decide/launches/budget.ts';
import { aWorld } from '../../unit/core/builders.ts';
import type { RunShape } from './run-stage.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { WholeRun } from './whole-run.ts';

const SMALL: RunShape = { products: 40, instances: 3, chunkSize: 2, intervalMs: 200 };
/** Long enough for a test to act in the middle of it. */
const SLOW: RunShape = { products: 120, instances: 3, chunkSize: 2, intervalMs: 1_000 };
const LIMITS = limitsFor(480_000);
const HOUR_MS = 3_600_000;

let whole: WholeRun;

const calls = (name: keyof Compute): number => whole.cloud.compute.calls.filter((c) => c.name === name).length;
const setQuota = (quota: number): void => {
  const { compute } = whole.cloud;
  const refusal = { kind: 'refused', cause: 'quota', message: 'VcpuLimitExceeded' } as const;
  compute.refusalOf = () => (compute.alive().length < quota ? null : refusal);
};
const alarms = (): string => whole.server!.alarms.join('\n');

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

  it('keeps no loop awake: what is said once for hours is not carried out again in each round', async () => {
    const shape = { ...SLOW, products: 900, intervalMs: 4_000, deadlineMs: HOUR_MS };
    await openWith(shape, ({ committed, each }) => committed + 1.5 * each);
    await whole.play(HOUR_MS);
    const seconds = (whole.clock.now() - whole.run.startedAtMs) / 1_000;
    // Six rounds a second before; heartbeats of two instances make one.
    expect(whole.server!.rounds).toBeLessThan(2 * seconds);
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

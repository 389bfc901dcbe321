import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { TAG } from '../../../orchestrator/core/cloud/compute.ts';
import { MemoryCompute } from '../../../orchestrator/core/simulation/cloud/memory-compute.ts';
import { MemoryLoadBalancer } from '../../../orchestrator/core/simulation/cloud/memory-load-balancer.ts';
import { noteLoad } from '../../../orchestrator/core/model/process-state.ts';
import { Observer } from '../../../orchestrator/core/observe/observe.ts';
import type {
  FleetStore,
  InstanceRecord,
  ResultStore,
  RunRow,
  WorkStore,
} from '../../../orchestrator/core/model/stores.ts';
import { MachineClock } from '../../../orchestrator/core/simulation/machine-clock.ts';
import { TokenBucket } from '../../../orchestrator/core/model/token-bucket.ts';
import { START_MS, aClaim, aRun, anInstance } from './builders.ts';
import { aCore } from './fake-core.ts';

const WORK = { chunks: 4, waiting: 4, granted: 0, bySlot: [] };
const TOTALS = { stored: 0, gone: 0, failed: 0, seen: 0, loaded: 0 };

/** A run whose row and instances the test sets; EC2 shows one running instance. */
async function stage(instances: InstanceRecord[] = [anInstance(0)], deadlineMs = 480_000) {
  const clock = new VirtualClock(START_MS);
  const skew = new MachineClock(clock);
  const reads: string[] = [];
  const compute = new MemoryCompute({ clock });
  const balancers = new MemoryLoadBalancer({ clock });
  const request = anInstance(0).request;
  const rows = { run: aRun({ balancers: {}, deadlineAtMs: START_MS + deadlineMs }), instances, vanished: false };
  const launched = await compute.launch({
    ...request,
    subnetId: 'subnet-0000000a',
    tags: { [TAG.run]: rows.run.id, [TAG.slot]: '0', [TAG.epoch]: '1' },
  });
  if (launched.kind !== 'launched') throw new Error('not launched');
  const balancer = await balancers.ensure({
    name: 'b',
    vpcId: 'v',
    subnetIds: [],
    securityGroupIds: [],
    listenPort: 1,
    targetPort: 1,
    healthPath: '/',
    tags: {},
  });
  await balancers.register(balancer, launched.instance.id);
  compute.calls.length = 0;
  balancers.calls.length = 0;
  const core = aCore({
    runId: rows.run.id,
    clock: skew,
    objects: new MemoryObjectStore(),
    regions: [{ name: 'ap-northeast-1', compute, balancers, launchTurn: new TokenBucket(clock, Infinity, 1) }],
    run: {
      get: () => Promise.resolve(rows.vanished ? null : rows.run),
      events: () => Promise.resolve([]),
    } as Partial<RunRow> as RunRow,
    fleet: {
      instances: async () => {
        await new Promise((resolve) => setImmediate(resolve));
        reads.push('instances');
        return rows.instances;
      },
    } as Partial<FleetStore> as FleetStore,
    work: {
      counts: () => {
        reads.push('counts');
        return Promise.resolve(WORK);
      },
    } as Partial<WorkStore> as WorkStore,
    results: { totals: () => Promise.resolve(TOTALS) } as Partial<ResultStore> as ResultStore,
  });
  const observer = new Observer(core);
  const looks = (): number => compute.calls.filter((c) => c.name === 'list').length;
  const instanceId = launched.instance.id;
  return { core, skew, reads, clock, compute, balancers, balancer, rows, observer, looks, instanceId };
}

describe('Observer', () => {
  it('combines the state of the database, EC2 and the balancer', async () => {
    const { observer, rows, balancer, instanceId, clock } = await stage();
    rows.run = { ...rows.run, balancers: { 'ap-northeast-1': balancer } };
    await clock.advance(5);
    const world = await observer.observe();
    expect(world).toMatchObject({
      nowMs: START_MS + 5,
      loopStartedAtMs: START_MS,
      run: rows.run,
      limits: limitsFor(480_000),
      fleet: { all: rows.instances },
      regions: [
        { cloud: { seenAtMs: START_MS + 5, instances: [{ id: instanceId, state: 'running' }] }, balancerActive: true },
      ],
      work: WORK,
      totals: TOTALS,
    });
    expect([...world.targets]).toEqual([[instanceId, 'healthy']]);
  });

  it.each([
    ['does not poll EC2 before a launch was sent', aClaim(0), 0],
    ['polls EC2 after an unanswered launch, which the tags may show', aClaim(0, { attempts: 1 }), 1],
    ['stops polling when everything is terminated', anInstance(0, { phase: 'terminated' }), 0],
  ])('%s', async (_what, record, polls) => {
    const { observer, looks } = await stage([record]);
    const { cloud } = (await observer.observe()).regions[0];
    expect(looks()).toBe(polls);
    expect(cloud === null).toBe(polls === 0);
  });

  it('polls AWS less and less often while nothing changes, and the database each time', async () => {
    const { observer, looks, clock, rows } = await stage();
    const waits: number[] = [];
    for (let i = 0; i < 6; i++) {
      await observer.observe();
      expect(looks()).toBe(i + 1);
      const waitMs = observer.nextLookMs - clock.monotonic();
      waits.push(waitMs);
      await clock.advance(waitMs - 1);
      rows.instances = [anInstance(0, { counter: i })];
      expect((await observer.observe()).fleet.all[0]!.counter).toBe(i);
      expect(looks()).toBe(i + 1);
      await clock.advance(1);
    }
    expect(waits).toEqual([250, 375, 500, 500, 500, 500]);
  });

  it('polls at most every five seconds in a long run, and sooner after a change was requested from AWS', async () => {
    const { observer, clock, looks } = await stage([anInstance(0)], 4 * 3_600_000);
    for (let i = 0; i < 12; i++) {
      await observer.observe();
      await clock.advance(observer.nextLookMs - clock.monotonic());
    }
    await observer.observe();
    expect(observer.nextLookMs - clock.monotonic()).toBe(5_000);
    const before = looks();
    observer.expectChange();
    expect(observer.nextLookMs - clock.monotonic()).toBe(250);
    await clock.advance(250);
    await observer.observe();
    expect(looks()).toBe(before + 1);
    expect(observer.nextLookMs - clock.monotonic()).toBe(250);
  });

  it('keeps the last state and its time while EC2 does not answer', async () => {
    const { observer, compute, clock } = await stage();
    const { cloud } = (await observer.observe()).regions[0];
    compute.onCall = () => {
      throw new Error('RequestLimitExceeded');
    };
    await clock.advance(10_000);
    expect((await observer.observe()).regions[0].cloud).toEqual(cloud);
    expect(observer.nextLookMs).toBeGreaterThan(clock.monotonic());
  });

  it('reads the health of the targets even while EC2 does not answer', async () => {
    const { observer, compute, balancer, rows } = await stage();
    rows.run = { ...rows.run, balancers: { 'ap-northeast-1': balancer } };
    compute.onCall = () => {
      throw new Error('RequestLimitExceeded');
    };
    const world = await observer.observe();
    expect(world).toMatchObject({ regions: [{ cloud: null, balancerActive: true }] });
    expect(world.targets.size).toBe(1);
  });

  it('keeps the last health while the balancer does not answer', async () => {
    const { observer, balancers, balancer, rows, clock } = await stage();
    rows.run = { ...rows.run, balancers: { 'ap-northeast-1': balancer } };
    const { targets } = await observer.observe();
    balancers.onCall = () => {
      throw new Error('Throttling');
    };
    await clock.advance(10_000);
    const world = await observer.observe();
    expect(world.targets).toEqual(targets);
    expect(world.regions[0].cloud?.seenAtMs).toBe(clock.now());
  });

  it.each<[string, () => Promise<boolean>, string]>([
    ['remains in provisioning', () => Promise.resolve(false), 'being provisioned'],
    ['fails', () => Promise.reject(new AppError('aws-failed', 'could not be provisioned: no address')), 'no address'],
  ])('reports once a balancer that %s', async (_, isActive, words) => {
    const { observer, core, balancers, balancer, rows, clock } = await stage();
    rows.run = { ...rows.run, balancers: { 'ap-northeast-1': balancer } };
    balancers.isActive = isActive;
    const { bootMs } = limitsFor(480_000);
    const look = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await clock.advance(1_000);
        await observer.observe();
      }
    };
    await look(bootMs - 2_000);
    expect(core.alarms).toEqual([]);
    await look(bootMs);
    expect(core.alarms).toEqual([expect.stringContaining(words)]);
    expect(await observer.observe()).toMatchObject({ regions: [{ balancerActive: false }] });
  });

  it('does not poll the balancer before a target is registered, and drops its state when it is removed', async () => {
    const { observer, balancers, balancer, rows, clock } = await stage([anInstance(0, { registered: false })]);
    rows.run = { ...rows.run, balancers: { 'ap-northeast-1': balancer } };
    await observer.observe();
    expect(balancers.calls).toEqual([]);
    rows.instances = [anInstance(0)];
    await clock.advance(10_000);
    expect((await observer.observe()).targets.size).toBe(1);
    rows.run = { ...rows.run, balancers: {} };
    await clock.advance(10_000);
    expect(await observer.observe()).toMatchObject({ regions: [{ balancerActive: false }], targets: new Map() });
  });

  it('F12: after the clock is set back, drops timestamps that lie in the future', async () => {
    const { observer, core, skew } = await stage([anInstance(0)], 4 * 3_600_000);
    const before = (await observer.observe()).forecast!.atMs;
    const region = core.processState.region('ap-northeast-1');
    core.processState.lastTransferMs = region.quotaRefusedMs = before;
    skew.skewMs = -1_200_000;
    const after = await observer.observe();
    expect(after.forecast!.atMs).toBe(before - 1_200_000);
    expect(after.lastTransferAtMs).toBeNull();
    expect(region.quotaRefusedMs).toBeNull();
  });

  it('F12: counts silence anew when the clock is set while AWS is asked', async () => {
    const { observer, clock, core, compute, skew } = await stage();
    await observer.observe();
    await clock.advance(5_000);
    compute.list = async () => {
      skew.skewMs = 1_200_000;
      return [];
    };
    const world = await observer.observe();
    expect(world).toMatchObject({ nowMs: skew.now(), loopStartedAtMs: skew.now() });
    expect(core.alarms).toEqual([expect.stringContaining('jumped ahead by 1200 s')]);
  });

  describe('F57: after a standstill', () => {
    const { lostMs } = limitsFor(480_000);
    const stand = async (forMs: number) => {
      const parts = await stage();
      const { observer, clock, core } = parts;
      await observer.observe();
      core.processState.unansweredOffers = { sinceMs: clock.now(), url: 'http://b', kind: 'unknown', message: '502' };
      await clock.advance(forMs);
      return { ...parts, world: await observer.observe() };
    };

    it('counts silence anew, once, and reports it', async () => {
      const { world, observer, clock, core } = await stand(lostMs);
      expect(world.loopStartedAtMs).toBe(clock.now());
      expect(world.unansweredOffers!.sinceMs).toBe(clock.now());
      expect(core.alarms).toEqual([expect.stringContaining(`stood still for ${lostMs / 1_000} s`)]);
      await clock.advance(500);
      expect((await observer.observe()).loopStartedAtMs).toBe(world.loopStartedAtMs);
      expect(core.alarms).toHaveLength(1);
    });

    it('does so when it happened while AWS was asked, without an alarm: its answer may have taken as long', async () => {
      const { observer, clock, core, compute } = await stage();
      await observer.observe();
      await clock.advance(5_000);
      compute.list = async () => {
        await clock.advance(lostMs);
        return [];
      };
      const world = await observer.observe();
      expect(world.loopStartedAtMs).toBe(clock.now());
      expect(core.alarms).toEqual([]);
    });

    it('does so three times in a row: a server that is always late must still give up and end', async () => {
      const { observer, clock } = await stand(lostMs);
      const countsFrom = async (forMs: number): Promise<number> => {
        await clock.advance(forMs);
        return (await observer.observe()).loopStartedAtMs - clock.now();
      };
      expect(await countsFrom(lostMs)).toBe(0);
      expect(await countsFrom(lostMs)).toBe(0);
      expect(await countsFrom(lostMs)).toBe(-lostMs);
      expect(await countsFrom(lostMs)).toBe(-2 * lostMs);
      await countsFrom(500);
      expect(await countsFrom(lostMs)).toBe(0);
    });

    it('does nothing for a late round', async () => {
      const { world, core } = await stand(lostMs / 3 - 1);
      expect(world.loopStartedAtMs).toBe(START_MS);
      expect(core.alarms).toEqual([]);
    });
  });

  it('remembers permanently which targets have been healthy', async () => {
    const { observer, balancers, balancer, rows, clock, instanceId } = await stage();
    rows.run = { ...rows.run, balancers: { 'ap-northeast-1': balancer } };
    await observer.observe();
    balancers.health = () => Promise.resolve(new Map([[instanceId, 'unhealthy' as const]]));
    await clock.advance(10_000);
    const world = await observer.observe();
    expect(world.targets.get(instanceId)).toBe('unhealthy');
    expect(world.onceHealthy).toEqual(new Set([instanceId]));
  });

  it('F46: counts one slow load once, and drops it after twenty more loads, so that it does not end the crawl early', async () => {
    const mine = { ...NO_PROGRESS, assigned: 10, uploadMs: 300 };
    const { observer, core } = await stage([0, 1, 2].map((slot) => anInstance(slot, { progress: mine })));
    const tailMs = async () => (await observer.observe()).run.measuredTailMs;
    expect(await tailMs()).toBe(300);
    for (const ms of [50, 60_000, 70, 60, 40]) noteLoad(core.processState, ms);
    expect(await tailMs()).toBe(300 + 3 * 60 + 60_000);
    for (let i = 0; i < 20; i++) noteLoad(core.processState, 50);
    expect(await tailMs()).toBe(300 + 3 * 50 + 50);
  });

  it('counts the work after reading the instances', async () => {
    const { observer, reads } = await stage();
    await observer.observe();
    expect(reads).toEqual(['instances', 'counts']);
  });

  it('fails when the run has vanished from the database', async () => {
    const { observer, rows } = await stage();
    rows.vanished = true;
    await expect(observer.observe()).rejects.toThrow(/vanished/);
  });
});

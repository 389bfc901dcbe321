import { CloudSnapshot } from '../../../orchestrator/core/model/cloud-snapshot.ts';
import { describe, expect, it } from 'vitest';
import type { Action } from '../../../orchestrator/core/model/actions.ts';
import { decide } from '../../../orchestrator/core/decide/decide.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { ownPaceMs } from '../../../orchestrator/core/decide/shares/workers.ts';
import { chunkLimit } from '../../../orchestrator/core/decide/shares/chunk-limits.ts';
import { LOSS } from '../../../orchestrator/core/decide/slot-attempts.ts';
import { drainAtMs, powerOffAtMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import {
  aBooting,
  aClaim,
  aCloudInstance,
  ALL_GRANTED,
  anInstance,
  aRefusal,
  aRun,
  aWorld,
  kindsOf,
  movesOf,
  START_MS,
  type WorldChange,
} from './builders.ts';

const NOW = START_MS + 60_000;
const kindsIn = (change?: WorldChange): string[] => kindsOf(decide(aWorld(change)));
const movesIn = (change?: WorldChange): string[] => movesOf(decide(aWorld(change)));
const three = (change: Partial<InstanceRecord>): InstanceRecord[] =>
  [0, 1, 2].map((slot) => anInstance(slot, { lastHeartbeatAtMs: NOW, ...change }));
const closed: Partial<InstanceRecord> = {
  phase: 'terminated',
  cloudState: 'terminated',
  manifestKey: 'm',
  registered: false,
};

describe('launching', () => {
  it('claims every slot and creates the balancer first', () => {
    expect(kindsIn({ run: aRun({ phase: 'launching', balancers: {} }), instances: [] })).toEqual([
      'ensure-balancer',
      'claim 0.1',
      'claim 1.1',
      'claim 2.1',
    ]);
  });

  it('adopts an instance that EC2 shows under the claim instead of launching again', () => {
    const claimed = aClaim(0, { attempts: 1 });
    const world = aWorld({ instances: [claimed, anInstance(1), anInstance(2)] });
    world.regions[0].cloud = new CloudSnapshot([aCloudInstance(claimed, { id: 'i-found', state: 'pending' })], NOW);
    const actions = decide(world);
    expect(actions).toContainEqual(
      expect.objectContaining({ kind: 'adopt', slot: 0, instance: expect.objectContaining({ id: 'i-found' }) }),
    );
    expect(kindsOf(actions)).not.toContain('launch 0.1');
  });

  it('does not retry an unanswered launch before EC2 was polled for the first one', () => {
    const world = aWorld({ instances: [aClaim(0, { attempts: 1, launchedAtMs: NOW - 5_000 })] });
    world.regions[0].cloud = new CloudSnapshot([], NOW - 6_000);
    expect(kindsOf(decide(world))).not.toContain('launch 0.1');
    world.regions[0].cloud = new CloudSnapshot([], NOW - 1_000);
    expect(kindsOf(decide(world))).toContain('launch 0.1');
  });

  it('uses the next pool after a refusal, under a new epoch', () => {
    expect(decide(aWorld({ instances: [aRefusal(0, 'pool', START_MS)] }))).toContainEqual({
      kind: 'claim',
      slot: 0,
      epoch: 2,
      pool: { region: 'ap-northeast-1', subnetId: 'subnet-a', instanceType: 't4g.nano' },
    });
  });
});

describe('boot', () => {
  it('records that EC2 shows the instance running', () => {
    expect(movesIn({ instances: [aBooting(0, { phase: 'pending' })] })).toContain('0.1 pending>booting');
  });

  it('waits for the hello until the boot limit, then gives up the instance', () => {
    const record = aBooting(0);
    const limit = aWorld().limits.bootMs;
    expect(movesIn({ nowMs: START_MS + limit, instances: [record] })).toEqual([]);
    expect(movesIn({ nowMs: START_MS + limit + 1, instances: [record] })).toEqual(['0.1 booting>lost no-hello']);
  });

  it.each([LOSS.noHello, LOSS.neverHealthy])('replaces an instance lost by %s once, not twice', (reason) => {
    const lost = (epoch: number) => anInstance(0, { ...closed, epoch, reason });
    expect(kindsIn({ instances: [lost(1)] })).toContain('claim 0.2');
    expect(kindsIn({ instances: [lost(1), lost(2)] })).not.toContain('claim 0.3');
  });

  it('does not replace an instance that no products wait for', () => {
    const first = anInstance(0, { ...closed, reason: LOSS.noHello });
    expect(kindsIn({ instances: [first], work: ALL_GRANTED })).not.toContain('claim 0.2');
  });
});

describe('serving', () => {
  it('registers a running instance and offers chunks once a target is healthy', () => {
    const world = aWorld({ instances: three({ registered: false }) });
    expect(kindsOf(decide(world))).toContain('register 0.1');
    expect(kindsOf(decide(world))).not.toContain('offer');
    expect(kindsIn()).toContain('offer');
  });

  it.each([
    ['which the balancer finds unhealthy', 'unhealthy', 1],
    ['which the balancer does not know', undefined, 1],
    ['which the balancer finds healthy', 'healthy', 2],
  ] as const)('gives up a silent, running instance after its time limit, %s', (_name, health, times) => {
    const silentMs = aWorld().limits.lostMs * times;
    const record = anInstance(0, { phase: 'crawling', lastHeartbeatAtMs: NOW });
    const at = (ms: number) => {
      const targets = new Map(health === undefined ? [] : [[record.instanceId!, health]]);
      return movesIn({ nowMs: NOW + ms, instances: [record], targets });
    };
    expect(at(silentMs)).toEqual([]);
    expect(at(silentMs + 1)).toEqual(['0.1 crawling>lost heartbeat-lost']);
  });

  it('gives up none of a fleet that falls silent at once while the balancer finds it healthy and it has products', () => {
    const { run, limits } = aWorld();
    const { lostMs, partMs } = limits;
    const pending = Math.ceil((4 * lostMs) / ownPaceMs(run, null));
    const progress = { ...NO_PROGRESS, assigned: pending, pending };
    const silent = (slot: number): InstanceRecord =>
      anInstance(slot, { phase: 'crawling', lastHeartbeatAtMs: NOW - slot, progress });
    const fleet = [silent(0), silent(1), silent(2)];
    const at = (ms: number, change: WorldChange = {}) => movesIn({ nowMs: NOW + ms, instances: fleet, ...change });
    const busyMs = pending * ownPaceMs(run, progress) + partMs;
    expect(at(busyMs - 3)).toEqual([]);
    expect(at(busyMs)).toEqual(['0.1', '1.1', '2.1'].map((place) => `${place} crawling>lost heartbeat-lost`));
    // Each alone, it may have failed.
    expect(at(2 * lostMs + 1, { instances: [fleet[0]!] })).toEqual(['0.1 crawling>lost heartbeat-lost']);
    const heard = { ...fleet[2]!, lastHeartbeatAtMs: NOW + 2 * lostMs };
    expect(at(2 * lostMs + 2, { instances: [fleet[0]!, fleet[1]!, heard] })).toEqual([
      '0.1 crawling>lost heartbeat-lost',
      '1.1 crawling>lost heartbeat-lost',
    ]);
    const targets = new Map(fleet.map((r) => [r.instanceId!, r.slot === 1 ? 'unhealthy' : 'healthy'] as const));
    expect(at(2 * lostMs + 1, { targets })).toEqual(['1.1 crawling>lost heartbeat-lost']);
  });

  it('counts silence from its own start when it has resumed the run', () => {
    const record = anInstance(0, { phase: 'crawling', lastHeartbeatAtMs: START_MS });
    const later = START_MS + 3_600_000;
    expect(movesIn({ nowMs: later, loopStartedAtMs: later - 1_000, instances: [record] })).toEqual([]);
  });

  it.each(['stopping', 'stopped', 'shutting-down', 'terminated'] as const)(
    'gives up an instance that EC2 shows as %s',
    (state) => {
      const record = anInstance(0, { phase: 'crawling', lastHeartbeatAtMs: NOW, cloudState: state });
      expect(movesIn({ instances: [record] })).toContain(`0.1 crawling>lost ec2-${state}`);
    },
  );

  it('ignores a poll that began before EC2 had answered the launch', () => {
    const times = { launchedAtMs: NOW - 900, phaseAtMs: NOW - 100 };
    const world = aWorld({ instances: [anInstance(0, { phase: 'pending', cloudState: 'pending', ...times })] });
    world.regions[0].cloud = new CloudSnapshot([], NOW - 500);
    expect(movesOf(decide(world))).toEqual([]);
    // After the answer, but within the minute in which EC2 may not show a new instance.
    world.regions[0].cloud = new CloudSnapshot([], NOW - 50);
    expect(movesOf(decide(world))).toEqual([]);
    world.regions[0].cloud = new CloudSnapshot([], NOW + 59_100);
    expect(movesOf(decide({ ...world, nowMs: NOW + 60_000 }))).toEqual(['0.1 pending>lost ec2-gone']);
  });

  it('checks the manifest that an instance has reported', () => {
    const record = anInstance(0, { phase: 'uploading', manifestKey: 'm', lastHeartbeatAtMs: NOW });
    expect(kindsIn({ instances: [record] })).toContain('confirm 0.1');
  });
});

describe('winding up', () => {
  it('closes the epoch of a lost instance and terminates it', () => {
    const record = anInstance(0, { phase: 'lost', reason: LOSS.silent });
    expect(kindsIn({ instances: [record] })).toEqual(expect.arrayContaining(['close 0.1', 'terminate 0.1']));
  });

  it('terminates an instance as soon as it is done, while other instances crawl', () => {
    const crawling = anInstance(1, { phase: 'crawling', lastHeartbeatAtMs: NOW });
    const done = anInstance(0, { phase: 'done', manifestKey: 'm' });
    expect(kindsIn({ instances: [done, crawling] })).toContain('terminate 0.1');
  });

  it('retries TerminateInstances after the time limit, even without a poll of EC2 since', () => {
    const record = anInstance(0, { phase: 'terminating', manifestKey: 'm', phaseAtMs: START_MS });
    const { terminateMs } = aWorld().limits;
    const cloud = new CloudSnapshot([aCloudInstance(record)], START_MS);
    const at = (nowMs: number): string[] => kindsIn({ nowMs, instances: [record], cloud });
    expect(at(START_MS + terminateMs)).not.toContain('terminate 0.1');
    expect(at(START_MS + terminateMs + 1)).toContain('terminate 0.1');
  });

  it('moves to loading when EC2 shows every instance shutting down', () => {
    const leaving = three({ phase: 'terminating', cloudState: 'shutting-down', manifestKey: 'm' });
    const world = aWorld({ run: aRun({ phase: 'releasing' }), instances: leaving });
    expect(decide(world)).toContainEqual(expect.objectContaining({ kind: 'move-run', to: 'loading' }));
  });

  it('waits a limited time past its end for epochs that could not be closed', () => {
    const run = aRun({ request: 'cancel' });
    const nowMs = powerOffAtMs(run) + 36_000_000;
    const instances = [
      anInstance(0, { phase: 'terminated', publicKey: 'k', manifestKey: null }),
      anInstance(1, { ...closed, phase: 'terminated' }),
    ];
    const { uploadMs } = aWorld().limits;
    const after = (upMs: number): Action[] => decide(aWorld({ run, nowMs, loopStartedAtMs: nowMs - upMs, instances }));
    expect(kindsOf(after(2 * uploadMs))).toContain('close 0.1');
    expect(kindsOf(after(2 * uploadMs)).filter((k) => k.startsWith('move-run'))).toEqual([]);
    expect(after(2 * uploadMs + 1)).toContainEqual(expect.objectContaining({ kind: 'move-run', to: 'releasing' }));
    const notes = after(2 * uploadMs + 1).filter((a) => a.kind === 'note');
    expect(notes).toEqual([
      expect.objectContaining({ note: expect.objectContaining({ key: 'not closed 0.1' }) as object, alarm: true }),
    ]);
  });

  it('publishes only when every part is loaded', () => {
    const run = aRun({ phase: 'loading' });
    const totals = { stored: 10, gone: 0, failed: 0, seen: 3, loaded: 2 };
    const actions = (loaded: number) => kindsIn({ run, instances: three(closed), totals: { ...totals, loaded } });
    expect(actions(2)).toContain('load');
    expect(actions(2)).not.toContain('publish');
    expect(actions(3)).toContain('publish');
  });

  it('F42: loads first when it is resumed long after its end', () => {
    const run = aRun({ phase: 'loading' });
    const nowMs = powerOffAtMs(run) + 36_000_000;
    const totals = { stored: 1, gone: 0, failed: 0, seen: 2, loaded: 1 };
    const instances = three({ phase: 'terminated', manifestKey: 'm' });
    const after = (upMs: number) => kindsIn({ run, nowMs, loopStartedAtMs: nowMs - upMs, instances, totals });
    expect(after(1_000)).toContain('load');
    expect(after(1_000)).not.toContain('publish');
    // Parts that cannot be loaded must not block the rest forever.
    expect(after(3_600_000)).toContain('publish');
  });

  it('ends the crawl with the reason for the uncrawled products', () => {
    const work = { chunks: 60, waiting: 4, granted: 56, bySlot: [] };
    const run = aRun();
    const release = { kind: 'move-run', from: 'crawling', to: 'releasing' };
    const late = aWorld({ run, nowMs: drainAtMs(run) + 1, instances: three(closed), work });
    expect(decide(late)).toContainEqual({ ...release, reason: 'deadline' });
    const stopped = aWorld({ run: aRun({ request: 'stop' }), instances: three(closed), work });
    expect(decide(stopped)).toContainEqual({ ...release, reason: 'cancelled' });
  });

  it('waits for parts with records that may go on at another host, and launches nothing for them', () => {
    const work = { ...ALL_GRANTED, byHost: { products: 0, longestMs: 0, restUntilMs: 0 } };
    const totals = { stored: 0, gone: 0, failed: 0, seen: 2, loaded: 1 };
    const instances = three(closed);
    const actions = kindsIn({ instances, work, totals });
    expect(actions).toContain('load');
    expect(actions.filter((action) => /^(claim|launch|move-run)/.test(action))).toEqual([]);
    expect(kindsIn({ instances, work, totals: { ...totals, loaded: 2 } })).toContain('move-run');
    expect(kindsIn({ instances, work: ALL_GRANTED, totals })).toContain('move-run');
    const run = aRun();
    expect(kindsIn({ run, nowMs: drainAtMs(run) + 1, instances, work, totals })).toContain('move-run');
  });

  it('removes the balancer and tracks the last instances even after the end', () => {
    const world = aWorld({
      run: aRun({ phase: 'completed' }),
      instances: [anInstance(0, { phase: 'terminating', manifestKey: 'm', cloudState: 'terminated' })],
    });
    expect(kindsOf(decide(world))).toEqual(expect.arrayContaining(['remove-balancer', 'move-instance 0.1']));
  });
});

describe('near the deadline', () => {
  it('no longer launches, offers or replaces', () => {
    const run = aRun();
    const nowMs = drainAtMs(run) + 1;
    const lost = anInstance(2, { ...closed, reason: LOSS.silent });
    const instances = [anInstance(0, { lastHeartbeatAtMs: nowMs }), anInstance(1, { lastHeartbeatAtMs: nowMs }), lost];
    const actions = kindsIn({ run, nowMs, instances });
    expect(actions.filter((a) => /^(claim|launch|offer)/.test(a))).toEqual([]);
  });

  it('gives up an instance that does not finish uploading', () => {
    const run = aRun();
    const { uploadMs, lostMs } = aWorld().limits;
    const nowMs = drainAtMs(run) + uploadMs + lostMs + 1;
    const record = anInstance(0, { phase: 'uploading', lastHeartbeatAtMs: nowMs });
    expect(movesIn({ run, nowMs, instances: [record] })).toEqual(['0.1 uploading>lost overdue']);
  });

  it('does not wait for EC2 to confirm the absence of an instance that was never launched', () => {
    const run = aRun();
    const never = { instanceId: null, cloudState: null, publicKey: null, registered: false, attempts: 2 } as const;
    const lost = anInstance(1, { ...never, phase: 'lost', reason: LOSS.notNeeded, manifestKey: 'm' });
    const at = (ms: number, change: Partial<InstanceRecord> = {}): string[] => {
      const instances = [anInstance(0, closed), { ...lost, ...change }];
      return kindsIn({ run, nowMs: run.deadlineAtMs + ms, instances, cloud: null });
    };
    expect(at(30_000)).not.toContain('move-run');
    expect(at(30_001)).toContain('move-run');
    expect(at(30_001, { manifestKey: null })).not.toContain('move-run');
  });
});

describe('chunkLimit', () => {
  const granted = (chunks: number[]) => chunks.map((n, slot) => ({ slot, epoch: 1, chunks: n, products: n * 5 }));
  const alive = [anInstance(2)];
  const dead = [1, 2].map((epoch) => anInstance(2, { ...closed, epoch, reason: LOSS.noHello }));

  it.each([
    ['no more than the floor share while other slots have less', 20, { waiting: 41, held: [20, 0, 0], last: alive }],
    ['one more chunk when all floors are full', 21, { waiting: 1, held: [20, 20, 20], last: alive }],
    ['its part of the share of a dead slot', 30, { waiting: 20, held: [20, 20], last: dead }],
  ])('allows every slot %s', (_what, limit, { waiting, held, last }) => {
    const count = held.reduce((sum, n) => sum + n, 0);
    const work = { chunks: waiting + count, waiting, granted: count, bySlot: granted(held) };
    expect(chunkLimit(aWorld({ instances: [anInstance(0), anInstance(1), ...last], work }))).toBe(limit);
  });
});

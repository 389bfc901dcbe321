import { CloudSnapshot } from '../../../orchestrator/control/model/cloud-snapshot.ts';
import { describe, expect, it } from 'vitest';
import type { Action } from '../../../orchestrator/control/model/actions.ts';
import { decide } from '../../../orchestrator/control/decide/decide.ts';
import { chunkLimit } from '../../../orchestrator/control/sharing/chunk-limits.ts';
import { LOSS } from '../../../orchestrator/control/decide/slot-attempts.ts';
import { drainAtMs, powerOffAtMs } from '../../../orchestrator/control/model/run-deadlines.ts';
import type { InstanceRecord } from '../../../orchestrator/control/model/stores.ts';
import { START_MS, aCloudInstance, aRun, aWorld, anInstance } from './builders.ts';

const NOW = START_MS + 60_000;
const kinds = (actions: readonly Action[]): string[] =>
  actions.map((a) => ('slot' in a ? `${a.kind} ${a.slot}.${a.epoch}` : a.kind));
const moves = (actions: readonly Action[]): string[] =>
  actions.flatMap((a) =>
    a.kind === 'move-instance' ? [`${a.slot}.${a.epoch} ${a.from}>${a.to}${a.reason ? ` ${a.reason}` : ''}`] : [],
  );
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
    const world = aWorld({ run: aRun({ phase: 'launching', balancer: null }), instances: [] });
    expect(kinds(decide(world))).toEqual(['ensure-balancer', 'claim 0.1', 'claim 1.1', 'claim 2.1']);
  });

  it('launches a claimed instance', () => {
    const claimed = anInstance(0, {
      phase: 'claimed',
      attempts: 0,
      instanceId: null,
      registered: false,
      cloudState: null,
      publicKey: null,
    });
    const actions = decide(aWorld({ instances: [claimed, anInstance(1), anInstance(2)] }));
    expect(kinds(actions)).toContain('launch 0.1');
  });

  it('adopts an instance that EC2 shows under the claim instead of launching again', () => {
    const claimed = anInstance(0, {
      phase: 'claimed',
      attempts: 1,
      instanceId: null,
      registered: false,
      cloudState: null,
    });
    const world = aWorld({ instances: [claimed, anInstance(1), anInstance(2)] });
    world.cloud = new CloudSnapshot([aCloudInstance(claimed, { id: 'i-found', state: 'pending' })], NOW);
    const actions = decide(world);
    expect(actions).toContainEqual(
      expect.objectContaining({ kind: 'adopt', slot: 0, instance: expect.objectContaining({ id: 'i-found' }) }),
    );
    expect(kinds(actions)).not.toContain('launch 0.1');
  });

  it('does not retry an unanswered launch before EC2 was polled for the first one', () => {
    const claimed = anInstance(0, {
      phase: 'claimed',
      attempts: 1,
      instanceId: null,
      registered: false,
      cloudState: null,
      launchedAtMs: NOW - 5_000,
    });
    const world = aWorld({ instances: [claimed] });
    world.cloud = new CloudSnapshot([], NOW - 6_000);
    expect(kinds(decide(world))).not.toContain('launch 0.1');
    world.cloud = new CloudSnapshot([], NOW - 1_000);
    expect(kinds(decide(world))).toContain('launch 0.1');
  });

  it('uses the next pool after a refusal, under a new epoch', () => {
    const refused = anInstance(0, {
      ...closed,
      instanceId: null,
      reason: LOSS.refused,
      answer: { kind: 'refused', cause: 'pool', message: 'dry' },
      cloudState: null,
    });
    expect(decide(aWorld({ instances: [refused] }))).toContainEqual({
      kind: 'claim',
      slot: 0,
      epoch: 2,
      pool: { subnetId: 'subnet-a', instanceType: 't4g.nano' },
    });
  });

  it('stops launching when EC2 refuses the last allowed type', () => {
    const denied = anInstance(0, {
      ...closed,
      instanceId: null,
      reason: LOSS.refused,
      answer: { kind: 'refused', cause: 'type', message: 'not eligible' },
      cloudState: null,
    });
    expect(kinds(decide(aWorld({ instances: [denied] })))).not.toContain('claim 0.2');
  });
});

describe('boot', () => {
  const booting: Partial<InstanceRecord> = {
    phase: 'booting',
    publicKey: null,
    registered: false,
    progress: null,
    lastHeartbeatAtMs: null,
  };

  it('records that EC2 shows the instance running', () => {
    const world = aWorld({ instances: three({ ...booting, phase: 'pending' }) });
    expect(moves(decide(world))).toContain('0.1 pending>booting');
  });

  it('waits for the hello until the boot limit, then gives up the instance', () => {
    const record = anInstance(0, booting);
    const limit = aWorld().limits.bootMs;
    expect(moves(decide(aWorld({ nowMs: START_MS + limit, instances: [record] })))).toEqual([]);
    expect(moves(decide(aWorld({ nowMs: START_MS + limit + 1, instances: [record] })))).toEqual([
      '0.1 booting>lost no-hello',
    ]);
  });

  it('replaces an instance without a hello once, not twice', () => {
    const first = anInstance(0, { ...closed, reason: LOSS.noHello });
    expect(kinds(decide(aWorld({ instances: [first] })))).toContain('claim 0.2');
    const second = anInstance(0, { ...closed, epoch: 2, reason: LOSS.noHello });
    expect(kinds(decide(aWorld({ instances: [first, second] })))).not.toContain('claim 0.3');
  });

  it('does not replace an instance that no products wait for', () => {
    const first = anInstance(0, { ...closed, reason: LOSS.noHello });
    const world = aWorld({ instances: [first], work: { chunks: 60, waiting: 0, granted: 60, bySlot: [] } });
    expect(kinds(decide(world))).not.toContain('claim 0.2');
  });
});

describe('serving', () => {
  it('registers a running instance and offers chunks once a target is healthy', () => {
    const world = aWorld({ instances: three({ registered: false }) });
    expect(kinds(decide(world))).toContain('register 0.1');
    expect(kinds(decide(world))).not.toContain('offer');
    expect(kinds(decide(aWorld()))).toContain('offer');
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
      return moves(decide(aWorld({ nowMs: NOW + ms, instances: [record], targets })));
    };
    expect(at(silentMs)).toEqual([]);
    expect(at(silentMs + 1)).toEqual(['0.1 crawling>lost heartbeat-lost']);
  });

  it('counts silence from its own start when it has resumed the run', () => {
    const record = anInstance(0, { phase: 'crawling', lastHeartbeatAtMs: START_MS });
    const later = START_MS + 3_600_000;
    expect(moves(decide(aWorld({ nowMs: later, loopStartedAtMs: later - 1_000, instances: [record] })))).toEqual([]);
  });

  it.each(['stopping', 'stopped', 'shutting-down', 'terminated'] as const)(
    'gives up an instance that EC2 shows as %s',
    (state) => {
      const record = anInstance(0, { phase: 'crawling', lastHeartbeatAtMs: NOW, cloudState: state });
      expect(moves(decide(aWorld({ instances: [record] })))).toContain(`0.1 crawling>lost ec2-${state}`);
    },
  );

  it('does not treat a young instance as gone while EC2 does not show it yet', () => {
    const record = anInstance(0, { phase: 'pending', cloudState: null, launchedAtMs: NOW - 30_000 });
    const world = aWorld({ instances: [record] });
    world.cloud = new CloudSnapshot([], NOW);
    expect(moves(decide(world))).toEqual([]);
  });

  it('ignores a poll that began before EC2 had answered the launch', () => {
    const record = anInstance(0, {
      phase: 'pending',
      cloudState: 'pending',
      launchedAtMs: NOW - 900,
      phaseAtMs: NOW - 100,
    });
    const world = aWorld({ instances: [record] });
    world.cloud = new CloudSnapshot([], NOW - 500);
    expect(moves(decide(world))).toEqual([]);
    // After the answer, but within the minute in which EC2 may not show a new instance.
    world.cloud = new CloudSnapshot([], NOW - 50);
    expect(moves(decide(world))).toEqual([]);
    world.nowMs = NOW + 60_000;
    world.cloud = new CloudSnapshot([], NOW + 59_100);
    expect(moves(decide(world))).toEqual(['0.1 pending>lost ec2-gone']);
  });

  it('checks the manifest that an instance has reported', () => {
    const record = anInstance(0, { phase: 'uploading', manifestKey: 'm', lastHeartbeatAtMs: NOW });
    expect(kinds(decide(aWorld({ instances: [record] })))).toContain('confirm 0.1');
  });
});

describe('winding up', () => {
  it('closes the epoch of a lost instance and terminates it', () => {
    const record = anInstance(0, { phase: 'lost', reason: LOSS.silent });
    expect(kinds(decide(aWorld({ instances: [record] })))).toEqual(
      expect.arrayContaining(['close 0.1', 'terminate 0.1']),
    );
  });

  it('terminates an instance as soon as it is done, while other instances crawl', () => {
    const world = aWorld({
      instances: [
        anInstance(0, { phase: 'done', manifestKey: 'm' }),
        anInstance(1, { phase: 'crawling', lastHeartbeatAtMs: NOW }),
      ],
    });
    expect(kinds(decide(world))).toContain('terminate 0.1');
  });

  it('retries TerminateInstances after the time limit, even without a poll of EC2 since', () => {
    const record = anInstance(0, {
      phase: 'terminating',
      manifestKey: 'm',
      phaseAtMs: START_MS,
      cloudState: 'running',
    });
    const { terminateMs } = aWorld().limits;
    const cloud = new CloudSnapshot([aCloudInstance(record)], START_MS);
    const at = (nowMs: number): string[] => kinds(decide(aWorld({ nowMs, instances: [record], cloud })));
    expect(at(START_MS + terminateMs)).not.toContain('terminate 0.1');
    expect(at(START_MS + terminateMs + 1)).toContain('terminate 0.1');
  });

  it('moves to loading when EC2 shows every instance shutting down', () => {
    const leaving = three({ phase: 'terminating', cloudState: 'shutting-down', manifestKey: 'm' });
    const world = aWorld({ run: aRun({ phase: 'releasing' }), instances: leaving });
    expect(decide(world)).toContainEqual(expect.objectContaining({ kind: 'move-run', to: 'loading' }));
    const staying = aWorld({
      run: aRun({ phase: 'releasing' }),
      instances: three({ phase: 'terminating', cloudState: 'running', manifestKey: 'm' }),
    });
    expect(decide(staying)).not.toContainEqual(expect.objectContaining({ kind: 'move-run' }));
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
    expect(kinds(after(2 * uploadMs))).toContain('close 0.1');
    expect(kinds(after(2 * uploadMs)).filter((k) => k.startsWith('move-run'))).toEqual([]);
    expect(after(2 * uploadMs + 1)).toContainEqual(expect.objectContaining({ kind: 'move-run', to: 'releasing' }));
    const notes = after(2 * uploadMs + 1).filter((a) => a.kind === 'note');
    expect(notes).toEqual([
      expect.objectContaining({ note: expect.objectContaining({ key: 'not closed 0.1' }) as object, alarm: true }),
    ]);
  });

  it('publishes only when every part is loaded', () => {
    const run = aRun({ phase: 'loading' });
    const totals = { stored: 10, gone: 0, failed: 0, seen: 3, loaded: 2 };
    expect(kinds(decide(aWorld({ run, instances: three(closed), totals })))).toContain('load');
    expect(kinds(decide(aWorld({ run, instances: three(closed), totals })))).not.toContain('publish');
    expect(kinds(decide(aWorld({ run, instances: three(closed), totals: { ...totals, loaded: 3 } })))).toContain(
      'publish',
    );
  });

  it('F42: loads first when it is resumed long after its end', () => {
    const run = aRun({ phase: 'loading' });
    const nowMs = powerOffAtMs(run) + 36_000_000;
    const totals = { stored: 1, gone: 0, failed: 0, seen: 2, loaded: 1 };
    const world = (upMs: number) =>
      aWorld({
        run,
        nowMs,
        loopStartedAtMs: nowMs - upMs,
        instances: three({ phase: 'terminated', manifestKey: 'm' }),
        totals,
      });
    expect(kinds(decide(world(1_000)))).toContain('load');
    expect(kinds(decide(world(1_000)))).not.toContain('publish');
    // Parts that cannot be loaded must not block the rest forever.
    expect(kinds(decide(world(3_600_000)))).toContain('publish');
  });

  it('ends the crawl with the reason for the uncrawled products', () => {
    const work = { chunks: 60, waiting: 4, granted: 56, bySlot: [] };
    const run = aRun();
    const late = aWorld({ run, nowMs: drainAtMs(run) + 1, instances: three({ ...closed }), work });
    expect(decide(late)).toContainEqual({ kind: 'move-run', from: 'crawling', to: 'releasing', reason: 'deadline' });
    const stopped = aWorld({ run: aRun({ request: 'stop' }), instances: three(closed), work });
    expect(decide(stopped)).toContainEqual({
      kind: 'move-run',
      from: 'crawling',
      to: 'releasing',
      reason: 'cancelled',
    });
  });

  it('removes the balancer and tracks the last instances even after the end', () => {
    const world = aWorld({
      run: aRun({ phase: 'completed' }),
      instances: [anInstance(0, { phase: 'terminating', manifestKey: 'm', cloudState: 'terminated' })],
    });
    expect(kinds(decide(world))).toEqual(expect.arrayContaining(['remove-balancer', 'move-instance 0.1']));
  });
});

describe('near the deadline', () => {
  it('no longer launches, offers or replaces', () => {
    const run = aRun();
    const nowMs = drainAtMs(run) + 1;
    const lost = anInstance(2, { ...closed, reason: LOSS.silent });
    const instances = [anInstance(0, { lastHeartbeatAtMs: nowMs }), anInstance(1, { lastHeartbeatAtMs: nowMs }), lost];
    const actions = kinds(decide(aWorld({ run, nowMs, instances })));
    expect(actions.filter((a) => /^(claim|launch|offer)/.test(a))).toEqual([]);
  });

  it('gives up an instance that does not finish uploading', () => {
    const run = aRun();
    const { uploadMs, lostMs } = aWorld().limits;
    const nowMs = drainAtMs(run) + uploadMs + lostMs + 1;
    const record = anInstance(0, { phase: 'uploading', lastHeartbeatAtMs: nowMs });
    expect(moves(decide(aWorld({ run, nowMs, instances: [record] })))).toEqual(['0.1 uploading>lost overdue']);
  });

  it('does not wait for EC2 to confirm the absence of an instance that was never launched', () => {
    const run = aRun();
    const never = { instanceId: null, cloudState: null, publicKey: null, registered: false, attempts: 2 } as const;
    const lost = anInstance(1, { ...never, phase: 'lost', reason: LOSS.notNeeded, manifestKey: 'm' });
    const at = (ms: number, change: Partial<InstanceRecord> = {}): string[] => {
      const instances = [anInstance(0, closed), { ...lost, ...change }];
      return kinds(decide(aWorld({ run, nowMs: run.deadlineAtMs + ms, instances, cloud: null })));
    };
    expect(at(30_000)).not.toContain('move-run');
    expect(at(30_001)).toContain('move-run');
    expect(at(30_001, { manifestKey: null })).not.toContain('move-run');
  });
});

describe('chunkLimit', () => {
  const granted = (chunks: number[]) => chunks.map((n, slot) => ({ slot, epoch: 1, chunks: n, products: n * 5 }));

  it('allows no slot more than its floor share while other slots have less', () => {
    expect(chunkLimit(aWorld({ work: { chunks: 61, waiting: 41, granted: 20, bySlot: granted([20, 0, 0]) } }))).toBe(
      20,
    );
  });

  it('allows every slot one more chunk when all floors are full', () => {
    expect(chunkLimit(aWorld({ work: { chunks: 61, waiting: 1, granted: 60, bySlot: granted([20, 20, 20]) } }))).toBe(
      21,
    );
  });

  it('distributes the share of a dead slot among the other slots', () => {
    const dead = anInstance(2, { ...closed, reason: LOSS.noHello });
    const deadAgain = anInstance(2, { ...closed, epoch: 2, reason: LOSS.noHello });
    const instances = [anInstance(0), anInstance(1), dead, deadAgain];
    expect(
      chunkLimit(aWorld({ instances, work: { chunks: 60, waiting: 20, granted: 40, bySlot: granted([20, 20]) } })),
    ).toBe(30);
  });
});

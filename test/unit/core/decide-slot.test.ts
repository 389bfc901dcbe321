import { CloudSnapshot } from '../../../orchestrator/core/model/cloud-snapshot.ts';
import { describe, expect, it } from 'vitest';
import type { Action } from '../../../orchestrator/core/model/actions.ts';
import { decide } from '../../../orchestrator/core/decide/decide.ts';
import { chunkLimit } from '../../../orchestrator/core/decide/shares/chunk-limits.ts';
import { decideSlot } from '../../../orchestrator/core/decide/decide-slot.ts';
import { admitLaunches } from '../../../orchestrator/core/decide/launches/launch-admission.ts';
import { quotaGate } from '../../../orchestrator/core/decide/launches/launch-gate.ts';
import { drainAtMs, powerOffAtMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import { LOSS, hasAttemptsLeft } from '../../../orchestrator/core/decide/slot-attempts.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import type { LaunchFailure } from '../../../orchestrator/core/cloud/compute.ts';
import type { TargetHealth } from '../../../orchestrator/core/cloud/load-balancer.ts';
import {
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
const MINUTE = 60_000;
const THROTTLED: LaunchFailure = { kind: 'refused', cause: 'throttled', message: 'RequestLimitExceeded' };

const said = (actions: readonly Action[]): string[] =>
  actions.flatMap((a) => (a.kind === 'move-instance' ? movesOf([a]) : kindsOf([a])));

const of = (world: World, slot = 0): string[] =>
  said(
    decideSlot(
      world,
      slot,
      world.fleet.all.findLast((r) => r.slot === slot),
    ),
  );

describe('a claim', () => {
  it.each<[string, LaunchFailure, string]>([
    [
      'F9: whose token is used',
      { kind: 'unknown', message: 'IdempotentParameterMismatch', tokenUsed: true },
      'launch-token-used',
    ],
    [
      'F2: that is refused after a call without an answer',
      { kind: 'refused', cause: 'quota', message: 'VcpuLimitExceeded', mayExist: true },
      'launch-refused',
    ],
  ])('%s is not retried; after a minute without tags it is given up', (_, answer, reason) => {
    const used = aClaim(0, { attempts: 2, answer, launchedAtMs: START_MS });
    const at = (seenAtMs: number): string[] =>
      of(aWorld({ instances: [used], nowMs: seenAtMs, cloud: new CloudSnapshot([], seenAtMs) }));
    expect(at(START_MS + MINUTE)).toEqual([]);
    expect(at(START_MS + MINUTE + 1)).toEqual([`0.1 claimed>lost ${reason}`]);
  });

  it('F7: is retried while there is time when it is throttled; others are given up after twelve calls', () => {
    const run = aRun();
    const late = (answer: LaunchFailure, nowMs: number): string[] => {
      const record = aClaim(0, { attempts: 12, answer, launchedAtMs: nowMs - MINUTE });
      return of(aWorld({ run, instances: [record], nowMs, cloud: new CloudSnapshot([], nowMs - 1) }));
    };
    expect(late(THROTTLED, NOW)).toEqual(['launch 0.1']);
    expect(late({ kind: 'unknown', message: 'timeout' }, NOW)).toEqual(['0.1 claimed>lost launch-unanswered']);
    const tooLate = drainAtMs(run) - aWorld().limits.bootMs;
    expect(late(THROTTLED, tooLate)).toEqual(['0.1 claimed>lost launch-unanswered']);
  });

  it.each<[string, WorldChange]>([
    ['the run ends', { run: aRun({ request: 'cancel' }) }],
    ['no products wait any more', { work: ALL_GRANTED }],
    ['EC2 has refused another one permanently', { instances: [aRefusal(1, 'type', NOW)] }],
  ])('F7: that is throttled is given up when %s, after EC2 was polled', (_, change) => {
    const record = aClaim(0, { attempts: 40, answer: THROTTLED, launchedAtMs: NOW - MINUTE });
    const instances = [record, ...(change.instances ?? [])];
    const at = (seenAtMs: number): string[] =>
      of(aWorld({ ...change, instances, nowMs: NOW, cloud: new CloudSnapshot([], seenAtMs) }));
    expect(at(NOW - 1)).toEqual(['0.1 claimed>lost not-needed']);
    expect(at(NOW - MINUTE)).toEqual([]);
  });

  it('with a stored instance is adopted again until it is pending, whatever state EC2 shows', () => {
    const half = aClaim(0, { attempts: 1, launchedAtMs: NOW, instanceId: 'i-0-1', cloudState: 'running' });
    expect(of(aWorld({ instances: [half], nowMs: NOW }))).toEqual(['adopt 0.1']);
    const pending = { ...half, phase: 'pending' } as const;
    expect(of(aWorld({ instances: [pending], nowMs: NOW }))).not.toContain('adopt 0.1');
  });

  it.each<LaunchFailure>([
    { kind: 'unknown', message: 'timeout' },
    { kind: 'unknown', message: 'IdempotentParameterMismatch', tokenUsed: true },
    { kind: 'refused', cause: 'quota', message: 'VcpuLimitExceeded', mayExist: true },
  ])('does not delay the results when its fate is unknown 30 s after the deadline: $message', (answer) => {
    const run = aRun();
    const at = (ms: number): string[] => {
      const nowMs = run.deadlineAtMs + ms;
      const record = aClaim(0, { attempts: 2, answer, launchedAtMs: drainAtMs(run) - 1 });
      return of(aWorld({ run, instances: [record], nowMs, cloud: null }));
    };
    expect(at(30_000)).toEqual([]);
    expect(at(30_001)).toEqual(['0.1 claimed>lost not-needed']);
  });

  it('that may have launched is not retried when the run ends', () => {
    const answer = { kind: 'unknown', message: 'timeout' } as const;
    const record = aClaim(0, { attempts: 2, answer, launchedAtMs: NOW - MINUTE });
    const run = aRun({ request: 'stop' });
    expect(of(aWorld({ run, instances: [record], nowMs: NOW }))).toEqual(['0.1 claimed>lost not-needed']);
  });

  it('F7: waits longer before each retry, with a different delay per slot', () => {
    const waits = (slot: number): number[] =>
      [1, 2, 3, 4, 5, 6].map((attempts) => {
        const record = aClaim(slot, { attempts, answer: THROTTLED, launchedAtMs: START_MS });
        let ms = 0;
        const at = (): string[] => {
          const nowMs = START_MS + ms;
          return of(aWorld({ instances: [record], nowMs, cloud: new CloudSnapshot([], nowMs) }), slot);
        };
        while (at().length === 0) ms += 50;
        return ms;
      });
    const [zero, one] = [waits(0), waits(1)];
    for (const [i, waitMs] of zero.entries()) {
      expect(waitMs).toBeGreaterThanOrEqual(250 * 2 ** i);
      expect(waitMs).toBeLessThanOrEqual(500 * 2 ** i + 50);
    }
    expect(zero).not.toEqual(one);
  });

  it('F6: that the quota delays is replaced after ten minutes, with a fresh bundle URL', () => {
    const refused = aRefusal(1, 'quota', START_MS);
    const instances = [aClaim(0, { claimedAtMs: START_MS }), refused];
    const run = aRun({ deadlineAtMs: START_MS + 480 * MINUTE });
    const at = (ms: number): string[] => of(aWorld({ run, instances, nowMs: START_MS + ms }));
    expect(at(10 * MINUTE)).not.toContain('0.1 claimed>lost not-needed');
    expect(at(10 * MINUTE + 1)).toEqual(['0.1 claimed>lost not-needed']);
    expect(at(180 * MINUTE)).toEqual(['0.1 claimed>lost not-needed']);
  });

  it('left unsent by an earlier main server is replaced when it is old; one queued by this loop is not', () => {
    const run = aRun({ deadlineAtMs: START_MS + 480 * MINUTE });
    const instances = [aClaim(0, { claimedAtMs: START_MS })];
    const at = (loopStartedAtMs: number): string[] =>
      of(aWorld({ run, instances, loopStartedAtMs, nowMs: START_MS + 60 * MINUTE }));
    expect(at(START_MS + 60 * MINUTE)).toEqual(['0.1 claimed>lost not-needed']);
    expect(at(START_MS)).toEqual(['launch 0.1']);
  });

  it('F5: that was not sent yet leaves a pool that has become dry', () => {
    const instances = [aClaim(0), aRefusal(1, 'pool', NOW - 1_000)];
    expect(of(aWorld({ instances }))).toEqual(['0.1 claimed>lost pool-dry']);
    expect(of(aWorld({ instances, nowMs: NOW + 5 * MINUTE }))).toEqual(['launch 0.1']);
  });

  it('is not made after a permanent refusal, nor while every pool is dry', () => {
    const first = (instances: InstanceRecord[]): string[] => of(aWorld({ instances }));
    expect(first([])).toEqual(['claim 0.1']);
    expect(first([aRefusal(1, 'type', NOW - 1_000)])).toEqual([]);
    const dry = ['subnet-a', 'subnet-c'].map((subnetId, i) => {
      const record = aRefusal(i + 1, 'pool', NOW - 1_000);
      return { ...record, request: { ...record.request, subnetId } };
    });
    expect(first(dry)).toEqual([]);
    expect(first(dry.slice(1))).toEqual(['claim 0.1']);
  });
});

describe('F6: after a refusal for the quota', () => {
  const refused = aRefusal(1, 'quota', NOW);
  const pauseMs = aWorld().limits.quotaPauseMs;
  const at = (world: World): string => quotaGate(world, world.regions[0]);
  const gate = (instances: InstanceRecord[], nowMs: number): string => at(aWorld({ instances, nowMs }));

  it('holds launches until an instance has ended or ten minutes have passed', () => {
    const alive = anInstance(0);
    const ended = anInstance(0, { phase: 'terminated', terminatedAtMs: NOW + 10 });
    expect(gate([alive], NOW)).toBe('open');
    expect(gate([alive, refused], NOW + pauseMs - 1)).toBe('held');
    expect(gate([alive, refused], NOW + pauseMs)).toBe('one');
    expect(gate([ended, refused], NOW + 20)).toBe('one');
    expect(gate([ended, refused, aRefusal(2, 'quota', NOW + 15)], NOW + 20)).toBe('held');
  });

  it('admits one launch at a time, claimed ones first', () => {
    const world = aWorld({ instances: [refused, aClaim(2), aClaim(0)], nowMs: NOW + pauseMs });
    const wishes: Action[] = [
      { kind: 'claim', slot: 1, epoch: 2, pool: null },
      { kind: 'launch', slot: 0, epoch: 1 },
      { kind: 'launch', slot: 2, epoch: 1 },
      { kind: 'load' },
    ];
    expect(said(admitLaunches(world, wishes))).toEqual(['launch 0.1', 'load']);
    const asked = aWorld({
      instances: [refused, aClaim(3, { attempts: 1, launchedAtMs: NOW }), aClaim(0)],
      nowMs: NOW + pauseMs,
    });
    expect(said(admitLaunches(asked, wishes.slice(0, 2)))).toEqual([]);
    expect(said(admitLaunches(asked, [{ kind: 'launch', slot: 3, epoch: 1 }]))).toEqual(['launch 3.1']);
  });

  it('gives up a claim that no products wait for, and keeps one that is needed', () => {
    const instances = [aClaim(0), refused];
    const work = ALL_GRANTED;
    expect(of(aWorld({ instances, nowMs: NOW + 1 }))).toEqual([]);
    expect(of(aWorld({ instances, nowMs: NOW + 1, work }))).toEqual(['0.1 claimed>lost not-needed']);
    // Also when one launch is allowed again: there would be no products for it.
    const later = NOW + pauseMs;
    expect(of(aWorld({ instances, nowMs: later, work }))).toEqual(['0.1 claimed>lost not-needed']);
    const fresh = [aClaim(0, { claimedAtMs: NOW }), refused];
    expect(of(aWorld({ instances: fresh, nowMs: later }))).toEqual(['launch 0.1']);
  });

  it('distributes the products among the existing instances', () => {
    const instances = [anInstance(0), refused, aClaim(2)];
    expect(chunkLimit(aWorld({ instances, nowMs: NOW + 1 }))).toBe(60);
  });
});

describe('F5: after refusals by dry pools', () => {
  it('attempts are limited by time, not by number', () => {
    const epochs = Array.from({ length: 30 }, (_, i) => aRefusal(0, 'pool', START_MS + i * MINUTE, { epoch: i + 1 }));
    const run = aRun();
    const world = aWorld({ run, instances: epochs, nowMs: START_MS + 60 * MINUTE });
    expect(hasAttemptsLeft(world, 0)).toBe(true);
    expect(hasAttemptsLeft({ ...world, nowMs: drainAtMs(run) - world.limits.bootMs }, 0)).toBe(false);
  });

  it('one slot retries a dry pool, the other slots wait for the result', () => {
    const record = aRefusal(0, 'pool', NOW);
    const instances = [{ ...record, request: { ...record.request, subnetId: 'subnet-a' } }];
    const pool = { region: 'ap-northeast-1', subnetId: 'subnet-a', instanceType: 't4g.nano' };
    const wishes = [0, 1, 2].map((slot): Action => ({ kind: 'claim', slot, epoch: 2, pool }));
    expect(said(admitLaunches(aWorld({ instances }), wishes))).toEqual(['claim 0.2']);
    expect(said(admitLaunches(aWorld({ instances: [] }), wishes))).toHaveLength(3);
  });
});

describe('F45: the cap', () => {
  it('admits only the claims that it can pay for, and says why not more', () => {
    const run = aRun();
    const capped = { ...run, settings: { ...run.settings, run: { ...run.settings.run, maxCost: 0.25 } } };
    const wishes = [0, 1, 2, 3].map((slot): Action => ({ kind: 'claim', slot, epoch: 1, pool: null }));
    const admitted = admitLaunches(aWorld({ run: capped, instances: [] }), wishes);
    // The balancer for five hours is $0.122; an instance until deadline and grace $0.048.
    expect(said(admitted)).toEqual(['claim 0.1', 'claim 1.1', 'note']);
    expect(admitted.at(-1)).toMatchObject({
      alarm: true,
      note: { detail: expect.stringContaining('keeps 2 instances from being launched') },
    });
  });
});

describe('F13: a target that is never healthy', () => {
  const limit = aWorld().limits.healthyMs;
  const world = (own: TargetHealth, change: WorldChange = {}, other: Partial<InstanceRecord> = {}): World => {
    const nowMs = change.nowMs ?? START_MS + limit + 2;
    const instances = [
      anInstance(0, { lastHeartbeatAtMs: nowMs }),
      anInstance(1, { phase: 'crawling', phaseAtMs: START_MS + 1, lastHeartbeatAtMs: nowMs, ...other }),
    ];
    const targets = new Map(Object.entries({ 'i-0-1': own, 'i-1-1': 'healthy' as const }));
    return aWorld({ nowMs, instances, targets, ...change });
  };

  it.each(['unhealthy', 'unused'] as const)(
    'is given up when it was %s for too long while other instances crawl',
    (own) => {
      expect(of(world(own))).toContain('0.1 ready>lost never-healthy');
      expect(of(world(own, { nowMs: START_MS + limit }))).not.toContain('0.1 ready>lost never-healthy');
    },
  );

  it('is not given up while no other target is healthy, nor for a health that ELBv2 has not reported', () => {
    expect(of(world('unhealthy', {}, { phase: 'ready' }))).not.toContain('0.1 ready>lost never-healthy');
    expect(of(world('initial'))).not.toContain('0.1 ready>lost never-healthy');
    expect(of(world('unhealthy', { loopStartedAtMs: START_MS + 10 }))).not.toContain('0.1 ready>lost never-healthy');
  });

  it('is not one that was healthy before: that one flaps and still sends heartbeats', () => {
    const flapping = world('unhealthy', { onceHealthy: new Set(['i-0-1']) });
    expect(of(flapping)).not.toContain('0.1 ready>lost never-healthy');
  });
});

describe('F34: an instance that shares an address', () => {
  it('is given up even during boot', () => {
    const instances = [anInstance(0), anInstance(1, { phase: 'booting', publicKey: null, address: '127.1.0.1' })];
    const moves = decide(aWorld({ instances })).filter((a) => a.kind === 'move-instance');
    expect(said(moves)).toEqual(['1.1 booting>lost shared-address']);
    expect(moves[0]).toMatchObject({ detail: expect.stringContaining('of slot 0 epoch 1 (i-0-1)') });
  });
});

describe('F8, F43: an instance that EC2 does not show', () => {
  const gone = (record: InstanceRecord, nowMs: number): string[] =>
    of(aWorld({ instances: [record], nowMs, cloud: new CloudSnapshot([], nowMs) }));

  it('is not treated as gone in its first minute, whatever the main server has received from it', () => {
    const record = anInstance(0, { phase: 'crawling', lastHeartbeatAtMs: NOW, phaseAtMs: START_MS + 2_000 });
    expect(gone(record, START_MS + 59_000)).toEqual([]);
    expect(gone(record, START_MS + 61_000)).toEqual(['0.1 crawling>lost ec2-gone']);
  });

  it('is not treated as ended when it is missing just after TerminateInstances', () => {
    const { terminateMs } = aWorld().limits;
    const told = anInstance(0, { phase: 'terminating', manifestKey: 'm', phaseAtMs: START_MS + 10 * MINUTE });
    expect(gone(told, told.phaseAtMs + 1_000)).toEqual([]);
    expect(gone(told, told.phaseAtMs + terminateMs + 1)).toEqual(['0.1 terminating>terminated']);
    expect(gone({ ...told, cloudState: 'shutting-down' }, told.phaseAtMs + 1_000)).toEqual([
      '0.1 terminating>terminated',
    ]);
  });
});

describe('F12: a heartbeat from the future', () => {
  const { heartbeatMs, lostMs } = aWorld().limits;
  const nowMs = START_MS + 3 * lostMs;
  const heardAt = (atMs: number): string[] =>
    of(aWorld({ nowMs, instances: [anInstance(0, { phase: 'crawling', lastHeartbeatAtMs: atMs })] }));

  it('counts as current when the clock was set back slightly', () => {
    expect(heardAt(nowMs + 500)).toEqual([]);
    expect(heardAt(nowMs + heartbeatMs)).toEqual([]);
  });

  it('is ignored when the clock was set back further', () => {
    expect(heardAt(nowMs + heartbeatMs + 1)).toEqual(['0.1 crawling>lost heartbeat-lost']);
  });
});

describe('F43: an instance that is to end', () => {
  const told = anInstance(0, { phase: 'terminating', manifestKey: 'm', phaseAtMs: NOW });
  const at = (seenAtMs: number, change: Partial<InstanceRecord> = {}): string[] => {
    const record = { ...told, ...change };
    const shown = aCloudInstance(record, { state: record.cloudState ?? 'running' });
    return of(aWorld({ instances: [record], nowMs: NOW + MINUTE, cloud: new CloudSnapshot([shown], seenAtMs) }));
  };

  it('is terminated again when EC2 still shows it running after the call', () => {
    expect(at(NOW + 1)).toEqual(['terminate 0.1']);
    expect(at(NOW)).toEqual([]);
    expect(at(NOW + 1, { cloudState: 'shutting-down' })).toEqual([]);
  });

  it('does not delay the results beyond the time limit of its termination', () => {
    const { terminateMs } = aWorld().limits;
    const released = (afterMs: number): boolean =>
      decide(aWorld({ run: aRun({ phase: 'releasing' }), instances: [told], nowMs: NOW + afterMs })).some(
        (a) => a.kind === 'move-run' && a.to === 'loading',
      );
    expect(released(terminateMs)).toBe(false);
    expect(released(terminateMs + 1)).toBe(true);
  });
});

describe('F8: a launch without an answer', () => {
  const lost = aClaim(0, {
    phase: 'lost',
    phaseAtMs: NOW,
    attempts: 12,
    reason: LOSS.unanswered,
    answer: { kind: 'unknown', message: 'timeout' },
    manifestKey: 'm',
  });

  it.each<LaunchFailure>([
    { kind: 'unknown', message: 'timeout' },
    { kind: 'refused', cause: 'quota', message: 'VcpuLimitExceeded', mayExist: true },
  ])('is over once a later poll does not show it, not before a poll: $message', (answer) => {
    const at = (nowMs: number, seenAtMs: number): string[] =>
      of(aWorld({ instances: [{ ...lost, answer }], nowMs, cloud: new CloudSnapshot([], seenAtMs) }));
    const late = NOW + 2 * MINUTE;
    expect(at(late, NOW - 1)).toEqual([]);
    expect(at(late, NOW + MINUTE)).toEqual([]);
    expect(at(late, NOW + MINUTE + 1)).toEqual(['0.1 lost>terminated']);
    const off = powerOffAtMs(aRun());
    expect(at(off, NOW)).toEqual([]);
    expect(at(off + 1, NOW)).toEqual(['0.1 lost>terminated']);
  });

  it('is terminated when its instance appears after all', () => {
    const world = (state: 'running' | 'shutting-down', instanceId: string | null): World => {
      const record = { ...lost, phase: 'terminated' as const, instanceId, cloudState: state };
      const cloud = new CloudSnapshot([aCloudInstance(record, { id: 'i-late', state })], NOW);
      return aWorld({ instances: [record], nowMs: NOW, cloud });
    };
    const actions = decideSlot(world('running', null), 0, world('running', null).fleet.all[0], true);
    expect(actions).toContainEqual({ kind: 'terminate', slot: 0, epoch: 1, instanceId: 'i-late' });
    expect(of(world('running', 'i-late'))).toContain('terminate 0.1');
    expect(of(world('shutting-down', 'i-late'))).not.toContain('terminate 0.1');
  });
});

import { FleetSnapshot } from '../../../orchestrator/core/model/fleet-snapshot.ts';
import { describe, expect, it } from 'vitest';
import {
  canReassign,
  haltReason,
  isBanOver,
  isBeingReplaced,
  isReturnExpected,
  judgeSuspicion,
  mustReturnProducts,
} from '../../../orchestrator/core/decide/ban-policy.ts';
import { decide } from '../../../orchestrator/core/decide/decide.ts';
import { chunkLimit } from '../../../orchestrator/core/decide/shares/chunk-limits.ts';
import type { RefusalCause } from '../../../orchestrator/core/cloud/compute.ts';
import type { AddressIncident, InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { ALL_GRANTED, anIncident, anInstance, aRun, aWorld, START_MS, type WorldChange } from './builders.ts';

/** Ten minutes after the start: every address has had time for right pages. */
const NOW = START_MS + 600_000;
const SINCE = NOW - 10_000;

const PROGRESS = { ...NO_PROGRESS, assigned: 10, pending: 5, okAgoMs: 12_000 };
const CRAWLING = { lastHeartbeatAtMs: NOW, progress: PROGRESS, phase: 'crawling' } as const;
const BANNED = { ...CRAWLING, phase: 'banned' } as const;
const CLAIMED = { phase: 'claimed', publicKey: null, instanceId: null, progress: null } as const;
const refusal = (cause: RefusalCause) => ({ ...CLAIMED, answer: { kind: 'refused', cause, message: 'no' } }) as const;
const ENDED = { phase: 'terminated', manifestKey: 'm', progress: PROGRESS } as const;
const at = (change: Partial<AddressIncident>): AddressIncident => anIncident({ atMs: SINCE, ...change });

/** Crawling instances got their last right page just before the incident, `right-since` after it. */
const SHAPES = {
  fine: CRAWLING,
  'right-since': { ...CRAWLING, progress: { ...PROGRESS, okAgoMs: 1_000 } },
  banned: { ...BANNED, incident: at({}) },
  'banned-long': { ...BANNED, incident: at({ untilMs: NOW + 86_400_000 }) },
  'all-gone': { ...BANNED, incident: at({ rule: 'all-gone' }) },
  suspect: { ...CRAWLING, incident: at({ verdict: 'suspect', untilMs: null }) },
  over: { ...CRAWLING, incident: at({ returnedAtMs: NOW, overAtMs: NOW }) },
  'long-over': { ...CRAWLING, incident: at({ atMs: NOW - 600_001, returnedAtMs: NOW, overAtMs: NOW }) },
  booting: { phase: 'booting', publicKey: null, progress: null, lastHeartbeatAtMs: null },
  claimed: CLAIMED,
  throttled: refusal('throttled'),
  refused: refusal('pool'),
  lost: { ...ENDED, reason: 'heartbeat-lost' },
  done: { ...ENDED, progress: { ...PROGRESS, pending: 0 } },
} satisfies Record<string, Partial<InstanceRecord>>;
type Shape = keyof typeof SHAPES;

/** Tests may change what it returns. */
const of = (shape: Shape, slot: number): InstanceRecord => anInstance(slot, structuredClone(SHAPES[shape]));

function world(
  shapes: readonly Shape[],
  onBan: 'cool-down' | 'replace' | 'stop' = 'cool-down',
  change: WorldChange = {},
): World {
  const run = aRun();
  run.settings.site.onBan = onBan;
  run.plan.instances = shapes.length;
  const work = { chunks: 60, waiting: 10, granted: 50, bySlot: [] };
  return aWorld({ run, nowMs: NOW, instances: shapes.map(of), work, ...change });
}

describe('haltReason', () => {
  it.each<[string, Shape[], 'cool-down' | 'replace' | 'stop', 'banned' | 'site-changed' | null]>([
    ['no open incident', ['fine', 'fine'], 'cool-down', null],
    ['one of two banned', ['banned', 'fine'], 'cool-down', null],
    ['one of two banned, with on_ban: stop', ['banned', 'fine'], 'stop', 'banned'],
    ['all banned', ['banned', 'banned'], 'cool-down', 'banned'],
    ['all banned, to be replaced', ['banned', 'banned'], 'replace', 'banned'],
    ['the only one banned, to be replaced', ['banned'], 'replace', null],
    ['the only one banned, which can cool down', ['banned'], 'cool-down', null],
    ['the only one banned until the end', ['banned-long'], 'cool-down', 'banned'],
    ['two of five banned', ['banned', 'banned', 'fine', 'fine', 'fine'], 'cool-down', 'banned'],
    ['two of five banned, both to be replaced', ['banned', 'banned', 'fine', 'fine', 'fine'], 'replace', 'banned'],
    ['two of six banned', ['banned', 'banned', 'fine', 'fine', 'fine', 'fine'], 'cool-down', null],
    ['one of two banned, two more booting', ['banned', 'fine', 'booting', 'booting'], 'cool-down', null],
    ['two of five with nothing but missing pages', ['all-gone', 'all-gone', 'fine', 'fine', 'fine'], 'cool-down', null],
    ['two of five banned, one long ago', ['banned', 'long-over', 'fine', 'fine', 'fine'], 'cool-down', null],
    ['one of two banned, and the other one a few minutes before', ['banned', 'over'], 'cool-down', 'banned'],
    ['all banned, another one booting', ['banned', 'booting'], 'cool-down', null],
    ['all banned, another one claimed', ['banned', 'claimed'], 'cool-down', null],
    ['all banned, another one throttled by EC2', ['banned', 'throttled'], 'cool-down', null],
    ['all banned, another one refused by EC2', ['banned', 'banned', 'refused'], 'cool-down', 'banned'],
    ['all banned, a lost one about to be replaced', ['banned', 'lost'], 'cool-down', null],
    ['the last one banned, which can cool down', ['banned', 'done'], 'cool-down', null],
    ['the last two banned', ['banned', 'banned', 'done'], 'cool-down', 'banned'],
    ['the last one suspect', ['suspect', 'done'], 'cool-down', null],
    ['one suspect, one fine', ['suspect', 'fine'], 'cool-down', null],
    ['all suspect', ['suspect', 'suspect'], 'cool-down', 'site-changed'],
    ['the only one suspect', ['suspect'], 'cool-down', 'site-changed'],
    ['all suspect or banned', ['suspect', 'banned'], 'cool-down', null],
    ['all suspect, another one booting', ['suspect', 'booting'], 'cool-down', null],
    ['no instance', [], 'cool-down', null],
  ])('%s', (_name, shapes, onBan, expected) => {
    expect(haltReason(world(shapes, onBan))).toBe(expected);
  });

  it('F6: does not wait for a claim that the quota blocks', () => {
    const refused = {
      ...of('done', 2),
      instanceId: null,
      publicKey: null,
      reason: 'launch-refused',
      answer: { kind: 'refused' as const, cause: 'quota' as const, message: 'VcpuLimitExceeded' },
      launchedAtMs: NOW - 60_000,
    };
    const all = world(['suspect', 'suspect', 'done', 'claimed']);
    expect(haltReason(all)).toBeNull();
    expect(haltReason({ ...all, fleet: all.fleet.with(refused) })).toBe('site-changed');
  });

  it('is null for a run that is already ending', () => {
    const stopped = world(['banned'], 'cool-down');
    expect(haltReason({ ...stopped, run: { ...stopped.run, request: 'stop' } })).toBeNull();
  });

  it('is null when everything is crawled', () => {
    const idle = world(['banned'], 'cool-down', { work: ALL_GRANTED });
    idle.fleet.all[0]!.progress!.pending = 0;
    expect(haltReason(idle)).toBeNull();
  });

  it('stops launches, offers and everything else that would lead to a request', () => {
    const actions = decide(world(['banned', 'banned']));
    expect(actions).toContainEqual({ kind: 'halt', reason: 'banned' });
    expect(actions.map((a) => a.kind)).not.toContain('offer');
    expect(actions.map((a) => a.kind)).not.toContain('claim');
  });
});

describe('judgeSuspicion', () => {
  it.each<[string, Shape[], 'banned' | null]>([
    ['another address has had a right page since', ['suspect', 'right-since'], 'banned'],
    ['the other addresses had theirs before', ['suspect', 'fine'], null],
    ['all are suspect', ['suspect', 'suspect'], null],
    ['the other addresses are banned', ['suspect', 'banned', 'banned'], 'banned'],
    ['the other instances have finished', ['suspect', 'done'], 'banned'],
    ['another one is booting', ['suspect', 'booting'], null],
    ['it is the only one', ['suspect'], null],
    ['there is no suspicion', ['fine', 'right-since'], null],
    ['the right page is of an instance given up', ['suspect', 'lost'], null],
  ])('when %s', (_name, shapes, expected) => {
    const seen = world(shapes);
    expect(judgeSuspicion(seen, seen.fleet.all[0]!)).toBe(expected);
  });

  it('becomes a ban when no other address gave evidence within the heartbeat limit', () => {
    const seen = world(['suspect', 'fine']);
    const late = { ...seen, nowMs: SINCE + seen.limits.lostMs + 1 };
    expect(judgeSuspicion(late, late.fleet.all[0]!)).toBe('banned');
    // A main server that has just resumed the run has no heartbeats of the other instances yet.
    expect(judgeSuspicion({ ...late, loopStartedAtMs: late.nowMs - 1 }, late.fleet.all[0]!)).toBeNull();
  });
});

describe('returning products', () => {
  const banned = (change: Partial<InstanceRecord> = {}) => ({ ...of('banned', 0), ...change });
  const none = { ...NO_PROGRESS, assigned: 5, pending: 0 };

  it('is ordered once for a banned address, and not for one that is replaced', () => {
    const released = banned({ incident: anIncident({ returnedAtMs: NOW }) });
    expect(mustReturnProducts(world(['banned', 'fine']), banned())).toBe(true);
    expect(mustReturnProducts(world(['banned', 'fine']), released)).toBe(false);
    expect(mustReturnProducts(world(['banned', 'fine'], 'replace'), banned())).toBe(false);
    expect(mustReturnProducts(world(['suspect', 'fine']), of('suspect', 0))).toBe(false);
  });

  it('is complete when the instance reports that it holds none', () => {
    expect(canReassign(world(['banned', 'fine']), banned())).toBe(false);
    expect(canReassign(world(['banned', 'fine']), banned({ progress: none }))).toBe(true);
  });

  it('keeps the other instances from finishing', () => {
    expect(isReturnExpected(world(['fine', 'fine']))).toBe(false);
    expect(isReturnExpected(world(['suspect', 'done']))).toBe(true);
    const quiet = world(['banned', 'done']);
    quiet.fleet.all[0]!.progress = none;
    expect(isReturnExpected(quiet)).toBe(true);
    quiet.fleet.all[0]!.incident = anIncident({ returnedAtMs: NOW });
    expect(isReturnExpected(quiet)).toBe(false);
  });

  it('keeps idle addresses in reserve while others crawl on a site that bans', () => {
    expect(isReturnExpected(world(['over', 'done']))).toBe(true);
  });

  it('may not happen before the end of the cool-down: after a while the instance keeps its products', () => {
    const seen = world(['banned', 'fine']);
    const over = anIncident({ atMs: SINCE, overAtMs: NOW });
    expect(isBanOver(seen, banned({ incident: over, progress: none }))).toBe(false);
    expect(isBanOver(seen, banned({ incident: over }))).toBe(false);
    expect(isBanOver({ ...seen, nowMs: NOW + seen.limits.lostMs + 1 }, banned({ incident: over }))).toBe(true);
    expect(isBanOver(seen, banned({ incident: { ...over, returnedAtMs: NOW }, progress: none }))).toBe(true);
    expect(isBanOver(seen, banned())).toBe(false);
  });
});

describe('replacing', () => {
  it('ends after three addresses in one slot', () => {
    const seen = world(['banned', 'fine'], 'replace');
    expect(isBeingReplaced(seen, seen.fleet.all[0]!)).toBe(true);
    const old = [1, 2].map((epoch) => anInstance(0, { epoch, phase: 'terminated', reason: 'banned' }));
    const last = { ...of('banned', 0), epoch: 3 };
    const worn = { ...seen, fleet: new FleetSnapshot([...old, last, seen.fleet.all[1]!]) };
    expect(isBeingReplaced(worn, last)).toBe(false);
    expect(mustReturnProducts(worn, last)).toBe(true);
  });

  it('waits until EC2 shows the banned machine shutting down', () => {
    const seen = world(['fine', 'fine'], 'replace');
    const gone = (change: Partial<InstanceRecord>) => ({
      ...seen,
      fleet: seen.fleet.with(anInstance(0, { reason: 'banned', manifestKey: 'm', ...change })),
    });
    const claims = (w: World) => decide(w).filter((a) => a.kind === 'claim');
    expect(claims(gone({ phase: 'done' }))).toEqual([]);
    expect(claims(gone({ phase: 'terminating', cloudState: 'running' }))).toEqual([]);
    expect(claims(gone({ phase: 'terminating', cloudState: 'shutting-down' }))).toHaveLength(1);
  });
});

describe('shares', () => {
  it('exclude an address that may not crawl, but not one that is being replaced', () => {
    const work = { chunks: 60, waiting: 60, granted: 0, bySlot: [] };
    expect(chunkLimit(world(['fine', 'fine', 'fine'], 'cool-down', { work }))).toBe(20);
    expect(chunkLimit(world(['banned', 'fine', 'fine'], 'cool-down', { work }))).toBe(30);
    expect(chunkLimit(world(['suspect', 'fine', 'fine'], 'cool-down', { work }))).toBe(30);
    expect(chunkLimit(world(['banned', 'fine', 'fine'], 'replace', { work }))).toBe(20);
  });
});

describe('an instance with an open incident', () => {
  it('moves to banned and back, with the rule in the event', () => {
    const seen = world(['banned', 'over']);
    seen.fleet.all[0]!.phase = 'crawling';
    seen.fleet.all[1]!.phase = 'banned';
    expect(decide(seen).filter((a) => a.kind === 'move-instance')).toEqual([
      expect.objectContaining({
        slot: 0,
        from: 'crawling',
        to: 'banned',
        reason: null,
        detail: expect.stringMatching(/^status-403/),
      }),
      expect.objectContaining({ slot: 1, from: 'banned', to: 'crawling', reason: null }),
    ]);
  });

  it('is given up when it does not return its products', () => {
    const seen = world(['banned', 'fine']);
    const nowMs = SINCE + seen.limits.uploadMs + seen.limits.lostMs + 1;
    seen.fleet.all.forEach((i) => (i.lastHeartbeatAtMs = nowMs));
    expect(decide({ ...seen, nowMs })).toContainEqual(
      expect.objectContaining({ kind: 'move-instance', slot: 0, to: 'lost', reason: 'overdue' }),
    );
  });

  it('uploads and closes at the end of the run like any other', () => {
    const seen = world(['banned', 'fine']);
    seen.fleet.all[0]!.sealed = true;
    seen.fleet.all[0]!.progress!.pending = 0;
    expect(decide(seen)).toContainEqual(expect.objectContaining({ slot: 0, from: 'banned', to: 'uploading' }));
  });
});

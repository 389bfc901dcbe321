/** When an address is rotated (`aws.recycle_every`), and what happens to its slot. */
import { describe, expect, it } from 'vitest';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { decide, unnoted } from '../../../orchestrator/core/decide/decide.ts';
import { chunkLimit, forecastRun } from '../../../orchestrator/core/decide/shares/chunk-limits.ts';
import { NO_EFFECTS, ordersFor } from '../../../orchestrator/core/callbacks/orders.ts';
import { LOSS_REASON } from '../../../orchestrator/core/model/loss-reason.ts';
import { workersOf } from '../../../orchestrator/core/decide/shares/workers.ts';
import { spendingOf } from '../../../orchestrator/core/decide/launches/budget.ts';
import { rotations } from '../../../orchestrator/core/decide/address-rotation.ts';
import { drainAtMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { rotationDueMs, rotationsDuring, rotationWaves } from '../../../orchestrator/core/plan/address-rotation.ts';
import {
  aClaim,
  aHeartbeat,
  anIncident,
  anInstance,
  aPlan,
  aRefusal,
  aRun,
  aWorld,
  START_MS,
  type WorldChange,
} from './builders.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const FLEET = 10;
const BOOTING = { phase: 'booting', publicKey: null, progress: null } as const;

function crawling(slot: number, change: Partial<InstanceRecord> = {}): InstanceRecord {
  const progress = { ...NO_PROGRESS, assigned: 100, pending: 60 };
  return anInstance(slot, { phase: 'crawling', progress, ...change });
}

/** Ten crawling instances an hour after their launch, with hourly rotation. */
function hourOld(change: WorldChange = {}): World {
  const nowMs = change.nowMs ?? START_MS + HOUR;
  const base = aRun();
  const settings = { ...base.settings, aws: { ...base.settings.aws, recycleEveryMs: HOUR } };
  const run = { ...base, settings, plan: aPlan({ instances: FLEET, bootP95Ms: 120_000 }), ...change.run };
  const instances = (change.instances ?? Array.from({ length: FLEET }, (_, i) => crawling(i))).map((i) => ({
    ...i,
    lastHeartbeatAtMs: nowMs,
  }));
  const work = { chunks: 60, waiting: 0, granted: 60, bySlot: [] };
  const world = aWorld({ work, ...change, run, nowMs, instances });
  return { ...world, forecast: change.forecast === undefined ? forecastRun(world, new Set()) : change.forecast };
}

const slotsOf = (world: World): number[] => rotations(world).flatMap((a) => (a.kind === 'rotate' ? [a.slot] : []));

describe('an address that is old enough', () => {
  it('is rotated a fifth of the fleet at a time, the longest overdue first', () => {
    expect(slotsOf(hourOld())).toEqual([0, 5]);
  });

  it('is rotated in waves spread over the first interval', () => {
    const at = (minutes: number) => slotsOf(hourOld({ nowMs: START_MS + minutes * MINUTE }));
    expect(at(11)).toEqual([]);
    expect(at(12)).toEqual([0, 5]);
  });

  it('is afterwards rotated a whole interval after its own launch', () => {
    const second = (launchedAtMs: number) =>
      Array.from({ length: FLEET }, (_, slot) => [
        anInstance(slot, { phase: 'terminated', manifestKey: 'm', reason: LOSS_REASON.rotated }),
        crawling(slot, { epoch: 2, launchedAtMs }),
      ]).flat();
    expect(slotsOf(hourOld({ instances: second(START_MS + 30 * MINUTE), nowMs: START_MS + 89 * MINUTE }))).toEqual([]);
    expect(slotsOf(hourOld({ instances: second(START_MS + 30 * MINUTE), nowMs: START_MS + 90 * MINUTE }))).toEqual([
      0, 1,
    ]);
  });

  it.each<[string, (world: World) => World]>([
    ['without the setting', (w) => ({ ...w, run: aRun({ plan: w.run.plan }) })],
    ['when the run drains', (w) => ({ ...w, nowMs: w.run.deadlineAtMs - 10_000 })],
    ['after a stop request', (w) => ({ ...w, run: { ...w.run, request: 'stop' } })],
    ['when a boot would come too late', (w) => ({ ...w, nowMs: w.run.deadlineAtMs - 5 * MINUTE })],
    ['before the first forecast', (w) => ({ ...w, forecast: null })],
    ['when the run is already late', (w) => late(w)],
    [
      'when EC2 has refused permanently',
      (w) => with0(w, { answer: { kind: 'refused', cause: 'type', message: 'no' } }),
    ],
    ['while a ban is fresh', (w) => with0(w, { incident: anIncident({ atMs: w.nowMs - MINUTE, overAtMs: w.nowMs }) })],
    ['while an address rests', (w) => with0(w, { progress: { ...NO_PROGRESS, pending: 1_000, restMs: 60_000 } })],
    ['while an address is suspicious', (w) => with0(w, { incident: anIncident({ verdict: 'suspect', atMs: 0 }) })],
  ])('stays %s', (_, change) => {
    expect(slotsOf(change(hourOld()))).toEqual([]);
  });

  const with0 = (world: World, change: Partial<InstanceRecord>): World => ({
    ...world,
    fleet: world.fleet.with({ ...world.fleet.latest.get(0)!, ...change }),
  });
  const late = (world: World): World => {
    const { end } = world.forecast!;
    return { ...world, forecast: { ...world.forecast!, end: { ...end, p95Ms: world.run.deadlineAtMs } } };
  };

  it.each<[string, Partial<InstanceRecord>]>([
    ['has nothing to crawl', { progress: { ...NO_PROGRESS, assigned: 100 } }],
    ['has less to crawl than a rotation takes', { progress: { ...NO_PROGRESS, assigned: 100, pending: 15 } }],
    ['is sealed', { sealed: true }],
    ['is already rotating', { rotateAtMs: START_MS }],
    ['boots', BOOTING],
  ])('stays when its instance %s', (_, change) => {
    const instances = Array.from({ length: FLEET }, (_x, i) => crawling(i, i === 0 ? change : {}));
    expect(slotsOf(hourOld({ instances }))).not.toContain(0);
  });

  it('waits while slots have no instance for another reason', () => {
    const fleet = (missing: number) =>
      Array.from({ length: FLEET }, (_, i) => crawling(i, i >= FLEET - missing ? BOOTING : {}));
    expect(slotsOf(hourOld({ instances: fleet(1) }))).toEqual([0]);
    expect(slotsOf(hourOld({ instances: fleet(2) }))).toEqual([]);
  });
});

describe('a rotation that would make the run late', () => {
  /** A boot of two minutes and an upload of one. */
  const COST = 3 * MINUTE;
  const endingBefore = (ms: number): World => {
    const world = hourOld();
    const { end } = world.forecast!;
    const p95Ms = drainAtMs(world.run) - ms;
    return { ...world, forecast: { ...world.forecast!, end: { ...end, p95Ms } } };
  };

  it('is skipped: its cost is added to the forecast end', () => {
    expect(slotsOf(endingBefore(1_000))).toEqual([]);
    expect(slotsOf(endingBefore(COST - 1_000))).toEqual([]);
    expect(slotsOf(endingBefore(COST))).toEqual([0, 5]);
  });
});

describe('after a refusal for the quota', () => {
  const refused = (atMs: number): InstanceRecord => aRefusal(9, 'quota', atMs);
  const given = (atMs: number, change: Partial<InstanceRecord> = {}): InstanceRecord =>
    crawling(9, { epoch: 2, launchedAtMs: atMs, ...change });
  const others = Array.from({ length: FLEET - 1 }, (_, i) => crawling(i));
  const SINCE = START_MS + 10 * MINUTE;

  it('addresses are rotated one at a time once EC2 grants an instance again', () => {
    const full = [...others, refused(START_MS + 5 * MINUTE), given(SINCE)];
    expect(slotsOf(hourOld({ instances: full }))).toEqual([0]);
    expect(slotsOf(hourOld({ instances: full, nowMs: START_MS + 2 * HOUR }))).toHaveLength(1);
    const booting = [...others, refused(SINCE), given(SINCE + 1, BOOTING)];
    expect(slotsOf(hourOld({ instances: booting }))).toEqual([]);
  });

  it('due rotations wait while launches are held, and the user is notified once', () => {
    const held = hourOld({ instances: [...others, refused(START_MS + HOUR - MINUTE)] });
    expect(rotations(held)).toEqual([
      { kind: 'note', alarm: true, note: expect.objectContaining({ event: 'decision', key: 'rotations wait' }) },
    ]);
    held.notedKeys.add('rotations wait');
    expect(unnoted(held, rotations(held))).toEqual([]);
    expect(rotations(hourOld({ instances: held.fleet.all, nowMs: START_MS + MINUTE }))).toEqual([]);
  });

  it('the share of a rotated slot waits for its successor while the cap counts both machines', () => {
    const makesRoom = { reason: LOSS_REASON.rotated, phase: 'terminating', manifestKey: 'm' } as const;
    const instances = Array.from({ length: FLEET }, (_, i) => crawling(i, i === 0 ? makesRoom : {}));
    const work = { chunks: 54, waiting: 54, granted: 0, bySlot: [] };
    const open = hourOld({ instances, work });
    const { committed } = spendingOf(open);
    const { settings } = open.run;
    const maxCost = committed + 0.000_1;
    const run = { ...open.run, settings: { ...settings, run: { ...settings.run, maxCost } } };
    expect(chunkLimit({ ...open, run })).toBe(Math.floor(54 / FLEET));
  });

  it('the share of a rotated slot waits for its successor, which takes over its vCPUs in the quota', () => {
    const gone = (change: Partial<InstanceRecord> = {}): InstanceRecord =>
      crawling(0, {
        phase: 'terminating',
        reason: LOSS_REASON.rotated,
        manifestKey: 'm',
        rotateAtMs: START_MS,
        cloudState: 'shutting-down',
        ...change,
      });
    const before = [refused(START_MS), given(START_MS + MINUTE)];
    const rest = others.slice(1);
    const owners = [...rest, given(START_MS)].map(({ slot, epoch }) => ({ slot, epoch, chunks: 6, products: 30 }));
    const work = { chunks: 60, waiting: 6, granted: 54, bySlot: owners };
    const fleets = [
      [gone(), ...rest, ...before],
      [gone(), aClaim(0, { epoch: 2 }), ...rest, ...before],
    ];
    for (const instances of fleets) expect(chunkLimit(hourOld({ instances, work }))).toBe(6);
    const lost = [gone({ reason: LOSS_REASON.silent }), ...rest, ...before];
    expect(chunkLimit(hourOld({ instances: lost, work }))).toBe(7);
  });
});

describe('an instance whose address is rotated', () => {
  const leaving = crawling(0, { rotateAtMs: START_MS + HOUR });
  const world = (record: InstanceRecord, more: WorldChange = {}) =>
    hourOld({
      instances: [record, ...Array.from({ length: FLEET - 1 }, (_, i) => crawling(i + 1))],
      nowMs: START_MS + HOUR + MINUTE,
      ...more,
    });

  it('is ordered to stop and upload, and the other instances are not', () => {
    const now = world(leaving);
    const orders = (record: InstanceRecord) => {
      const heartbeat = aHeartbeat({ progress: record.progress! });
      const none = { ...NO_EFFECTS, maxProducts: null, robots: null, awaited: false, fenced: false };
      return ordersFor(now, { ...none, record, heartbeat });
    };
    expect(orders(now.fleet.all[0]!)).toMatchObject({
      drain: true,
      sealed: true,
      returnProducts: false,
      fenced: false,
    });
    expect(orders(now.fleet.all[1]!)).toMatchObject({ drain: false, sealed: false });
  });

  it('counts as a booting worker, and its uncrawled products wait', () => {
    const { workers, unassigned } = workersOf(world(leaving));
    expect(unassigned).toBe(60);
    expect(workers.find((p) => p.slot === 0)).toMatchObject({ isUp: false, canTake: true, pending: 0 });
  });

  it('is given up when it does not upload in time', () => {
    const overdue = world(leaving, { nowMs: START_MS + 2 * HOUR });
    expect(decide(overdue)).toContainEqual(
      expect.objectContaining({ kind: 'move-instance', slot: 0, to: 'lost', reason: LOSS_REASON.overdue }),
    );
  });

  const done = (change: Partial<InstanceRecord>) =>
    crawling(0, {
      phase: 'terminating',
      reason: LOSS_REASON.rotated,
      manifestKey: 'm',
      rotateAtMs: START_MS,
      ...change,
    });
  const waiting = { work: { chunks: 60, waiting: 6, granted: 54, bySlot: [] } };
  const claims = (w: World) => decide(w).filter((a) => a.kind === 'claim');

  it('is followed by the next epoch once EC2 shows it shutting down, without a limit on the number of rotations', () => {
    expect(claims(world(done({ cloudState: 'running' }), waiting))).toEqual([]);
    const gone = done({ cloudState: 'shutting-down' });
    expect(claims(world(gone, waiting))).toMatchObject([{ slot: 0, epoch: 2 }]);
    const many = Array.from({ length: 6 }, (_, i) => done({ epoch: i + 1, cloudState: 'shutting-down' }));
    const others = Array.from({ length: FLEET - 1 }, (_, i) => crawling(i + 1));
    expect(claims(world(gone, { ...waiting, instances: [...many, ...others] }))).toMatchObject([{ slot: 0, epoch: 7 }]);
  });

  it('has no successor when no products wait', () => {
    expect(claims(world(done({ cloudState: 'terminated' })))).toEqual([]);
  });
});

describe('the timing of rotations', () => {
  it.each([
    [1, 1, 1],
    [2, 2, 1],
    [5, 5, 1],
    [6, 3, 2],
    [22, 5, 5],
    [100, 5, 20],
  ])('%i instances are rotated in %i waves of at most %i', (instances, waves, atOnce) => {
    expect(rotationWaves(instances)).toEqual({ waves, atOnce });
  });

  it('never leaves an address in use for longer than the interval', () => {
    for (const slot of [0, 1, 2, 3, 4, 21]) {
      expect(rotationDueMs(HOUR, 5, slot, true)).toBeLessThanOrEqual(HOUR);
      expect(rotationDueMs(HOUR, 5, slot, true)).toBeGreaterThanOrEqual(HOUR / 5);
    }
  });

  it('allows more rotations in a longer crawl', () => {
    const of = (crawlMs: number) => rotationsDuring(crawlMs, { everyMs: HOUR, costMs: 3 * MINUTE, instances: 22 });
    expect([of(0), of(9 * MINUTE), of(10 * MINUTE), of(66 * MINUTE), of(67 * MINUTE)]).toEqual([0, 0, 1, 1, 2]);
  });
});

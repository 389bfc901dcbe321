import { FleetSnapshot } from '../../../orchestrator/core/model/fleet-snapshot.ts';
import { describe, expect, it } from 'vitest';
import { decide, lateNotes, unnoted } from '../../../orchestrator/core/decide/decide.ts';
import { extraLaunches } from '../../../orchestrator/core/decide/extra-launches.ts';
import { forecastRun } from '../../../orchestrator/core/decide/shares/chunk-limits.ts';
import { forecastEnd, spreadMs } from '../../../orchestrator/core/decide/shares/end-forecast.ts';
import { workersOf } from '../../../orchestrator/core/decide/shares/workers.ts';
import { drainAtMs, releaseEndMs, uploadEndMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import type { AddressIncident } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { combinePolicies } from '../../../shared/domain/robots.ts';
import { ALLOW_ALL, START_MS, aClaim, aPlan, aRefusal, aRun, anIncident, aWorld, anInstance } from './builders.ts';

const PACE_MS = 10_100;
const HOUR_MS = 3_600_000;

interface Shape {
  pending: readonly number[];
  gone: number;
  waiting?: number;
  maxRate?: number | null;
  maxInstances?: number;
  maxCost?: number | null;
  request?: 'stop' | null;
}

/** Instances with `pending` products each, `gone` ms after the start of a four-hour run. */
function world({ pending, gone, waiting = 0, maxRate = null, ...more }: Shape): World {
  const run = aRun({ plan: aPlan({ instances: pending.length }), request: more.request ?? null });
  run.settings.site.maxRatePerSecond = maxRate;
  run.settings.run.maxInstances = more.maxInstances ?? 100;
  run.settings.run.maxCost = more.maxCost ?? null;
  const nowMs = START_MS + gone;
  const instances = pending.map((left, slot) =>
    anInstance(slot, {
      phase: 'crawling',
      lastHeartbeatAtMs: nowMs,
      progress: { ...NO_PROGRESS, assigned: left, pending: left, requests: 50, stored: 50, pageMs: 300 },
    }),
  );
  const bySlot = pending.map((products, slot) => ({ slot, epoch: 1, chunks: products / 5, products }));
  const w = aWorld({ run, nowMs, instances, work: { chunks: 100, waiting, granted: 0, bySlot } });
  return { ...w, forecast: forecastRun(w, new Set()) };
}

describe('forecastEnd', () => {
  it('forecasts each instance at its own pace, and the fleet by the last one', () => {
    const { workers, p50Ms, p95Ms } = forecastEnd(world({ pending: [100, 105], gone: HOUR_MS }));
    const now = START_MS + HOUR_MS;
    expect(workers.map((p) => p.p50Ms - now)).toEqual([100 * PACE_MS, 105 * PACE_MS]);
    expect(p50Ms! - now).toBeCloseTo(105 * PACE_MS);
    expect(p95Ms! - p50Ms!).toBeCloseTo(spreadMs({ paceMs: PACE_MS, isSlow: false }, 105 * PACE_MS), -1);
  });

  describe('the slower beginning after a ban', () => {
    const nowMs = START_MS + HOUR_MS;
    /** The fleet, with this many products stored since the ban of its first address; the interval is 10 s. */
    const banned = (w: World, sinceBan: number): World => {
      const [first, ...others] = w.fleet.all;
      const progress = { ...first!.progress!, sinceBan };
      return { ...w, fleet: new FleetSnapshot([{ ...first!, progress }, ...others]) };
    };

    it('is counted for the pages that are left of it', () => {
      const alone = world({ pending: [100], gone: HOUR_MS });
      // 20 pages each with 10, 5, 2.5, 1.25 and 0.625 s more.
      expect(forecastEnd(banned(alone, 0)).p50Ms! - nowMs).toBeCloseTo(100 * PACE_MS + 387_500);
      expect(forecastEnd(banned(alone, 50)).p50Ms! - nowMs).toBeCloseTo(100 * PACE_MS + 71_875);
    });

    it('is no longer where pages take longer than the interval anyway', () => {
      const w = banned(world({ pending: [20], gone: HOUR_MS }), 0);
      const slow = w.fleet.all.map((r) => ({ ...r, progress: { ...r.progress!, pageMs: 25_000 } }));
      expect(forecastEnd({ ...w, fleet: new FleetSnapshot(slow) }).p50Ms! - nowMs).toBe(20 * 25_000);
    });

    it('makes the other instances take what waits', () => {
      const w = world({ pending: [0, 0], gone: HOUR_MS, waiting: 8 });
      expect(forecastEnd(banned(w, 0)).p50Ms! - nowMs).toBeGreaterThan(forecastEnd(w).p50Ms! - nowMs + 50_000);
      expect(forecastEnd(banned(w, 0)).p50Ms! - nowMs).toBeLessThan(20 * PACE_MS + 200_000);
    });

    it('of an earlier night is counted for instances that boot, and those that would be launched in addition', () => {
      const w = world({ pending: [1_300], gone: HOUR_MS });
      const lately = (bannedLately: number[] | null): World => {
        const site = { ...w.run.settings.site, ...(bannedLately === null ? {} : { bannedLately }) };
        return { ...w, run: { ...w.run, settings: { ...w.run.settings, site } } };
      };
      const startOf = (at: World): number => workersOf(at, 1).workers[1]!.startMs;
      expect(startOf(lately([0])) - startOf(lately(null))).toBeCloseTo(396_875);
    });
  });

  it('assigns waiting products to the instances that finish first', () => {
    const end = (waiting: number): number => forecastEnd(world({ pending: [100, 50], gone: HOUR_MS, waiting })).p50Ms!;
    expect(end(10)).toBe(end(0));
    expect(end(30) - START_MS - HOUR_MS).toBeCloseTo(150 * PACE_MS);
  });

  it('assumes a transfer when an instance would be late with all its products', () => {
    const { p50Ms } = forecastEnd(world({ pending: [1_200, 0], gone: HOUR_MS }));
    expect(p50Ms! - START_MS - HOUR_MS).toBeLessThan(620 * PACE_MS);
    const inTime = forecastEnd(world({ pending: [600, 0], gone: HOUR_MS }));
    expect(inTime.p50Ms! - START_MS - HOUR_MS).toBeCloseTo(600 * PACE_MS);
  });

  it('has no end without instances', () => {
    const w = world({ pending: [], gone: HOUR_MS, waiting: 3 });
    expect(forecastEnd({ ...w, run: aRun({ plan: aPlan({ instances: 0 }) }) })).toMatchObject({
      p50Ms: null,
      p95Ms: null,
    });
  });

  /** How far the loss of one instance moves the p95 end, `gone` ms after the start. */
  function lossCostMs(gone: number, pending: number): number {
    const w = world({ pending: [pending, pending], gone });
    const lost = anInstance(0, { epoch: 0, phase: 'terminated', reason: 'heartbeat-lost', manifestKey: 'm' });
    return forecastEnd({ ...w, fleet: new FleetSnapshot([lost, ...w.fleet.all]) }).p95Ms! - forecastEnd(w).p95Ms!;
  }

  it('allows more time when instances have been lost', () => {
    expect(lossCostMs(HOUR_MS, 100)).toBeGreaterThan(20_000);
  });

  it('does not extrapolate one loss in the first minutes to the whole run', () => {
    const shard = Math.floor((3.5 * HOUR_MS) / PACE_MS);
    expect(lossCostMs(120_000, shard)).toBeGreaterThan(60_000);
    expect(lossCostMs(120_000, shard)).toBeLessThan(HOUR_MS);
  });

  it('gives varying page times more spread than a constant pace', () => {
    expect(spreadMs({ paceMs: 20_000, isSlow: true }, 2_000_000)).toBeGreaterThan(100_000);
    expect(spreadMs({ paceMs: 20_000, isSlow: false }, 2_000_000)).toBe(20_000);
  });
});

const LEFT_MS = 4 * HOUR_MS - 60_000 - 2 * HOUR_MS;
const TOO_MANY = Math.ceil((LEFT_MS / PACE_MS) * 1.5);

describe('lateNotes', () => {
  const keys = (w: World): string[] => unnoted(w, lateNotes(w)).flatMap((a) => (a.kind === 'note' ? [a.note.key] : []));

  it('reports once at each mark that the run will be late', () => {
    const late = world({ pending: [TOO_MANY, TOO_MANY], gone: 2 * HOUR_MS });
    expect(keys(late)).toEqual(['late 50%']);
    expect(keys({ ...late, notedKeys: new Set(['late 50%']) })).toEqual([]);
    const later = { ...late, nowMs: START_MS + 3 * HOUR_MS, notedKeys: new Set(['late 50%']) };
    expect(keys(later)).toEqual(['late 75%']);
    expect(keys({ ...later, nowMs: START_MS + 3.7 * HOUR_MS })).toEqual(['late 90%']);
  });

  it('reports nothing early, on time, or when the run is already ending', () => {
    expect(keys(world({ pending: [TOO_MANY * 2], gone: HOUR_MS }))).toEqual([]);
    expect(keys(world({ pending: [100], gone: 2 * HOUR_MS }))).toEqual([]);
    expect(keys(world({ pending: [TOO_MANY], gone: 2 * HOUR_MS, request: 'stop' }))).toEqual([]);
  });
});

describe('extraLaunches', () => {
  const claims = (shape: Partial<Shape>): number[] =>
    extraLaunches(world({ pending: [TOO_MANY, TOO_MANY], gone: 2 * HOUR_MS, ...shape })).map((a) =>
      a.kind === 'claim' ? a.slot : -1,
    );

  it('claims the fewest slots beyond the plan that bring the end forward enough', () => {
    const slots = claims({});
    expect(slots[0]).toBe(2);
    expect(slots.length).toBeGreaterThanOrEqual(1);
    expect(slots.length).toBeLessThanOrEqual(2);
    expect(extraLaunches(world({ pending: [TOO_MANY, TOO_MANY], gone: 2 * HOUR_MS }))[0]).toMatchObject({
      why: expect.stringMatching(/in addition to the plan of 2: p95 is .* late/),
    });
  });

  it.each<[string, Partial<Shape>]>([
    ['all finish on time', { pending: [100, 100] }],
    ['run.max_instances is reached', { maxInstances: 2 }],
    ['site.max_rate allows no more addresses', { maxRate: 0.2 }],
    ['run.max_cost does not allow it', { maxCost: 0.000_1 }],
    ['it would boot too late', { gone: 3.9 * HOUR_MS }],
    ['the run ends', { request: 'stop' }],
    ['there is no whole chunk to share', { pending: [4, 4], gone: 3.98 * HOUR_MS }],
  ])('claims nothing when %s', (_name, shape) => {
    expect(claims(shape)).toEqual([]);
  });

  it('ignores a delay of seconds', () => {
    const late = world({ pending: [TOO_MANY, TOO_MANY], gone: 2 * HOUR_MS });
    const latestMs = drainAtMs(late.run);
    const lateBy = (ms: number): number => {
      const end = { ...late.forecast!.end, p95Ms: latestMs + ms };
      return extraLaunches({ ...late, forecast: { ...late.forecast!, end } }).length;
    };
    // 1 % of four hours.
    expect(lateBy(144_000)).toBe(0);
    expect(lateBy(144_001)).toBeGreaterThan(0);
  });

  it.each<[string, 'cool-down' | 'stop' | 'replace', Partial<AddressIncident>, boolean]>([
    ['is cooling down', 'cool-down', {}, false],
    ['stops the run', 'stop', {}, false],
    ['is replaced', 'replace', {}, false],
    ['was banned a few minutes ago', 'cool-down', { overAtMs: START_MS + 2 * HOUR_MS - 1_000 }, false],
    ['was banned an hour ago', 'cool-down', { atMs: START_MS + HOUR_MS, overAtMs: START_MS + 1.5 * HOUR_MS }, true],
    ['is suspected', 'cool-down', { verdict: 'suspect', untilMs: null }, true],
  ])('adds no address to those before a ban: to one that %s', (_, onBan, change, may) => {
    const late = world({ pending: [TOO_MANY, TOO_MANY, TOO_MANY, TOO_MANY], gone: 2 * HOUR_MS });
    late.run.settings.site.onBan = onBan;
    const incident = anIncident({
      atMs: late.nowMs - 240_000,
      untilMs: late.nowMs + HOUR_MS,
      returnedAtMs: 1,
      ...change,
    });
    const fleet = late.fleet.with({ ...late.fleet.latest.get(0)!, incident });
    expect(extraLaunches({ ...late, fleet }).length > 0).toBe(may);
  });

  it('adds none while a Retry-After lasts, for one address or for robots.txt of one domain', () => {
    const late = world({ pending: [TOO_MANY, TOO_MANY], gone: 2 * HOUR_MS });
    const record = late.fleet.latest.get(0)!;
    const resting = (restMs: number): World => {
      return { ...late, fleet: late.fleet.with({ ...record, progress: { ...record.progress!, restMs } }) };
    };
    expect(extraLaunches(resting(60_000))).toEqual([]);
    expect(extraLaunches({ ...resting(60_000), nowMs: late.nowMs + 61_000 })).not.toEqual([]);
    const robots = combinePolicies([ALLOW_ALL, { ...ALLOW_ALL, access: 'none' }]);
    expect(extraLaunches({ ...late, robots })).toEqual([]);
  });

  it('is part of decide, and its slots are launched and tracked like planned ones', () => {
    const late = world({ pending: [TOO_MANY, TOO_MANY], gone: 2 * HOUR_MS });
    expect(decide(late)).toContainEqual(expect.objectContaining({ kind: 'claim', slot: 2, epoch: 1 }));
    const next = { ...late, fleet: new FleetSnapshot([...late.fleet.all, aClaim(2)]) };
    expect(decide(next)).toContainEqual({ kind: 'launch', slot: 2, epoch: 1 });
  });

  it('stops when EC2 has refused the last one permanently', () => {
    const late = world({ pending: [TOO_MANY, TOO_MANY], gone: 2 * HOUR_MS });
    const refused = aRefusal(2, 'type', late.nowMs);
    expect(extraLaunches({ ...late, fleet: new FleetSnapshot([...late.fleet.all, refused]) })).toEqual([]);
  });
});

describe('the times around the deadline', () => {
  const run = aRun();
  const limits = { uploadMs: 300_000, lostMs: 180_000 };

  it('end the crawl earlier after slow uploads and loads, by at most a tenth of the run', () => {
    expect(run.deadlineAtMs - drainAtMs(run)).toBe(60_000);
    expect(run.deadlineAtMs - drainAtMs({ ...run, measuredTailMs: 1_000 })).toBe(60_000);
    expect(run.deadlineAtMs - drainAtMs({ ...run, measuredTailMs: 200_000 })).toBe(200_000);
    expect(run.deadlineAtMs - drainAtMs({ ...run, measuredTailMs: 9_999_999 })).toBe(1_440_000);
  });

  it('abandon an upload that hangs past the deadline, and publish within a minute of it', () => {
    expect(uploadEndMs({ run, limits, loopStartedAtMs: START_MS }, drainAtMs(run))).toBe(run.deadlineAtMs + 15_000);
    expect(releaseEndMs(run)).toBeLessThan(run.deadlineAtMs + 60_000);
  });

  it('allow more time after an early stop request, and for heartbeats to a new main server', () => {
    const stoppedMs = START_MS + 60_000;
    expect(uploadEndMs({ run, limits, loopStartedAtMs: START_MS }, stoppedMs)).toBe(stoppedMs + 480_000);
    const backMs = run.deadlineAtMs + 100_000;
    expect(uploadEndMs({ run, limits, loopStartedAtMs: backMs }, drainAtMs(run))).toBe(backMs + 15_000);
  });
});

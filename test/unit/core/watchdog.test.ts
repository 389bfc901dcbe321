import { describe, expect, it } from 'vitest';
import { ANY_HOST } from '../../../shared/domain/domains.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { limitsOf } from '../../../orchestrator/core/model/run-deadlines.ts';
import { decide } from '../../../orchestrator/core/decide/decide.ts';
import { ProgressWatch } from '../../../orchestrator/core/observe/progress-watch.ts';
import type { RunSettings } from '../../../orchestrator/core/model/run-settings.ts';
import type { ActiveStallCauses } from '../../../orchestrator/core/model/stall-causes.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import { hostsFreeAtMs } from '../../../orchestrator/core/decide/host-rest.ts';
import { stallLimits } from '../../../orchestrator/core/decide/watchdog.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import {
  aBooting,
  ALL_GRANTED,
  ALLOW_ALL,
  anIncident,
  anInstance,
  aRun,
  aWorld,
  START_MS,
  type WorldChange,
} from './builders.ts';

const MINUTE_MS = 60_000;
/** Marks an instance that sends no more heartbeats. */
const SILENT = 'silent';
const HOUR_MS = 60 * MINUTE_MS;

/** A run of three instances; `hours` and `site` affect the stall limits. */
function runOf(hours = 4, site: Partial<RunSettings['site']> = {}) {
  const run = aRun();
  const settings = { ...run.settings, site: { ...run.settings.site, ...site } };
  return { ...run, settings, deadlineAtMs: START_MS + hours * HOUR_MS };
}

type Fleet = { instances?: InstanceRecord[]; change?: WorldChange };

/** Observes the world of `at` once per heartbeat for `minutes`; returns the notes and when the run was ended. */
function watch(run: World['run'], minutes: number, at: (minute: number) => Fleet) {
  const progress = new ProgressWatch();
  const { heartbeatMs } = limitsOf(run);
  const told: { minute: number; text: string }[] = [];
  const noted = new Set<string>();
  let ended: { minute: number; reason: string } | null = null;
  for (let ms = 0; ms <= minutes * MINUTE_MS && ended === null; ms += heartbeatMs) {
    const minute = ms / MINUTE_MS;
    const nowMs = START_MS + ms;
    const { instances = fleetOf({ pending: 50 }), change = {} } = at(minute);
    const beating = instances.map((r) => ({ ...r, lastHeartbeatAtMs: r.problem === SILENT ? START_MS : nowMs }));
    const seen = aWorld({ run, nowMs, instances: beating, notedKeys: noted, ...change });
    const world = { ...seen, stall: progress.look(seen, ms) };
    for (const action of decide(world)) {
      if (action.kind === 'halt') ended = { minute, reason: action.reason };
      if (action.kind !== 'note' || !action.note.key.startsWith('stall') || noted.has(action.note.key)) continue;
      noted.add(action.note.key);
      told.push({ minute, text: action.note.detail });
    }
  }
  return { told, ended };
}

/** Three crawling instances with this progress. */
function fleetOf(progress: Partial<InstanceRecord['progress'] & object>, change: Partial<InstanceRecord> = {}) {
  return [0, 1, 2].map((slot) =>
    anInstance(slot, {
      phase: 'crawling',
      progress: { ...NO_PROGRESS, assigned: 50, tried: 1, ...progress },
      ...change,
    }),
  );
}

const served = (count: number): Fleet => ({ instances: fleetOf({ pending: 50, served: Math.floor(count) }) });
const CALM = { told: [], ended: null };
const lost: ActiveStallCauses = new Map([['lost-bucket', { sinceMs: START_MS, detail: 'bucket b: NoSuchBucket' }]]);

describe('the watchdog', () => {
  it('reports after two minutes without a page, and ends the run after fifteen', () => {
    const { told, ended } = watch(runOf(), 30, (minute) => served(Math.min(minute, 5)));
    expect(told).toHaveLength(1);
    expect(told[0]!.minute).toBeCloseTo(7, 0);
    expect(told[0]!.text).toContain('no progress for 2m');
    expect(ended).toEqual({ minute: expect.closeTo(20, 0) as number, reason: 'no-progress' });
  });

  it.each([
    ['a shorter run', runOf(0.1), 45_000, 90_000],
    ['a long interval', runOf(4, { intervalMs: 30_000 }), 5 * MINUTE_MS, 15 * MINUTE_MS],
    ['a very long interval', runOf(12, { intervalMs: 2 * MINUTE_MS }), 20 * MINUTE_MS, 40 * MINUTE_MS],
    ['a low rate for the whole fleet', runOf(4, { maxRatePerSecond: 0.1 }), 5 * MINUTE_MS, 15 * MINUTE_MS],
    ['a long interval in a short run', runOf(0.05, { intervalMs: 30_000 }), 90_000, 180_000],
  ])('adapts its limits to %s', (_, run, alarmMs, endMs) => {
    expect(stallLimits(aWorld({ run, instances: [] }))).toEqual({ alarmMs, endMs });
  });

  it('adapts its limits to the current Crawl-delay and to the page time', () => {
    const robots = { ...ALLOW_ALL, crawlDelayMs: 60_000 };
    expect(stallLimits(aWorld({ run: runOf(), robots, instances: [] })).alarmMs).toBe(10 * MINUTE_MS);
    const slow = fleetOf({ pageMs: 50_000 });
    expect(stallLimits(aWorld({ run: runOf(), instances: slow })).alarmMs).toBe(160_000);
  });

  it.each([
    [4, 15 * MINUTE_MS],
    [1 / 40, 2],
  ])('outlasts the rest of hosts whose owner is lost, in a run of many hosts (%f h)', (hours, endMs) => {
    const run = runOf(hours, { productUrl: ANY_HOST });
    const { alarmMs, endMs: end } = stallLimits(aWorld({ run, instances: [] }));
    const lost = { lastHeartbeatAtMs: START_MS, cloudState: 'running' as const };
    expect(alarmMs).toBeGreaterThanOrEqual(
      hostsFreeAtMs(run, lost, 'lost', { nowMs: START_MS, silentFromMs: 0 })! - START_MS,
    );
    expect(end).toBe(Math.max(endMs, 2 * alarmMs));
  });

  const NONE_WAITS = { work: ALL_GRANTED };
  const resting = { pending: 20, restMs: 600_000 };
  const cooling = anIncident({ atMs: START_MS - HOUR_MS, untilMs: START_MS + HOUR_MS });
  it.each<[string, (minute: number) => Fleet, World['run']?]>([
    ['a page every 30 s, as the interval requires', (m) => served(m * 2), runOf(4, { intervalMs: 30_000 })],
    [
      'a Crawl-delay of four minutes',
      (m) => ({ ...served(m / 4), change: { robots: { ...ALLOW_ALL, crawlDelayMs: 4 * MINUTE_MS } } }),
    ],
    ['a slow shop: one page per minute', (m) => served(m)],
    [
      'progress only in uploaded parts',
      (m) => ({ change: { totals: { stored: 0, gone: 0, failed: 0, seen: Math.floor(m), loaded: 0 } } }),
    ],
    [
      'every address in its cool-down',
      () => ({ instances: fleetOf({ pending: 50 }, { phase: 'banned', incident: cooling }).slice(0, 1) }),
    ],
    ['a site that makes all instances wait (Retry-After)', () => ({ instances: fleetOf(resting) })],
    [
      'products left only on one instance in Retry-After',
      () => ({
        instances: [...fleetOf(resting).slice(0, 1), ...fleetOf({ pending: 0 }).slice(1)],
        change: NONE_WAITS,
      }),
    ],
    [
      'everything crawled, uploads in progress',
      () => ({ instances: fleetOf({ pending: 0 }, { phase: 'uploading', sealed: true }), change: NONE_WAITS }),
    ],
    ['a lost fleet with booting replacements', () => ({ instances: [0, 1, 2].map((slot) => aBooting(slot)) })],
  ])('does not report %s', (_, at, run = runOf()) => {
    const { told, ended } = watch(run, 30, at);
    expect({ told, ended: ended?.reason === 'banned' ? null : ended }).toEqual(CALM);
  });

  it('waits for hosts whose owner was lost while they rest, and only so long', () => {
    const run = runOf(4, { productUrl: ANY_HOST });
    const restUntilMs = START_MS + 2 * HOUR_MS;
    const work = { ...ALL_GRANTED, waiting: 1, byHost: { products: 3, longestMs: 45_000, restUntilMs } };
    const idle = (): Fleet => ({ instances: fleetOf({ pending: 0 }), change: { work } });
    expect(watch(run, 119, idle)).toEqual(CALM);
    const { endMs } = stallLimits(aWorld({ run, instances: [] }));
    const { ended } = watch(run, 200, idle);
    expect(ended).toEqual({ minute: expect.closeTo(120 + endMs / MINUTE_MS, 0) as number, reason: 'no-progress' });
    // One that has something to ask is no less stalled for it.
    const stuck = (): Fleet => ({ instances: fleetOf({ pending: 5 }), change: { work } });
    expect(watch(run, 60, stuck).ended).not.toBeNull();
  });

  it('leaves a silent instance to its own time limit', () => {
    const instances = [
      ...fleetOf({ pending: 9 }, { problem: SILENT }).slice(0, 1),
      ...fleetOf({ pending: 0 }).slice(1),
    ];
    const work = ALL_GRANTED;
    expect(watch(runOf(), 20, () => ({ instances, change: { work } })).told).toEqual([]);
  });

  it('waits for a balancer that is recreated during the run', () => {
    const idle = fleetOf({ pending: 0, tried: 9, served: 9 });
    const without = { balancerActive: false, targets: new Map() };
    expect(watch(runOf(), 5, () => ({ instances: idle, change: without }))).toEqual(CALM);
  });

  it.each([
    ['a balancer that takes traffic after four minutes', { balancerActive: false, targets: new Map() }, {}, 0],
    ['starting browsers', {}, { render: 'browser' as const }, 5],
  ])('waits for %s before the first request', (_, change, site, pending) => {
    const run = runOf(4, site);
    const idle = () => ({ instances: fleetOf({ pending, assigned: pending, tried: 0 }), change });
    expect(watch(run, 5, idle)).toEqual(CALM);
    // For at most the boot time.
    expect(watch(run, 12, idle).told).toHaveLength(1);
  });

  it('does not count an outage of the database, when nothing could be observed', () => {
    const progress = new ProgressWatch();
    const world = (minute: number) =>
      aWorld({ run: runOf(), nowMs: START_MS + minute * MINUTE_MS, instances: fleetOf({ pending: 5 }) });
    progress.look(world(0), 0);
    const stall = progress.look(world(20), 20 * MINUTE_MS);
    expect(stall!.ms).toBeLessThanOrEqual(30_000);
  });

  it('restarts in a main server that resumes the run', () => {
    const run = runOf();
    expect(watch(run, 14, () => served(3)).told).toHaveLength(1);
    const resumed = new ProgressWatch().look(aWorld({ run, nowMs: START_MS + HOUR_MS }), 0);
    expect(resumed).toEqual({ ms: 0, sinceMs: START_MS + HOUR_MS });
  });

  it('reports again after progress and another stall', () => {
    const { told } = watch(runOf(), 20, (m) => served(m < 10 ? 1 : 2));
    expect(told.map((t) => Math.round(t.minute))).toEqual([2, 12]);
  });

  it.each([
    ['lost-bucket', 'bucket b: gone'],
    ['unreachable', 'http://lb: ENOTFOUND'],
    ['site-down', '30 of the last 50 requests'],
  ] as const)('names %s as the cause, with the evidence and a remedy', (cause, detail) => {
    const faults = new Map([[cause, { sinceMs: START_MS, detail }]]);
    const { told, ended } = watch(runOf(), 30, () => ({ change: { stallCauses: faults } }));
    expect(told[0]!.text).toContain(detail);
    expect(ended!.reason).toBe(cause);
  });

  it('does not count pages as progress while their results cannot reach the bucket', () => {
    const { ended } = watch(runOf(), 30, (m) => ({ ...served(m * 6), change: { stallCauses: lost } }));
    expect(ended!.reason).toBe('lost-bucket');
  });

  it('ends a run whose last products are stuck in a lost epoch that cannot be closed', () => {
    const gone = fleetOf({ pending: 0 }, { phase: 'terminated', reason: 'heartbeat-lost' });
    const work = ALL_GRANTED;
    expect(watch(runOf(), 30, () => ({ instances: gone, change: { stallCauses: lost, work } })).ended?.reason).toBe(
      'lost-bucket',
    );
  });
});

describe('launches beyond the plan', () => {
  const late: World['forecast'] = {
    atMs: START_MS,
    end: { p50Ms: null, p95Ms: null, workers: [] },
    balance: { get: new Map(), give: new Map() } as never,
    byTime: false,
  };
  const claims = (change: WorldChange): number =>
    decide(
      aWorld({
        run: aRun({ plan: { ...aRun().plan, instances: 1 }, planned: 9_000 }),
        instances: [anInstance(0)],
        forecast: late,
        work: { chunks: 1_800, waiting: 1_800, granted: 0, bySlot: [] },
        ...change,
      }),
    ).filter((a) => a.kind === 'claim').length;

  it('are made for a late run, but not for a stalled one or while the site is down', () => {
    expect(claims({})).toBeGreaterThan(0);
    expect(claims({ stall: { ms: 3 * MINUTE_MS, sinceMs: START_MS } })).toBe(0);
    expect(claims({ site: { slowdown: 2, detail: 'down', suspicion: null } })).toBe(0);
    // Too few requests to treat the site as down, but none of them brought a page.
    expect(claims({ site: { slowdown: 1, detail: null, suspicion: '12 of the last 12 requests' } })).toBe(0);
    expect(claims({ site: { slowdown: 1, detail: null, suspicion: null } })).toBeGreaterThan(0);
  });
});

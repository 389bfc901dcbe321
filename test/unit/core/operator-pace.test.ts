import { describe, expect, it } from 'vitest';
import {
  operatorPace,
  operatorPaceInWords,
  operatorPaceNotes,
  resetPace,
  slowedByOperator,
} from '../../../orchestrator/core/decide/operator-pace.ts';
import { forecastEnd } from '../../../orchestrator/core/decide/shares/end-forecast.ts';
import {
  addressesAllowed,
  isResting,
  isSlotResting,
  raisedPaces,
  robotsInForce,
} from '../../../orchestrator/core/decide/site-cap.ts';
import type { InstanceRecord, RunRecord } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { ALLOW_ALL, anIncident, anInstance, aPlan, aRun, aWorld, START_MS } from './builders.ts';

const MINUTE_MS = 60_000;

const crawling = (slot: number, change: Partial<InstanceRecord> = {}): InstanceRecord =>
  anInstance(slot, {
    phase: 'crawling',
    lastHeartbeatAtMs: START_MS + MINUTE_MS,
    progress: { ...NO_PROGRESS, assigned: 20, pending: 20 },
    ...change,
  });
const four = [0, 1, 2, 3].map((slot) => crawling(slot));

/** The world of a run that is to keep what the operator asks for, with robots.txt as the fleet keeps it. */
function paced(
  request: Parameters<typeof operatorPace>[2] | 'reset',
  { instances = four, run = aRun({ plan: aPlan({ instances: 4 }) }), delayMs = null as number | null } = {},
): World {
  const world = aWorld({ run, instances });
  const asked =
    request === 'reset' ? resetPace(run, world.nowMs) : operatorPace(run, world.fleet, request, world.nowMs);
  const seen = { ...world, run: { ...run, operatorPace: asked } };
  const policy = { ...ALLOW_ALL, crawlDelayMs: delayMs };
  const raised = raisedPaces(seen, policy);
  return { ...seen, raised, robots: robotsInForce({ ...seen, raised }, policy) };
}

/** The run of an earlier request, which another one changes. */
const runOf = (world: World): RunRecord => world.run;

describe('the interval of an operator', () => {
  it('is kept by every address, and at most by those that are at work', () => {
    const world = paced({ intervalMs: 20_000 });
    expect(world.robots!.crawlDelayMs).toBe(20_000);
    expect(addressesAllowed(world)).toBe(4);
    expect(operatorPaceInWords(world.run)).toBe(
      '20s between two requests of one address instead of 10s, no address is added to make up for it (at most 0.2/s, as 4 addresses make at 20s)',
    );
  });

  it('counts the addresses that still boot, and none that is banned or lost', () => {
    const run = aRun({ plan: aPlan({ instances: 4 }) });
    const booting = anInstance(1, { phase: 'booting', publicKey: null });
    const lost = crawling(2, { phase: 'lost', reason: 'heartbeat-lost' });
    expect(paced({ pauseMs: MINUTE_MS }, { run, instances: [four[0]!, booting, lost] }).run.operatorPace).toMatchObject(
      {
        addresses: 2,
      },
    );
    const banned = crawling(1, { incident: anIncident() });
    expect(paced({ pauseMs: MINUTE_MS }, { run, instances: [four[0]!, banned, lost] }).run.operatorPace).toMatchObject({
      addresses: 1,
    });
  });

  it('is no shorter where fewer addresses are up than it counts, and longer where more are', () => {
    const { run } = paced({ intervalMs: 20_000 });
    const crawlDelayOf = (instances: InstanceRecord[]): number | null =>
      robotsInForce(aWorld({ run, instances }), ALLOW_ALL).crawlDelayMs;
    expect(crawlDelayOf(four.slice(1))).toBe(20_000);
    expect(crawlDelayOf([...four, crawling(4)])).toBe(25_000);
  });

  it('counts beside a Crawl-delay that rises: the longer one, and the lower sum', () => {
    expect(paced({ intervalMs: 20_000 }, { delayMs: 40_000 }).robots!.crawlDelayMs).toBe(40_000);
    const world = paced({ intervalMs: 20_000 }, { delayMs: 15_000 });
    expect(world.robots!.crawlDelayMs).toBe(20_000);
    expect(addressesAllowed(world)).toBe(4);
  });

  it.each([10_000, 4_000])('of %i ms is refused for a run of 10 s', (intervalMs) => {
    expect(() => paced({ intervalMs })).toThrow(
      expect.objectContaining({
        code: 'pace-too-fast',
        exitCode: 4,
        message: expect.stringContaining('interval of 10s'),
      }),
    );
  });

  it('may be changed, also to a shorter one that is still slower than the run, without letting more addresses in', () => {
    const run = runOf(paced({ intervalMs: 60_000 }, { instances: four.slice(2) }));
    const world = paced({ intervalMs: 20_000, isForNextPlan: true }, { run });
    expect(world.run.operatorPace).toMatchObject({ intervalMs: 20_000, addresses: 2, isForNextPlan: true });
    expect(addressesAllowed(world)).toBe(4);
    expect(world.robots!.crawlDelayMs).toBe(40_000);
  });

  it('of the last run is kept by a plan that says so, until the run resets it', () => {
    const { operatorPace: kept } = paced({ intervalMs: 20_000, isForNextPlan: true }).run;
    const run = aRun({ plan: aPlan({ instances: 4, operatorPace: kept! }) });
    expect(robotsInForce(aWorld({ run, instances: four }), ALLOW_ALL).crawlDelayMs).toBe(20_000);
    expect(operatorPaceNotes(aWorld({ run, instances: four }))).toEqual([]);
    const world = paced('reset', { run });
    expect([world.robots!.crawlDelayMs, addressesAllowed(world)]).toEqual([null, Infinity]);
  });
});

describe('a pause', () => {
  it('rests every address and every slot, leaves the interval, and caps the fleet', () => {
    const world = paced({ pauseMs: 30 * MINUTE_MS });
    expect(isResting(world, four[0]!)).toBe(true);
    expect(isSlotResting(world, crawling(1, { phase: 'terminating', reason: 'heartbeat-lost' }))).toBe(true);
    expect(world.robots!.crawlDelayMs).toBe(10_000);
    expect(addressesAllowed(world)).toBe(4);
    const after = { ...world, nowMs: world.nowMs + 31 * MINUTE_MS };
    expect([isResting(after, four[0]!), addressesAllowed(after)]).toEqual([false, 4]);
  });

  it('is counted by the forecast', () => {
    const pauseMs = 30 * MINUTE_MS;
    const endMs = forecastEnd(paced('reset')).p50Ms!;
    expect(forecastEnd(paced({ pauseMs })).p50Ms).toBeCloseTo(endMs + pauseMs, -1);
  });

  it('keeps the interval that was asked for before it, and the reverse', () => {
    const first = paced({ intervalMs: 20_000 });
    const both = paced({ pauseMs: MINUTE_MS }, { run: first.run });
    expect(both.run.operatorPace).toMatchObject({ intervalMs: 20_000, pausedUntilMs: both.nowMs + MINUTE_MS });
    const again = paced({ intervalMs: 30_000 }, { run: both.run });
    expect(again.run.operatorPace).toMatchObject({ intervalMs: 30_000, pausedUntilMs: both.nowMs + MINUTE_MS });
  });

  it('that the run has no time for says that it will be late, once', () => {
    const world = paced({ pauseMs: 5 * 60 * MINUTE_MS });
    const [note, ...more] = operatorPaceNotes(world);
    expect(more).toEqual([]);
    expect(note).toMatchObject({
      kind: 'note',
      alarm: true,
      note: { detail: expect.stringMatching(/no request until 2026-01-01 05:\d\d:\d\d UTC.*the run will be late/) },
    });
    const { key } = (note as { note: { key: string } }).note;
    expect(operatorPaceNotes({ ...world, notedKeys: new Set([key]) })).toEqual([]);
  });
});

describe('the reason of a late run', () => {
  const endMs = START_MS + 4 * 60 * MINUTE_MS;

  it('names the operator, and about how many products the pace has cost', () => {
    // 239 minutes at half the pace, by four addresses with 10.1 s for a product.
    expect(slowedByOperator(paced({ intervalMs: 20_000 }).run, 5_000, endMs)).toMatch(
      /^about 2839 of them because the operator asked for a slower pace: 20s/,
    );
    expect(slowedByOperator(paced({ pauseMs: 10 * MINUTE_MS }).run, 5_000, endMs)).toMatch(/^about 237 of them/);
    expect(slowedByOperator(paced({ intervalMs: 20_000 }).run, 100, endMs)).toMatch(/^all of them/);
  });

  it('does not name an operator who has asked for nothing, or has reset it', () => {
    expect(slowedByOperator(aRun(), 100, endMs)).toBeNull();
    expect(slowedByOperator(paced('reset').run, 100, endMs)).toBeNull();
  });
});

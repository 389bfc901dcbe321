import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decide, unnoted } from '../../../orchestrator/core/decide/decide.ts';
import {
  addressesAllowed,
  keepSlowerPaces,
  isSlotResting,
  mayBeLaunched,
  raisedPaces,
  robotsInForce,
  slowerPaceInWords,
  withinCaps,
} from '../../../orchestrator/core/decide/site-cap.ts';
import { canFill, isFilledSoon } from '../../../orchestrator/core/decide/slot-attempts.ts';
import type { Action } from '../../../orchestrator/core/model/actions.ts';
import { FleetSnapshot } from '../../../orchestrator/core/model/fleet-snapshot.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import type { HostPace } from '../../../orchestrator/core/plan/host-pace.ts';
import { combinePolicies } from '../../../shared/domain/robots.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import {
  aBooting,
  aClaim,
  ALLOW_ALL,
  anIncident,
  anInstance,
  aPlan,
  aRun,
  aWorld,
  kindsOf,
  movesOf,
  START_MS,
} from './builders.ts';

const HOST = '127.0.0.1:1';
const delayOf = (crawlDelayMs: number | null): RobotsPolicy => ({
  ...ALLOW_ALL,
  version: `${crawlDelayMs}`,
  crawlDelayMs,
});

const crawling = (slot: number, change: Partial<InstanceRecord> = {}): InstanceRecord =>
  anInstance(slot, {
    phase: 'crawling',
    lastHeartbeatAtMs: START_MS + 60_000,
    progress: { ...NO_PROGRESS, assigned: 20, pending: 20 },
    ...change,
  });
const lost = (slot: number, change: Partial<InstanceRecord> = {}): InstanceRecord =>
  crawling(slot, { phase: 'terminating', reason: 'heartbeat-lost', manifestKey: 'm', ...change });

/** The world that a main server sees which has read this robots.txt; the run has the paces of an earlier moment. */
function seen(rows: readonly InstanceRecord[], robots: RobotsPolicy, paces?: readonly HostPace[]): World {
  const run = aRun({ plan: aPlan({ instances: 4 }), ...(paces === undefined ? {} : { paces }) });
  const world = aWorld({ run, instances: rows });
  const raised = raisedPaces(world, robots);
  return { ...world, raised, robots: robotsInForce({ ...world, raised }, robots) };
}

const four = [0, 1, 2, 3].map((slot) => crawling(slot));
const CAPPED = seen(four, delayOf(20_000)).raised!;

describe('a Crawl-delay', () => {
  it('that rises above the interval caps the host at what the addresses at work make of it', () => {
    expect(CAPPED).toEqual([
      {
        host: HOST,
        intervalMs: 20_000,
        cap: { addresses: 4, delayMs: 20_000, beforeMs: 10_000, atMs: START_MS + 60_000, runId: aRun().id },
      },
    ]);
  });

  it.each([null, 4_000, 10_000])('of %s within the interval caps nothing', (ms) => {
    const world = seen(four, delayOf(ms));
    expect(world.raised).toBeNull();
    expect(addressesAllowed(world)).toBe(Infinity);
    expect(keepSlowerPaces(world)).toEqual([]);
  });

  it('counts only addresses that send requests', () => {
    const rows = [
      crawling(0),
      crawling(1, { incident: anIncident() }),
      crawling(2, { sealed: true, progress: { ...NO_PROGRESS, assigned: 20 } }),
      aBooting(3),
      lost(4),
    ];
    expect(seen(rows, delayOf(20_000)).raised![0]!.cap!.addresses).toBe(1);
  });

  it('counts the plan before any address is at work', () => {
    expect(seen([aClaim(0)], delayOf(20_000)).raised![0]!.cap!.addresses).toBe(4);
  });

  it('that rises again lowers the cap, and never lifts it', () => {
    const again = seen([...four, crawling(4)], delayOf(40_000), CAPPED).raised![0]!.cap!;
    expect(again).toMatchObject({ addresses: 4, delayMs: 40_000, beforeMs: 10_000 });
    expect(seen(four.slice(2), delayOf(40_000), CAPPED).raised![0]!.cap!.addresses).toBe(2);
  });

  it('that falls again leaves the sum: each of the addresses keeps its pace', () => {
    const world = seen(four, delayOf(null), CAPPED);
    expect(world.raised).toBeNull();
    expect(world.robots!.crawlDelayMs).toBe(20_000);
    expect(seen(four.slice(2), delayOf(null), CAPPED).robots!.crawlDelayMs).toBe(10_000);
  });

  it('of one domain concerns its host alone', () => {
    const productUrl = ['a', 'b'].map((host) => ({ url: `https://${host}.example/{id}`, weight: 1 }));
    const run = aRun();
    run.settings.site.productUrl = productUrl;
    const world = aWorld({ run, instances: four });
    const robots = combinePolicies([delayOf(null), delayOf(20_000)]);
    const raised = raisedPaces(world, robots)!;
    expect(raised.map(({ host, cap }) => [host, cap?.addresses])).toEqual([
      ['a.example', undefined],
      ['b.example', 4],
    ]);
    const more = { ...world, raised, fleet: new FleetSnapshot([...four, crawling(4)]) };
    expect(robotsInForce(more, robots).domains!.map(({ crawlDelayMs }) => crawlDelayMs)).toEqual([null, 25_000]);
  });
});

describe('under a cap', () => {
  it('an address more than it counts slows all of them, and instances get that as news', () => {
    const world = seen([...four, aBooting(4)], delayOf(20_000), CAPPED);
    expect(world.robots).toMatchObject({ crawlDelayMs: 25_000, version: '20000+25000' });
  });

  it('claims beyond it are dropped unless EC2 was called for them, and slow nobody down', () => {
    const rows = [crawling(0), crawling(1), crawling(2), aClaim(3), aClaim(4), aClaim(5, { attempts: 1 })];
    const world = seen(rows, delayOf(20_000), CAPPED);
    expect(world.robots!.crawlDelayMs).toBe(20_000);
    expect(movesOf(decide(world))).toEqual(['3.1 claimed>lost not-needed', '4.1 claimed>lost not-needed']);
    const oneLess = seen(rows.slice(1), delayOf(20_000), CAPPED);
    expect(movesOf(decide(oneLess))).toEqual(['4.1 claimed>lost not-needed']);
    expect(kindsOf(decide(oneLess))).toContain('launch 3.1');
  });

  it('a lost instance is replaced once EC2 shows its machine as ended', () => {
    const rows = (change: Partial<InstanceRecord>) => [crawling(0), crawling(1), crawling(2), lost(3, change)];
    const running = seen(rows({}), delayOf(20_000), CAPPED);
    expect(kindsOf(decide(running)).filter((kind) => kind.startsWith('claim'))).toEqual([]);
    expect(canFill(running, 3, running.fleet.latest.get(3))).toBe(true);
    const ended = seen(rows({ cloudState: 'shutting-down' }), delayOf(20_000), CAPPED);
    expect(kindsOf(decide(ended))).toContain('claim 3.2');
  });

  it('an empty slot of the plan stays empty, and no product waits for it', () => {
    const three = four.slice(1);
    const capped = seen(three, delayOf(20_000)).raised!;
    const world = seen(three, delayOf(20_000), capped);
    expect(kindsOf(decide(world)).filter((kind) => kind.startsWith('claim'))).toEqual([]);
    expect(isFilledSoon(world, 0, undefined)).toBe(false);
  });

  it('a slower pace is kept once: stored first, then said', () => {
    const world = seen(four, delayOf(20_000));
    const [kept, note] = keepSlowerPaces(world);
    expect(kept).toEqual({ kind: 'keep-paces', paces: CAPPED });
    expect(note).toMatchObject({
      alarm: true,
      note: {
        detail:
          `robots.txt of ${HOST} asks for 20s between two requests of one address instead of 10s: the longer one is kept, ` +
          'no address is added to make up for it (at most 0.2/s, as 4 addresses make at 20s), and the deadline may be missed',
      },
    });
    const stored = seen(four, delayOf(20_000), CAPPED);
    expect(keepSlowerPaces(stored)).toEqual([note]);
    const key = note?.kind === 'note' ? note.note.key : '';
    expect(unnoted({ notedKeys: new Set([key]) }, keepSlowerPaces(stored))).toEqual([]);
  });

  it('of an earlier run nothing is said: the plan has', () => {
    const earlier = CAPPED.map((pace) => ({ ...pace, cap: { ...pace.cap!, runId: 'earlier' } }));
    expect(keepSlowerPaces(seen(four, delayOf(20_000), earlier))).toEqual([]);
  });
});

describe('a slot whose address rests', () => {
  const world = seen(four, ALLOW_ALL);
  const banned = lost(0, { incident: anIncident({ untilMs: world.nowMs + 1_000 }) });
  const paused = lost(0, { lastHeartbeatAtMs: world.nowMs, progress: { ...NO_PROGRESS, restMs: 1_000 } });

  it.each([
    ['after a ban', banned],
    ['after a Retry-After', paused],
  ])('%s gets no other address before that is over', (_, record) => {
    const rows = [{ ...record, cloudState: 'shutting-down' as const }, ...four.slice(1)];
    const resting = seen(rows, ALLOW_ALL);
    expect(isSlotResting(resting, record)).toBe(true);
    expect(kindsOf(decide(resting))).not.toContain('claim 0.2');
    expect(isFilledSoon(resting, 0, record)).toBe(false);
    expect(canFill(resting, 0, record)).toBe(true);
    expect(kindsOf(decide({ ...resting, nowMs: world.nowMs + 1_001 }))).toContain('claim 0.2');
  });

  it('gets one with site.on_ban: replace', () => {
    const run = aRun();
    run.settings.site.onBan = 'replace';
    expect(isSlotResting({ ...world, run }, banned)).toBe(false);
    expect(isSlotResting({ ...world, run }, paused)).toBe(true);
  });
});

describe('a late run', () => {
  const run = aRun({ paces: CAPPED, plan: aPlan({ paceMs: 10_000 }) });
  /** Four addresses for 1,000 s: 400 products at 10 s each, 200 at 20 s. */
  const endMs = START_MS + 1_060_000;

  it('names the host that asked for less, and about how many products that cost', () => {
    const why = `because the site asked for a slower pace: robots.txt of ${HOST} raised its Crawl-delay from 10s to 20s in mid-run`;
    expect(slowerPaceInWords(run, 300, endMs)).toBe(`about 200 of them ${why}`);
    expect(slowerPaceInWords(run, 200, endMs)).toBe(`all of them ${why}`);
  });

  it('names no host when nothing is left, when it asked too late to matter, and when it asked an earlier run', () => {
    expect(slowerPaceInWords(run, 0, endMs)).toBeNull();
    expect(slowerPaceInWords(run, 300, START_MS + 60_001)).toBeNull();
    expect(slowerPaceInWords({ ...run, id: 'other' }, 300, endMs)).toBeNull();
    expect(slowerPaceInWords(aRun(), 300, endMs)).toBeNull();
  });
});

const anyInstance = fc.constantFrom<(slot: number) => InstanceRecord>(
  crawling,
  (slot) => crawling(slot, { incident: anIncident() }),
  (slot) => crawling(slot, { phase: 'uploading' }),
  aBooting,
  aClaim,
  lost,
  (slot) => lost(slot, { cloudState: 'shutting-down' }),
);
const moment = fc.record({
  fleet: fc.array(anyInstance, { minLength: 0, maxLength: 12 }),
  delayMs: fc.option(fc.integer({ min: 1, max: 60_000 })),
  claims: fc.integer({ min: 0, max: 12 }),
});

describe('whatever becomes of the fleet and of robots.txt', () => {
  it('the addresses together never get more than was asked for, and no claim raises the sum', () => {
    fc.assert(
      fc.property(fc.array(moment, { minLength: 1, maxLength: 8 }), (moments) => {
        let paces: readonly HostPace[] | undefined;
        let mostPerMs = Infinity;
        for (const { fleet, delayMs, claims } of moments) {
          const rows = fleet.map((make, slot) => make(slot));
          const world = seen(rows, delayOf(delayMs), paces);
          if (world.raised !== null) {
            paces = world.raised;
            const { addresses, delayMs: askedMs } = paces[0]!.cap!;
            expect(addresses / askedMs).toBeLessThanOrEqual(mostPerMs);
            mostPerMs = addresses / askedMs;
          }
          const eachMs = Math.max(world.run.settings.site.intervalMs, world.robots!.crawlDelayMs ?? 0);
          const { up, ending } = world.fleet.addresses;
          const sent = world.fleet.addresses.unsent.filter((record) => mayBeLaunched(world, record)).length;
          if (mostPerMs < Infinity) expect((up + ending) / eachMs).toBeLessThanOrEqual(mostPerMs * (1 + 1e-9));
          const wanted = Array.from({ length: claims }, (_, i): Action => {
            return { kind: 'claim', slot: 100 + i, epoch: 1, pool: null };
          });
          const admitted = withinCaps(world, wanted).length;
          if (sent + admitted > 0 && mostPerMs < Infinity)
            expect((up + ending + sent + admitted) / eachMs).toBeLessThanOrEqual(mostPerMs * (1 + 1e-9));
        }
      }),
      { numRuns: 300 },
    );
  });
});

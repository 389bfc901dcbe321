import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { workersOf } from '../../../orchestrator/core/decide/shares/workers.ts';
import { balanceOf, isLeftBehind, limitsByTime } from '../../../orchestrator/core/decide/shares/chunk-limits.ts';
import { drainAtMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../orchestrator/core/model/world.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { anIncident, anInstance, aPlan, aRun, aWorld, START_MS, type WorldChange } from './builders.ts';

/** Ten seconds and the margin. */
const PACE_MS = 10_100;
const CHUNK = 5;

interface Busy {
  pending: number;
  pageMs?: number;
  change?: Partial<InstanceRecord>;
}

/** Crawling instances with the given pending products; all chunks are granted. */
function world(busy: readonly Busy[], change: WorldChange = {}): World {
  const run = change.run ?? aRun({ plan: aPlan({ instances: busy.length, chunkSize: CHUNK }) });
  const nowMs = change.nowMs ?? START_MS + 600_000;
  const instances = busy.map(({ pending, pageMs = 300, change: more }, slot) =>
    anInstance(slot, {
      phase: 'crawling',
      lastHeartbeatAtMs: nowMs,
      progress: { ...NO_PROGRESS, assigned: pending + 20, pending, stored: 20, requests: 20, pageMs },
      ...more,
    }),
  );
  const bySlot = busy.map(({ pending }, slot) => ({
    slot,
    epoch: 1,
    chunks: (pending + 20) / CHUNK,
    products: pending + 20,
  }));
  const work = { chunks: 100, waiting: 0, granted: 100, bySlot };
  return aWorld({ run, nowMs, instances, work, ...change });
}

const moved = (counts: ReadonlyMap<number, number>): number => [...counts.values()].reduce((sum, n) => sum + n, 0);

describe('balanceOf', () => {
  it('moves nothing when the shards end within the spread of boot times', () => {
    const balance = balanceOf(world([{ pending: 100 }, { pending: 80 }, { pending: 95 }]));
    expect([...balance.give]).toEqual([]);
    expect([...balance.get]).toEqual([]);
  });

  it('takes from a straggler until the ends are even to within a chunk', () => {
    // A tenth of the pace: 100 products take this instance 10,000 s, the others 1,010 s.
    const balance = balanceOf(world([{ pending: 100, pageMs: 100_000 }, { pending: 100 }, { pending: 100 }]));
    expect([...balance.give.keys()]).toEqual([0]);
    expect(moved(balance.get)).toBe(moved(balance.give));
    expect(balance.give.get(0)).toBeGreaterThanOrEqual(15);
    expect(balance.evenEndMs).toBeLessThan(balance.endMs / 1);
    const chunkMs = CHUNK * 100_000;
    expect(balance.evenEndMs - (START_MS + 600_000)).toBeLessThan(1_500_000 + chunkMs);
  });

  it('gives work to an instance that has none', () => {
    const balance = balanceOf(world([{ pending: 200 }, { pending: 0 }]));
    expect([...balance.give]).toEqual([[0, 20]]);
    expect([...balance.get]).toEqual([[1, 20]]);
  });

  it('takes no chunk when there is less than a whole one', () => {
    expect([...balanceOf(world([{ pending: CHUNK, pageMs: 1_000_000 }, { pending: 0 }])).give]).toEqual([]);
  });

  it.each([
    ['banned', { phase: 'banned', incident: anIncident() }],
    ['sealed', { sealed: true }],
    ['uploading', { phase: 'uploading' }],
    ['lost', { phase: 'terminated', reason: null, manifestKey: 'm' }],
  ] as const)('gives nothing to an instance that is %s', (_name, change) => {
    const balance = balanceOf(world([{ pending: 200 }, { pending: 0, change }, { pending: 190 }]));
    expect(balance.get.has(1)).toBe(false);
  });

  it('moves a few chunks when only one instance would be late', () => {
    const run = aRun({ plan: aPlan({ instances: 2, chunkSize: CHUNK }) });
    const nowMs = drainAtMs(run) - 20 * PACE_MS;
    const late = world([{ pending: 25 }, { pending: 5 }], { run, nowMs });
    expect([...balanceOf(late).give]).toEqual([[0, 2]]);
    const inTime = world([{ pending: 15 }, { pending: 5 }], { run, nowMs });
    expect([...balanceOf(inTime).give]).toEqual([]);
  });

  it('moves nothing when all are equally late, or once the run drains', () => {
    const run = aRun({ plan: aPlan({ instances: 2, chunkSize: CHUNK }) });
    const late = world([{ pending: 100 }, { pending: 100 }], { run, nowMs: drainAtMs(run) - 60_000 });
    expect([...balanceOf(late).give]).toEqual([]);
    const draining = world([{ pending: 200 }, { pending: 0 }], { run, nowMs: drainAtMs(run) });
    expect([...balanceOf(draining).give]).toEqual([]);
  });

  it('gives no instance a chunk that it could not crawl in time: it would refuse it, and the chunk would go back', () => {
    const run = aRun({ plan: aPlan({ instances: 2, chunkSize: CHUNK }) });
    const nowMs = drainAtMs(run) - 20 * PACE_MS;
    const all = (pending: number) => world([{ pending: 40, pageMs: 30_000 }, { pending }], { run, nowMs });
    expect([...balanceOf(all(10)).give]).toEqual([[0, 2]]);
    expect([...balanceOf(all(16)).give]).toEqual([]);
  });

  it('skips an instance that has nothing to give', () => {
    expect([...balanceOf(world([{ pending: 200 }, { pending: 0 }]), new Set(['0.1'])).give]).toEqual([]);
  });

  it('counts the grants of the last reply, which no counter includes yet', () => {
    const fresh = world([{ pending: 0 }, { pending: 100 }]);
    fresh.work.bySlot[0] = { slot: 0, epoch: 1, chunks: 24, products: 120 };
    expect(workersOf(fresh).workers.map((p) => p.pending)).toEqual([100, 100]);
    expect([...balanceOf(fresh).give]).toEqual([]);
  });

  it('never bounces: after the planned transfers it plans no reverse ones, whichever instances are slow', () => {
    const busy = fc.record({
      pending: fc.integer({ min: 0, max: 60 }).map((n) => n * CHUNK),
      pageMs: fc.integer({ min: 100, max: 150_000 }),
    });
    fc.assert(
      fc.property(
        fc.array(busy, { minLength: 2, maxLength: 12 }),
        fc.integer({ min: 0, max: 14_000_000 }),
        (all, gone) => {
          const nowMs = START_MS + gone;
          const before = world(all, { nowMs });
          const balance = balanceOf(before);
          expect(moved(balance.get)).toBe(moved(balance.give));
          for (const slot of balance.give.keys()) {
            expect(balance.get.has(slot)).toBe(false);
            expect(balance.give.get(slot)! * CHUNK).toBeLessThanOrEqual(all[slot]!.pending);
          }
          const after = all.map(({ pending, pageMs }, slot) => ({
            pending: pending + ((balance.get.get(slot) ?? 0) - (balance.give.get(slot) ?? 0)) * CHUNK,
            pageMs,
          }));
          const next = balanceOf(world(after, { nowMs }));
          expect(next.endMs).toBeLessThanOrEqual(Math.max(balance.endMs, nowMs) + 1e-3);
          for (const slot of next.give.keys()) expect(balance.get.has(slot)).toBe(false);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('the limits for waiting chunks', () => {
  const waiting = (w: World, chunks: number): World => ({ ...w, work: { ...w.work, waiting: chunks } });

  it('are by number while equal shares leave no instance behind', () => {
    const calm = waiting(world([{ pending: 40 }, { pending: 50 }, { pending: 45 }]), 6);
    expect(isLeftBehind(calm, 15)).toBe(false);
    expect(limitsByTime(calm, 15)).toBeNull();
  });

  it('are by time when a straggler would get an equal share', () => {
    const slow = waiting(world([{ pending: 20, pageMs: 100_000 }, { pending: 60 }, { pending: 60 }]), 20);
    expect(isLeftBehind(slow, 20)).toBe(true);
    const forecast = { byTime: true } as World['forecast'];
    const limits = limitsByTime({ ...slow, forecast }, 20)!;
    expect(limits.maxChunks.get(0)).toBeLessThanOrEqual(9);
    expect(limits.maxChunks.get(1)! + limits.maxChunks.get(2)!).toBeGreaterThanOrEqual(16 + 16 + 18);
    expect(limits.maxOfServing).toBe(Math.max(limits.maxChunks.get(1)!, limits.maxChunks.get(2)!));
  });

  it('are by time after a transfer, so that transferred chunks do not return', () => {
    const given = { ...waiting(world([{ pending: 60 }, { pending: 20 }]), 4), lastTransferAtMs: START_MS + 599_000 };
    const limits = limitsByTime(given, 30)!;
    expect(limits.maxChunks.get(0)).toBe(16);
    expect(limits.maxChunks.get(1)).toBe(12);
    expect(limitsByTime({ ...given, lastTransferAtMs: START_MS }, 30)).toBeNull();
  });

  it('leave room for all waiting chunks, whichever instance takes them', () => {
    const busy = fc.record({
      pending: fc.nat(60).map((n) => n * CHUNK),
      pageMs: fc.integer({ min: 100, max: 100_000 }),
    });
    fc.assert(
      fc.property(fc.array(busy, { minLength: 2, maxLength: 10 }), fc.integer({ min: 1, max: 200 }), (all, chunks) => {
        const w = { ...waiting(world(all), chunks), lastTransferAtMs: START_MS + 599_999 };
        const limits = limitsByTime(w, 0)!;
        const room = w.work.bySlot.reduce((sum, s) => sum + limits.maxChunks.get(s.slot)! - s.chunks, 0);
        expect(room).toBeGreaterThanOrEqual(chunks);
      }),
    );
  });
});

/** When a discovery takes URLs into its run, and what keeps its instances until it has found everything. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../../../orchestrator/core/decide/decide.ts';
import { discoveryState, takeUrls } from '../../../../orchestrator/core/decide/discovery-state.ts';
import { FleetSnapshot } from '../../../../orchestrator/core/model/fleet-snapshot.ts';
import type { World } from '../../../../orchestrator/core/model/world.ts';
import { extraLaunches } from '../../../../orchestrator/core/decide/extra-launches.ts';
import { anInstance, aPlan, aRun, aWorld, START_MS } from '../../core/builders.ts';

const settings = { ...aRun().settings, discover: { pages: 1_000 } as never };

function worldOf(more: Partial<World> = {}, plan: object = {}): World {
  const run = aRun({ settings, plan: aPlan({ instances: 3, chunkSize: 5, paceMs: 10_000, ...plan }) });
  return aWorld({ run, nowMs: START_MS, ...more });
}

describe('a discovery', () => {
  it('takes no more than its instances can crawl in time, less what they have', () => {
    const world = worldOf();
    const state = discoveryState(world, { waiting: 10_000, planned: 100, open: 20 });
    const crawlMs = world.run.deadlineAtMs - START_MS;
    expect(state.isOpen).toBe(true);
    expect(state.takable).toBeGreaterThan(0);
    expect(state.takable).toBeLessThanOrEqual((3 * crawlMs) / 10_000 - 20);
    expect(discoveryState(world, { waiting: 3, planned: 100, open: 0 })).toEqual({ takable: 3, isOpen: false });
    expect(discoveryState(world, { waiting: 30, planned: 998, open: 0 }).takable).toBe(2);
    const late = worldOf({ nowMs: world.run.deadlineAtMs });
    expect(discoveryState(late, { waiting: 30, planned: 0, open: 5 })).toEqual({ takable: 0, isOpen: false });
  });

  it('takes two chunks an instance, once less than one waits for each', () => {
    const state = { takable: 500, isOpen: true };
    const waiting = (chunks: number) => ({ chunks, waiting: chunks, granted: 0, bySlot: [] });
    expect(takeUrls(worldOf({ discovery: state, work: waiting(2) }))).toEqual([{ kind: 'take', limit: 30 }]);
    expect(takeUrls(worldOf({ discovery: state, work: waiting(3) }))).toEqual([]);
    expect(takeUrls(worldOf({ discovery: { takable: 0, isOpen: true }, work: waiting(0) }))).toEqual([]);
    expect(takeUrls(worldOf({ work: waiting(0) }))).toEqual([]);
  });

  it('grows its fleet for the URLs that it cannot crawl in time, as far as its plan says', () => {
    const growth = { urls: 5_000, most: 5_000, instances: 6, cost: 1 };
    const work = { chunks: 0, waiting: 0, granted: 0, bySlot: [] };
    const forecast = { end: { p50Ms: START_MS, p95Ms: START_MS, workers: [] } } as never;
    const claims = (waiting: number, plan: object = { growth }): number => {
      const fleet = new FleetSnapshot([0, 1, 2].map((slot) => anInstance(slot)));
      const seen = worldOf({ work, forecast, fleet }, plan);
      seen.run.settings = { ...settings, discover: { pages: 50_000 } as never };
      const world = { ...seen, discovery: discoveryState(seen, { waiting, planned: 0, open: 0 }) };
      const actions = extraLaunches(world).filter(({ kind }) => kind === 'claim');
      expect(actions.every((a) => a.kind !== 'claim' || /\d+ URLs are found/.test(a.why ?? ''))).toBe(true);
      return actions.length;
    };
    expect(claims(1_000)).toBe(0);
    expect(claims(4_500)).toBe(1);
    expect(claims(40_000)).toBe(3);
    // A run of an earlier version has no growth in its plan.
    expect(claims(40_000, {})).toBe(0);
  });

  it('launches its fleet for the first seed, and ends when nothing waits and nothing is open', () => {
    const nothing = { chunks: 0, waiting: 0, granted: 0, bySlot: [] };
    const kinds = (discovery: NonNullable<World['discovery']>): string[] =>
      decide(worldOf({ fleet: new FleetSnapshot([]), work: nothing, discovery })).map(({ kind }) => kind);
    expect(kinds({ takable: 1, isOpen: false })).toContain('take');
    expect(kinds({ takable: 0, isOpen: true })).not.toContain('move-run');
    expect(kinds({ takable: 0, isOpen: false })).toContain('move-run');
  });
});

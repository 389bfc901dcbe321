import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { Transfers } from '../../../orchestrator/core/act/shares/transfers.ts';
import type { WorkStore } from '../../../orchestrator/core/model/stores.ts';
import { MachineClock } from '../../../orchestrator/core/simulation/machine-clock.ts';
import { START_MS, aWorld, anInstance } from './builders.ts';
import { aCore } from './fake-core.ts';

describe('Transfers', () => {
  it('F12: continues after the clock was set back past the last transfer', async () => {
    const time = new VirtualClock(START_MS);
    const clock = new MachineClock(time);
    const work = {
      transferChunks: () => Promise.resolve(0),
      chunksOf: () => Promise.resolve([{ id: 'c2' }, { id: 'c1' }]),
    } as unknown as WorkStore;
    const transfers = new Transfers(aCore({ clock, work }));
    const record = anInstance(0, { phase: 'crawling' });
    const wanted = async (atMs: number): Promise<string[]> => {
      const balance = { give: new Map([[0, 1]]), get: new Set<number>() };
      const forecast = { atMs, balance, end: { workers: [], p50Ms: null, p95Ms: null }, byTime: false };
      return transfers.wanted(aWorld({ instances: [record], forecast: forecast as never }), record);
    };
    await transfers.take(record, ['c3']);
    expect(await wanted(clock.now())).toEqual([]);
    expect(await wanted(clock.now() + 1)).toEqual(['c2']);
    clock.skewMs = -1_200_000;
    expect(await wanted(clock.now())).toEqual(['c2']);
  });
});

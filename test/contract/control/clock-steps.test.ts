/** The main server's wall clock is set in the middle of a run: no instance is given up for it. */
import { describe, expect, it } from 'vitest';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { START_MS } from '../../unit/control/builders.ts';
import { WholeRun } from './whole-run.ts';

const SHAPE = { products: 60, instances: 3, chunkSize: 2, intervalMs: 1_000, deadlineMs: 3_600_000 };

let whole: WholeRun;

describe('a wall clock that is set', () => {
  it.each([1_200_000, -1_200_000])('F12: by %i ms costs no instance, and is reported', async (byMs) => {
    whole = await WholeRun.open(SHAPE);
    await whole.start();
    await whole.until('the middle of the crawl', () => whole.fetches.size > 20);
    whole.serverClock.skewMs = byMs;
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
    expect(whole.server!.alarms.filter((a) => a.includes('jumped'))).toHaveLength(1);
    expect((await whole.verdict()).differences).toEqual([]);
  });

  it.each([-500, -3_700])('F12: by %i ms stays unnoticed and costs no instance either', async (byMs) => {
    whole = await WholeRun.open({ ...SHAPE, products: 180 });
    const server = await whole.start();
    // After the grace that a main server grants every instance when it starts.
    const { lostMs } = limitsFor(SHAPE.deadlineMs);
    await whole.until('the middle of the crawl', () => whole.clock.now() > START_MS + lostMs + 5_000);
    expect(whole.fetches.size).toBeLessThan(170);
    whole.serverClock.skewMs = byMs;
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
    expect(server.alarms).toEqual([]);
  });

  it('F12: back does not hide an instance that has fallen silent', async () => {
    whole = await WholeRun.open(SHAPE);
    await whole.start();
    await whole.until('the middle of the crawl', () => whole.fetches.size > 20);
    whole.fleet.of(1).freeze();
    whole.serverClock.skewMs = -1_200_000;
    const sinceMs = whole.clock.now();
    await whole.until('the loss', async () => {
      const record = await whole.stores.of(whole.run.id).fleet.get({ slot: 1, epoch: 1 });
      return record?.reason === 'heartbeat-lost';
    });
    expect(whole.clock.now() - sinceMs).toBeLessThan(120_000);
    await whole.untilEnd();
    expect((await whole.verdict()).products.open).toBe(0);
  });
});

/** The main server's wall clock is set in the middle of a run: no instance is given up for it. */
import { afterEach, describe, expect, it } from 'vitest';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { START_MS } from '../../unit/control/builders.ts';
import type { Base } from './run-stage.ts';
import { WholeRun } from './whole-run.ts';
import { useBase } from './use-base.ts';

const SHAPE = { products: 60, instances: 3, chunkSize: 2, intervalMs: 1_000, deadlineMs: 3_600_000 };

let base: Base;
let whole: WholeRun;

useBase((made) => (base = made));
afterEach(() => whole?.close());

describe('a wall clock that is set', () => {
  it.each([1_200_000, -1_200_000])('F12: by %i ms costs no instance, and is reported', async (byMs) => {
    whole = await WholeRun.open(base, SHAPE);
    await whole.start();
    await whole.until('the middle of the crawl', () => whole.fleet.fetches.size > 20);
    whole.serverClock.skewMs = byMs;
    await whole.untilEnd();
    expect(await whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
    expect(whole.server!.alarms.filter((a) => a.includes('jumped'))).toHaveLength(1);
    expect((await whole.verdict()).differences).toEqual([]);
  });

  it.each([-500, -3_700])('F12: by %i ms stays unnoticed and costs no instance either', async (byMs) => {
    whole = await WholeRun.open(base, { ...SHAPE, products: 180 });
    const server = await whole.start();
    // After the grace that a main server grants every instance when it starts.
    const { lostMs } = limitsFor(SHAPE.deadlineMs);
    await whole.until('the middle of the crawl', () => whole.clock.now() > START_MS + lostMs + 5_000);
    expect(whole.fleet.fetches.size).toBeLessThan(170);
    whole.serverClock.skewMs = byMs;
    await whole.untilEnd();
    expect(await whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
    expect(server.alarms).toEqual([]);
  });

  it('F12: back does not hide an instance that has fallen silent', async () => {
    whole = await WholeRun.open(base, SHAPE);
    await whole.start();
    await whole.until('the middle of the crawl', () => whole.fleet.fetches.size > 20);
    whole.fleet.of(1).frozen = true;
    whole.serverClock.skewMs = -1_200_000;
    const sinceMs = whole.clock.now();
    await whole.until('the loss', async () => {
      const record = await base.stores.fleet.get(whole.run.id, 1, 1);
      return record?.reason === 'heartbeat-lost';
    });
    expect(whole.clock.now() - sinceMs).toBeLessThan(120_000);
    await whole.untilEnd();
    expect((await whole.verdict()).products.open).toBe(0);
  });
});

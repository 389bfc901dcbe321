/** The end of a run's time: all instances drain, hanging ones are given up, results are published within a minute. */
import { describe, expect, it } from 'vitest';
import type { RunShape } from './run-stage.ts';
import { WholeRun } from './whole-run.ts';

/** 300 products at one a second and two instances: 96 s are not enough for half of them. */
const TOO_MANY: RunShape = {
  products: 300,
  instances: 2,
  chunkSize: 5,
  intervalMs: 1_000,
  deadlineMs: 100_000,
  site: { maxRatePerSecond: 2 },
};

let whole: WholeRun;

async function eventsOf(kind: string): Promise<(string | null)[]> {
  const events = await whole.stores.of(whole.run.id).run.events(1_000);
  return events.filter((e) => e.kind === kind).map((e) => e.to);
}

describe('a run that has more to do than time', () => {
  it('ends with exit code 15 by its deadline, and has reported it at each mark, once', async () => {
    whole = await WholeRun.open(TOO_MANY);
    await whole.start();
    await whole.until('three quarters', () => whole.clock.now() > whole.run.startedAtMs + 80_000);
    whole.server!.kill();
    await whole.play();
    const record = whole.record();
    expect(record).toMatchObject({ phase: 'completed', exitCode: 15 });
    expect(record.finishedAtMs! - whole.run.deadlineAtMs).toBeLessThanOrEqual(0);
    expect((await eventsOf('forecast')).toReversed()).toEqual(['late 50%', 'late 75%', 'late 90%']);
    const left = await whole.stores.of(whole.run.id).work.failedProducts(0, 1_000, ['deadline']);
    expect(left.length).toBeGreaterThan(100);
    expect((await whole.verdict()).products.open).toBe(0);
  });
});

describe('F12: a clock that is set past the deadline in mid-run', () => {
  it.each([
    ['past the deadline', 100_000],
    ['past the time at which instances power themselves off', 3_600_000],
    ['by a year', 365 * 86_400_000],
  ])('%s: what is done is published, everything is terminated, and verify holds', async (_, aheadMs) => {
    whole = await WholeRun.open(TOO_MANY);
    await whole.start();
    await whole.until('some pages', () => whole.fleet.instances.some((i) => i.fetched >= 20));
    whole.server!.clock.skewMs += aheadMs;
    await whole.untilEnd();
    const reason = `deadline missed: ${TOO_MANY.products - whole.fetches.size} products not crawled`;
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 15, reason });
    expect((await whole.instances()).map((i) => i.phase)).toEqual(['terminated', 'terminated']);
    expect((await whole.verdict()).differences).toEqual([]);
    expect(whole.cloud.compute.alive()).toEqual([]);
  });
});

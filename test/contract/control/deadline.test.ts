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
  const events = await whole.stores.runs.events(whole.run.id, 1_000);
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

  it('publishes within a minute of its deadline when no upload gets through', async () => {
    whole = await WholeRun.open(TOO_MANY);
    const { objects } = whole.cloud;
    const put = objects.putIfAbsent.bind(objects);
    objects.putIfAbsent = (key, bytes) => {
      const isRefused = key.endsWith('.gz') && whole.clock.now() > whole.run.startedAtMs + 70_000;
      return isRefused ? Promise.reject(new Error('SlowDown')) : put(key, bytes);
    };
    await whole.play();
    const record = whole.record();
    expect(record).toMatchObject({ phase: 'completed', exitCode: 15 });
    expect(record.finishedAtMs! - whole.run.deadlineAtMs).toBeLessThan(60_000);
    // What was in the bucket before is still published.
    expect(whole.rows().length).toBeGreaterThan(50);
  });

  it('publishes within a minute of its deadline when EC2 never reports the outcome of a launch', async () => {
    whole = await WholeRun.open(TOO_MANY);
    const { compute } = whole.cloud;
    await whole.start();
    await whole.until('some pages', () => whole.fleet.instances.filter((i) => i.fetched >= 5).length === 2);
    compute.kill(whole.fleet.of(1).id);
    compute.launchFaults.push(...Array.from({ length: 20 }, () => 'reply-lost' as const));
    const isCalled = async (): Promise<boolean> =>
      ((await whole.stores.of(whole.run.id).fleet.get({ slot: 1, epoch: 2 }))?.attempts ?? 0) > 0;
    await whole.until('a call without an answer', isCalled);
    compute.throttle.allUntilMs = whole.run.deadlineAtMs + 120_000;
    await whole.untilEnd();
    const record = whole.record();
    expect(record).toMatchObject({ phase: 'completed', exitCode: 15 });
    expect(record.finishedAtMs! - whole.run.deadlineAtMs).toBeLessThan(60_000);
    expect((await whole.verdict()).products.open).toBe(0);
    expect(compute.alive()).toEqual([]);
  });
});

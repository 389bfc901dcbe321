/** Whole runs that stall: what each cause costs, when the run ends, which alarms it raises. */
import { describe, expect, it } from 'vitest';
import type { ItemResult } from '../../../shared/wire/part.ts';
import type { RunShape } from './run-stage.ts';
import { WholeRun, usualResult } from './whole-run.ts';

/** Eight minutes: the alarm after one without progress, the end after two. */
const SHAPE: RunShape = { products: 300, instances: 2, chunkSize: 3, deadlineMs: 480_000, intervalMs: 1_000 };
const END_MS = 120_000;
/** For heartbeats, uploads that are given up, and EC2. */
const SLACK_MS = 45_000;

let whole: WholeRun;

const alarms = (): string => whole.server!.alarms.join('\n');

/** Starts a run and lets it crawl until `some` rows are loaded. */
async function underWay(shape: Partial<RunShape> = {}, some = 5): Promise<void> {
  whole = await WholeRun.open({ ...SHAPE, ...shape });
  await whole.start();
  await whole.until('some rows', async () => (await whole.outcomes()).stored >= some);
}

/** The time from now to the end of the run. */
async function timeToEnd(): Promise<number> {
  const fromMs = whole.clock.now();
  await whole.untilEnd();
  return whole.clock.now() - fromMs;
}

describe('a site that is down', () => {
  it('is requested at an eighth of the pace, gets no further address, and ends the run with 17 and its results', async () => {
    await underWay();
    whole.mood = () => 'down';
    const before = whole.fleet.instances.map((i) => whole.requestsOf(i).length);
    const tookMs = await timeToEnd();
    expect(tookMs).toBeGreaterThan(END_MS - 5_000);
    expect(tookMs).toBeLessThan(END_MS + SLACK_MS);
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 17, request: 'site-down' });
    expect(whole.record().reason).toMatch(/the site is down: \d+ products not crawled/);
    expect(whole.rows().length).toBeGreaterThanOrEqual(5);
    expect(whole.launches()).toBe(2);
    for (const [i, instance] of whole.fleet.instances.entries()) {
      const requestsAt = whole.requestsOf(instance);
      expect(requestsAt.length - before[i]!).toBeLessThan(60);
      expect(requestsAt.at(-1)! - requestsAt.at(-2)!).toBeGreaterThanOrEqual(8_000);
    }
    expect(alarms()).toMatch(/the site is down: \d+ of the last \d+ requests/);
    expect(alarms()).toMatch(/no progress for 1m.*the site is down/);
    expect((await whole.verdict()).products).toMatchObject({ open: 0 });
  });

  it('is crawled to the end when it comes back, at the planned pace again', async () => {
    await underWay({ products: 120 });
    whole.mood = () => 'down';
    await whole.until('the slow pace', () => /is down/.test(alarms()));
    whole.mood = () => 'fine';
    await whole.untilEnd();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(alarms()).toContain('the site answers again');
    const last = whole.requestsOf(whole.fleet.instances[0]!).slice(-2);
    expect(last[1]! - last[0]!).toBeLessThan(2_000);
  });

  it('ends the run with 17 though the main server is killed between the crawl and the end', async () => {
    const refused = (product: { n: number; id: string }): ItemResult => ({
      ...usualResult(product),
      outcome: 'failed',
      reason: 'network',
      detail: 'ECONNREFUSED',
    });
    // Each product has a second try, at an eighth of the pace: time for all of them before the run would end without
    // progress.
    whole = await WholeRun.open({ ...SHAPE, products: 30, deadlineMs: 960_000 }, refused);
    await whole.start();
    await whole.until('the end of the crawl', async () => whole.record().phase === 'releasing');
    whole.server!.kill();
    await whole.play();
    expect(whole.record()).toMatchObject({ phase: 'completed', exitCode: 17, request: null });
    expect(whole.record().reason).toBe('the site is down: 30 of 30 products failed');
  });
});

describe('a load balancer that this machine cannot reach', () => {
  it('raises an alarm with its URL within half a minute, and ends the run with 4', async () => {
    whole = await WholeRun.open(SHAPE);
    whole.fleet.send = () => Promise.resolve({ kind: 'unreachable', message: 'getaddrinfo ENOTFOUND lb' });
    await whole.start();
    await whole.until('a ready instance', () => whole.fleet.instances.some((i) => i.isHealthy));
    const fromMs = whole.clock.now();
    await whole.until('the alarm', () => whole.server!.alarms.length > 0);
    expect(whole.clock.now() - fromMs).toBeLessThan(45_000);
    const { url } = Object.values(whole.record().balancers)[0]!;
    expect(whole.server!.alarms[0]).toContain(`cannot reach the load balancer at ${url} (getaddrinfo ENOTFOUND lb)`);
    expect(whole.server!.alarms[0]).toContain('security group');
    await whole.untilEnd();
    expect(whole.clock.now() - fromMs).toBeLessThan(END_MS + SLACK_MS);
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 4, request: 'unreachable' });
    expect(whole.server!.alarms).toHaveLength(3);
    expect(whole.launches()).toBe(2);
  });
});

describe('a bucket that is lost', () => {
  const lose = (operations: readonly string[], name: string): void => {
    whole.cloud.objects.onCall = (operation) => {
      if (operations.includes(operation)) throw Object.assign(new Error('made up'), { name });
    };
  };

  it('in mid-run is named at once, and ends the run with 4 before its time, with the results so far', async () => {
    await underWay();
    lose(['put', 'get', 'list'], 'NoSuchBucket');
    const tookMs = await timeToEnd();
    expect(tookMs).toBeLessThan(END_MS + 2 * SLACK_MS);
    expect(whole.record()).toMatchObject({ phase: 'failed', exitCode: 4, request: 'lost-bucket' });
    expect(alarms()).toMatch(/the bucket cannot be used.*bucket b .*NoSuchBucket/);
    expect(alarms()).not.toContain('still shows it');
    expect(whole.rows().length).toBeGreaterThanOrEqual(5);
    expect(whole.cloud.compute.all().every((m) => m.state === 'terminated')).toBe(true);
  });

  it('for listing only, while a lost instance is to be closed, lets the other instances continue and ends in time', async () => {
    await underWay({ products: 100 });
    lose(['list'], 'AccessDenied');
    whole.fleet.of(0).end();
    const tookMs = await timeToEnd();
    expect(tookMs).toBeLessThan(END_MS + 2 * SLACK_MS + 100_000);
    expect(whole.record()).toMatchObject({ exitCode: 4 });
    expect(whole.rows().length).toBeGreaterThan(40);
    expect(alarms()).toMatch(/bucket b \(list\): AccessDenied/);
  });
});

/**
 * Whole runs by the real control loop on a real database, with EC2, load balancer, bucket and fleet in memory and
 * virtual time. Main servers are killed at random; their successors must end with the same rows.
 */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { COMPLETION_PATH } from '../../../shared/wire/callbacks.ts';
import type { RunShape } from './run-stage.ts';
import { expectAllStored, expectFetchedOnce } from './soundness.ts';
import { WholeRun } from './whole-run.ts';

const SMALL: RunShape = { products: 40, instances: 3, chunkSize: 2, intervalMs: 200 };
/** Slow enough that an instance can be lost in the middle of it: silence is noticed after 20 s, or 40 s. */
const SLOW: RunShape = { products: 60, instances: 3, chunkSize: 2, intervalMs: 1_000 };

const LOST_MS = limitsFor(480_000).lostMs;

let whole: WholeRun;

describe('a run in memory', () => {
  it('ends with every product accounted for, each fetched once, by shards even to within one chunk', async () => {
    whole = await WholeRun.open(SMALL);
    await whole.play();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
    expectFetchedOnce(whole);
    const shards = whole.fleet.instances.map((i) => i.fetched);
    expect(Math.max(...shards) - Math.min(...shards)).toBeLessThanOrEqual(SMALL.chunkSize);
    expect(whole.server!.alarms).toEqual([]);
  });

  it('offers rarely while all instances refuse, and continues as soon as one accepts', async () => {
    whole = await WholeRun.open(SMALL);
    let offers = 0;
    whole.fleet.onOffer = () => {
      offers++;
      return { kind: 'refused', refusal: { refused: 'deadline', room: 0 } };
    };
    whole.fleet.send = () => Promise.resolve(whole.fleet.onOffer({ kind: 'not-ready', message: '' }));
    await whole.start();
    await whole.until('the first offer', () => offers > 0);
    offers = 0;
    await whole.pass(10_000);
    // A round each heartbeat of 0.5 s, with one call per target and a few in flight.
    expect(offers).toBeGreaterThan(20);
    expect(offers).toBeLessThan(25 * 20);
    Reflect.deleteProperty(whole.fleet, 'send');
    whole.fleet.onOffer = (result) => result;
    await whole.untilEnd();
    await expectAllStored(whole);
  });
});

describe('an instance lost in mid-crawl', () => {
  /** Runs until the instance of slot 1 has crawled a few of its products. */
  async function crawlAWhile(): Promise<void> {
    whole = await WholeRun.open(SLOW);
    await whole.start();
    await whole.until('some pages', () => whole.fleet.instances.some((i) => i.slot === 1 && i.fetched >= 10));
  }

  async function stayFrozen(forMs: number): Promise<void> {
    const instance = whole.fleet.of(1);
    instance.freeze();
    const untilMs = whole.clock.now() + forMs;
    await whole.until('the thaw', () => whole.clock.now() >= untilMs);
    instance.thaw();
  }

  it('is replaced when it falls silent, and its open products are offered again, none twice in the rows', async () => {
    await crawlAWhile();
    whole.fleet.of(1).freeze();
    await whole.untilEnd();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.1', '1.2', '2.1']);
    const [lost] = (await whole.instances()).filter((i) => i.slot === 1);
    expect(lost).toMatchObject({ epoch: 1, phase: 'terminated', reason: 'heartbeat-lost' });
    // It had one part in the bucket: the products in it are not fetched again.
    const parts = (await whole.stores.of(whole.run.id).results.parts()).filter((p) => p.slot === 1 && p.epoch === 1);
    expect(parts.reduce((sum, p) => sum + p.products, 0)).toBeGreaterThan(0);
    const twice = [...whole.fetches.values()].filter((n) => n > 1).length;
    expect(twice).toBeGreaterThan(0);
    expect(twice).toBeLessThan(whole.fleet.of(1).fetched);
  });

  it('continues after less than twice the silence limit while the load balancer finds it healthy', async () => {
    await crawlAWhile();
    whole.cloud.balancers.forcedHealth.set(whole.fleet.of(1).id, 'healthy');
    await stayFrozen(1.7 * LOST_MS);
    await whole.untilEnd();
    await expectAllStored(whole);
    expect(whole.machines()).toEqual(['0.1', '1.1', '2.1']);
  });

  it('is fenced when it wakes up again, and what it still uploads makes no second row', async () => {
    await crawlAWhile();
    const lost = whole.fleet.of(1);
    lost.freeze();
    // EC2 is slow to end it, so that it has time to wake up.
    whole.cloud.compute.terminate = () => Promise.resolve();
    await whole.until('the replacement', () => whole.fleet.instances.some((i) => i.slot === 1 && i.epoch === 2));
    lost.thaw();
    await whole.until('the fence', () => lost.fenced);
    Reflect.deleteProperty(whole.cloud.compute, 'terminate');
    await whole.untilEnd();
    await expectAllStored(whole);
  });

  it('keeps its results if it had closed its epoch before its manifest could be checked', async () => {
    whole = await WholeRun.open(SMALL);
    const { compute, objects } = whole.cloud;
    // It dies before a heartbeat names its last part, while the main server cannot reach the bucket.
    let away = false;
    objects.onCall = (operation) => {
      if (away && operation === 'get') throw new Error('SlowDown');
    };
    whole.fleet.onAnswer = (path, { slot }) => {
      if (path !== COMPLETION_PATH || away) return;
      away = true;
      whole.fleet.of(slot).end();
      compute.kill(whole.fleet.of(slot).id);
    };
    await whole.start();
    await whole.until('its loss', async () => (await whole.instances()).some((i) => i.reason === 'ec2-terminated'));
    away = false;
    whole.fleet.onAnswer = () => undefined;
    await whole.untilEnd();
    await expectAllStored(whole);
    expectFetchedOnce(whole);
  });
});

describe('a main server killed in mid-run', () => {
  it.each([1, 2, 3, 4, 5, 6])(
    'repeatedly at random (seed %i) is followed by one that ends with the same rows',
    async (seed) => {
      const random = seededRandom(seed);
      whole = await WholeRun.open(SMALL);
      let kills = 0;
      do {
        let left = 1 + Math.floor(random.next() * 60);
        const when = random.next() < 0.5 ? 'before' : 'after';
        await whole.start(() => --left === 0 && when);
        await whole.untilDead();
        if (!whole.server!.isDead) break;
        // Down for up to three seconds: less than the silence after which an instance counts as lost.
        await whole.pass(random.next() * 3_000);
      } while (++kills < 12);
      await whole.play();
      expect(kills).toBeGreaterThan(1);
      await expectAllStored(whole);
      expectFetchedOnce(whole);
    },
  );

  it('and replaced while it was only slow: the old one writes nothing more', async () => {
    whole = await WholeRun.open(SMALL);
    const first = await whole.start();
    await whole.until('some pages', () => whole.fleet.instances.some((i) => i.fetched > 3));
    await whole.start();
    let refused: unknown = null;
    await whole.until('the end of the old one', () => (refused = first.ended?.error ?? null) !== null);
    expect(refused).toMatchObject({ code: 'lock-held' });
    await whole.untilEnd();
    await expectAllStored(whole);
  });
});

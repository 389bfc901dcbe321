/**
 * What every instance must do between its hello and the end of its epoch, as the main server sees it: run for the
 * program of an instance and for the instance of the modelled world.
 */
import { describe, expect, it } from 'vitest';
import { ALLOW_ALL } from '../../unit/core/builders.ts';
import { refusal } from '../../unit/crawl-api/fakes.ts';
import {
  COOL_DOWN_MS,
  HEARTBEAT_MS,
  InstanceStage,
  type MakeInstance,
  SPACING_MS,
  type StageOptions,
  START_MS,
} from './stage.ts';

export function describeInstanceContract(name: string, make: MakeInstance): void {
  const open = (options?: StageOptions): Promise<InstanceStage> => InstanceStage.open(make, options);
  const after = (ms: number): string => new Date(START_MS + ms).toISOString();
  const taken = (held: number) => ({ taken: true, held });
  const sorted = (numbers: readonly number[]): number[] => numbers.toSorted((a, b) => a - b);

  /** An instance that crawls the products 1 to `last`. */
  async function crawling(last: number, options?: StageOptions): Promise<InstanceStage> {
    const stage = await open(options);
    await stage.give('1-1', [1, last]);
    return stage;
  }

  /** The same, when this many requests have begun. */
  async function asked(count: number, last: number): Promise<InstanceStage> {
    const stage = await crawling(last);
    await stage.until(`${count} requests`, () => stage.requests.length === count);
    return stage;
  }

  /** An instance whose address the site has banned at its request for this product. */
  async function banned(n: number, last: number): Promise<InstanceStage> {
    const stage = await crawling(last);
    stage.answer = (product) => (product === n ? 'ban' : 'fine');
    await stage.until('the ban', () => stage.last.incident !== null);
    stage.answer = () => 'fine';
    return stage;
  }

  describe(`${name}: messages`, () => {
    it.each([
      ['powers off when another instance has its slot', 409, true],
      ['says hello again while its claim is not known', 401, false],
    ])('%s', async (_, helloStatus, isFenced) => {
      const stage = await open({ helloStatus });
      await stage.pass(10_000);
      expect([stage.isFenced, stage.heartbeats.length]).toEqual([isFenced, 0]);
      stage.helloStatus = 200;
      await stage.pass(10_000);
      expect(stage.heartbeats.length > 0).toBe(!isFenced);
    });

    it('sends a heartbeat without an answer again soon, and later each time', async () => {
      const stage = await open({ heartbeatMs: 10_000 });
      stage.isUp = false;
      await stage.pass(12_000);
      const [first, ...again] = stage.unansweredMs;
      const pauses = again.map((atMs, i) => atMs - [first!, ...again][i]!);
      for (const [i, mostMs] of [250, 500].entries()) {
        expect(pauses[i]).toBeGreaterThanOrEqual(mostMs / 2);
        expect(pauses[i]).toBeLessThanOrEqual(mostMs);
      }
    });

    it('reports a right that the bucket refuses twice, until it is given back', async () => {
      const stage = await asked(1, 1);
      stage.orders = { ...stage.orders, sealed: true };
      stage.objects.onCall = () => {
        throw Object.assign(new Error('no right'), { name: 'AccessDenied' });
      };
      await stage.until('the first refusal', () => stage.last.problem !== null);
      expect(stage.last.progress.storeRefused).toBeUndefined();
      await stage.until('the second one', () => stage.last.progress.storeRefused === true);
      stage.objects.onCall = () => undefined;
      await stage.until('the end', () => stage.last.phase === 'done');
      expect(stage.last).toMatchObject({ problem: null });
      expect(stage.last.progress.storeRefused).toBeUndefined();
    });
  });

  describe(`${name}: offers`, () => {
    it('are taken, the same one again, with the number of products held, and reported until they are granted', async () => {
      const stage = await open();
      expect(await stage.offer('1-1', [1, 3])).toEqual(taken(3));
      expect(await stage.offer('1-1', [1, 3])).toEqual(taken(3));
      expect(await stage.offer('2-1', [4, 5])).toEqual(taken(5));
      expect((await stage.beat()).offered).toEqual(['1-1', '2-1']);
      await stage.beat({ grants: ['1-1'] });
      expect((await stage.beat()).offered).toEqual(['2-1']);
    });

    it('are reported at once', async () => {
      const stage = await open();
      await stage.pass(100);
      await stage.offer('1-1', [1, 1]);
      await stage.beat();
      expect(stage.clock.now() - stage.heartbeatTimes.at(-2)!).toBeLessThan(HEARTBEAT_MS / 2);
    });

    it('are refused over the share, with the room that is left', async () => {
      const stage = await open();
      await stage.offer('1-1', [1, 3], 5);
      expect(await stage.offer('2-1', [4, 6], 5)).toEqual(refusal('share', 2));
      expect(await stage.offer('2-1', [4, 6], 2)).toEqual(refusal('share', 0));
      expect(await stage.offer('2-1', [4, 5], 5)).toEqual(taken(5));
    });

    it('are refused over the limit in the orders, whatever their share, until a process starts that has no orders', async () => {
      const stage = await open();
      await stage.beat({ maxProducts: 4 });
      expect(await stage.offer('1-1', [1, 5])).toEqual(refusal('share', 4));
      stage.isUp = false;
      stage.instance.crash(10);
      await stage.pass(20);
      expect(await stage.offer('1-1', [1, 5])).toEqual(taken(5));
    });

    it('count products that are done for the share', async () => {
      const stage = await crawling(2);
      await stage.until('the last result', () => stage.last.progress.stored === 2);
      expect(await stage.offer('2-1', [3, 4], 3)).toEqual(refusal('share', 1));
      expect(await stage.offer('2-1', [3, 4], 4)).toEqual(taken(4));
    });

    it('count a product that comes back under the next generation of its chunk once', async () => {
      const stage = await crawling(2);
      await stage.until('the last result', () => stage.last.progress.stored === 2);
      await stage.give('1-2', [1, 3]);
      expect(await stage.offer('2-1', [4, 5], 4)).toEqual(refusal('share', 1));
    });

    it.each([
      ['at the pace', {}, 98],
      ['at a slower pace', { intervalMs: 2_000 }, 49],
      ['at the Crawl-delay', { robots: { ...ALLOW_ALL, version: 'slow', crawlDelayMs: 5_000 } }, 19],
    ])('are refused when the deadline comes before their last product %s', async (_, orders, room) => {
      const stage = await open();
      stage.orders = { ...stage.orders, ...orders, deadline: after(100_000) };
      await stage.beat();
      expect(await stage.offer('1-1', [1, room + 1])).toEqual(refusal('deadline', room));
      expect(await stage.offer('1-1', [1, room])).toEqual(taken(room));
      expect(await stage.offer('2-1', [200, 200])).toEqual(refusal('deadline', 0));
    });

    it('are refused with the first reason that holds: draining, sealed, banned, share', async () => {
      const stage = await banned(2, 2);
      const offer = () => stage.offer('2-1', [3, 5], 2);
      expect(await offer()).toEqual(refusal('banned'));
      await stage.beat({ sealed: true });
      expect(await offer()).toEqual(refusal('sealed'));
      await stage.beat({ sealed: true, drain: true });
      expect(await offer()).toEqual(refusal('draining'));
      expect(await stage.offer('1-1', [1, 2])).toMatchObject({ taken: true });
    });

    it('are refused as sealed while its last products are crawled', async () => {
      const stage = await crawling(3);
      stage.orders = { ...stage.orders, sealed: true };
      await stage.beat();
      expect(await stage.offer('2-1', [4, 4])).toEqual(refusal('sealed'));
    });

    it('are refused during a suspicion', async () => {
      const stage = await open();
      stage.answer = () => 'odd';
      await stage.give('1-1', [1, 9]);
      await stage.until('the suspicion', () => stage.last.incident !== null);
      expect(await stage.offer('2-1', [10, 10])).toEqual(refusal('banned'));
    });

    it('that wait for a grant survive a crash', async () => {
      const stage = await open();
      await stage.offer('1-1', [1, 3]);
      stage.instance.crash(10);
      await stage.pass(20);
      expect((await stage.beat()).offered).toEqual(['1-1']);
      expect(await stage.offer('1-1', [1, 3])).toEqual(taken(3));
    });
  });

  describe(`${name}: grants and drops`, () => {
    it('crawls only what is granted, in the order of the grants', async () => {
      const stage = await open();
      await stage.offer('1-1', [1, 2]);
      await stage.offer('2-1', [3, 4]);
      await stage.pass(5_000);
      expect(stage.requests).toEqual([]);
      await stage.beat({ grants: ['2-1', '9-9'] });
      await stage.beat({ grants: ['1-1'] });
      await stage.pass(10_000);
      expect(stage.asked).toEqual([3, 4, 1, 2]);
    });

    it('sends no heartbeat for a grant: the next one comes in its turn', async () => {
      const stage = await open();
      await stage.offer('1-1', [1, 9]);
      await stage.beat({ grants: ['1-1'] });
      await stage.beat();
      expect(stage.heartbeatTimes.at(-1)! - stage.heartbeatTimes.at(-2)!).toBe(HEARTBEAT_MS);
    });

    it('frees the room of a dropped chunk, and never drops a granted one', async () => {
      const stage = await open();
      await stage.offer('1-1', [1, 3], 6);
      await stage.offer('2-1', [4, 6], 6);
      await stage.beat({ grants: ['1-1'], drops: ['2-1'] });
      await stage.beat({ drops: ['1-1'] });
      expect(await stage.offer('3-1', [7, 9], 6)).toEqual(taken(6));
      expect(stage.last.progress).toMatchObject({ assigned: 3 });
    });

    it('drops what is only offered when it is sealed', async () => {
      const stage = await open();
      await stage.offer('1-1', [1, 3]);
      await stage.offer('2-1', [4, 6]);
      stage.orders = { ...stage.orders, sealed: true };
      await stage.beat({ grants: ['1-1'] });
      expect((await stage.beat()).offered).toEqual([]);
      await stage.until('the end', () => stage.completions > 0);
      expect(stage.asked).toEqual([1, 2, 3]);
    });

    it('crawls a product once, under whichever generation of its chunk it comes', async () => {
      const stage = await crawling(2);
      await stage.give('1-2', [1, 3]);
      expect(stage.last.progress).toMatchObject({ assigned: 2 });
      await stage.pass(10_000);
      expect(stage.asked).toEqual([1, 2, 3]);
      expect(stage.last.progress).toMatchObject({ assigned: 3, pending: 0, stored: 3 });
    });
  });

  describe(`${name}: transfers`, () => {
    const three = async (): Promise<InstanceStage> => {
      const stage = await open();
      for (const i of [1, 2, 3]) await stage.give(`${i}-1`, [2 * i - 1, 2 * i]);
      return stage;
    };
    const all = ['1-1', '2-1', '3-1'];

    it('returns untouched chunks, reports them until they are acknowledged, and never crawls them', async () => {
      const stage = await three();
      stage.acknowledges = false;
      await stage.beat({ transfer: all });
      expect((await stage.beat()).transferred).toEqual(['2-1', '3-1']);
      expect((await stage.beat({ transferredAck: ['3-1'] })).transferred).toEqual(['2-1', '3-1']);
      expect((await stage.beat()).transferred).toEqual(['2-1']);
      expect(stage.last.progress.assigned).toBe(2);
      await stage.pass(20_000);
      expect(stage.asked).toEqual([1, 2]);
    });

    it('keeps the chunk whose product is next in turn', async () => {
      const stage = await three();
      stage.acknowledges = false;
      await stage.until('two results', () => stage.last.progress.stored === 2);
      await stage.beat({ transfer: all });
      expect((await stage.beat()).transferred).toEqual(['3-1']);
    });

    it('keeps a chunk of which a product was requested, also after a crash', async () => {
      const stage = await three();
      await stage.until('a request', () => stage.requests.length === 1);
      stage.instance.crash(10);
      await stage.pass(20);
      await stage.beat({ transfer: all });
      await stage.beat();
      expect(stage.last.transferred).not.toContain('1-1');
      await stage.pass(60_000);
      expect(stage.asked).toContain(2);
    });

    it('also returns chunks that are only offered, or unknown', async () => {
      const stage = await open();
      stage.acknowledges = false;
      await stage.offer('1-1', [1, 2], 2);
      await stage.beat({ transfer: ['1-1', '9-9'] });
      expect((await stage.beat()).transferred.toSorted()).toEqual(['1-1', '9-9']);
      expect(stage.last.offered).toEqual([]);
      expect(await stage.offer('2-1', [3, 4], 2)).toEqual(taken(2));
    });

    it('refuses a late copy of the offer that brought a returned chunk, but takes the next generation', async () => {
      const stage = await three();
      stage.acknowledges = false;
      await stage.beat({ transfer: ['3-1'] });
      expect(await stage.offer('3-1', [5, 6])).toEqual(refusal('share'));
      expect(await stage.offer('3-2', [5, 6])).toEqual(taken(6));
      await stage.beat({ grants: ['3-2'] });
      await stage.pass(20_000);
      expect(stage.asked).toEqual([1, 2, 3, 4, 5, 6]);
    });

    it('returns nothing once it drains, even by the same orders', async () => {
      const stage = await three();
      stage.orders = { ...stage.orders, drain: true, sealed: true };
      await stage.beat({ transfer: all });
      expect((await stage.beat()).transferred).toEqual([]);
    });

    it('reports returned chunks again after a crash, and crawls none of them', async () => {
      const stage = await three();
      stage.acknowledges = false;
      await stage.beat({ transfer: ['3-1'] });
      await stage.beat();
      stage.instance.crash(10);
      await stage.pass(20);
      await stage.beat();
      expect((await stage.beat()).transferred).toEqual(['3-1']);
      await stage.pass(60_000);
      expect(stage.asked).not.toContain(5);
    });
  });

  describe(`${name}: the end of the epoch`, () => {
    it('crawls its last products when it is sealed, uploads, and reports that it is done', async () => {
      const stage = await crawling(2);
      stage.orders = { ...stage.orders, sealed: true };
      await stage.until('the end', () => stage.last.phase === 'done');
      expect(stage.results().map(({ n }) => n)).toEqual([1, 2]);
      expect(stage.hasManifest()).toBe(true);
      expect(stage.completions).toBe(1);
    });

    it('lets the page under way end when it drains, and sends no further request', async () => {
      const stage = await open();
      stage.pageMs = 3 * HEARTBEAT_MS;
      await stage.give('1-1', [1, 5]);
      await stage.until('two requests', () => stage.requests.length === 2);
      stage.orders = { ...stage.orders, sealed: true, drain: true };
      await stage.until('the end', () => stage.last.phase === 'done');
      expect(stage.asked).toEqual([1, 2]);
      expect(stage.results().map(({ n }) => n)).toEqual([1, 2]);
      expect(stage.last.progress).toMatchObject({ assigned: 5, pending: 3, stored: 2 });
    });

    it('ends at its deadline without an order: no request follows, the results are uploaded, the epoch is closed', async () => {
      const stage = await open();
      stage.orders = { ...stage.orders, deadline: after(10_000) };
      await stage.beat();
      await stage.give('1-1', [1, 4]);
      stage.orders = { ...stage.orders, deadline: after(3_000) };
      await stage.until('the end', () => stage.completions > 0);
      expect(stage.requests.at(-1)!.atMs).toBeLessThan(START_MS + 3_000);
      expect(stage.results()).toHaveLength(stage.requests.length);
      expect(await stage.offer('2-1', [9, 9])).toEqual(refusal('draining'));
    });

    it('ends at the deadline that it was told last, though no main server answers', async () => {
      const stage = await open();
      stage.orders = { ...stage.orders, deadline: after(5_000) };
      await stage.give('1-1', [1, 3]);
      stage.isUp = false;
      await stage.pass(60_000);
      expect(stage.asked).toEqual([1, 2, 3]);
      expect(stage.hasManifest()).toBe(true);
      expect(stage.results().map(({ n }) => n)).toEqual([1, 2, 3]);
    });

    it('writes nothing and asks nothing once another instance has its epoch', async () => {
      const stage = await asked(1, 5);
      await stage.beat({ fenced: true });
      const { length } = stage.heartbeats;
      await stage.pass(60_000);
      expect(stage.isFenced).toBe(true);
      expect([stage.asked, stage.heartbeats.length, stage.objects.objects.size]).toEqual([[1], length, 0]);
    });

    it('continues to close its epoch after a crash, with the same part', async () => {
      const stage = await crawling(2);
      stage.isUp = true;
      stage.orders = { ...stage.orders, sealed: true };
      stage.objects.onCall = () => {
        throw new Error('SlowDown');
      };
      await stage.until('a failed upload', () => stage.last.problem !== null);
      stage.instance.crash(10);
      stage.objects.onCall = () => undefined;
      await stage.until('the end', () => stage.last.phase === 'done');
      expect(stage.results().map(({ n }) => n)).toEqual([1, 2]);
      expect(stage.last.parts.map(({ seq }) => seq)).toEqual([]);
      expect(stage.asked).toEqual([1, 2]);
    });
  });

  describe(`${name}: a ban`, () => {
    it('sends no request in the cool-down, reports what is left of it, and then goes on with the same product', async () => {
      const stage = await banned(2, 3);
      const bannedMs = stage.requests.at(-1)!.atMs;
      expect(stage.last).toMatchObject({ phase: 'banned', incident: { verdict: 'banned' } });
      expect(stage.last.progress).toMatchObject({ assigned: 3, pending: 2, stored: 1 });
      await stage.pass(COOL_DOWN_MS / 2);
      const { sinceMs, leftMs } = stage.last.incident!;
      expect(sinceMs + leftMs!).toBe(COOL_DOWN_MS);
      await stage.pass(COOL_DOWN_MS);
      expect(stage.asked).toEqual([1, 2, 2, 3]);
      expect(stage.requests[2]!.atMs - bannedMs).toBeGreaterThanOrEqual(COOL_DOWN_MS);
      expect(stage.last).toMatchObject({ incident: null, phase: 'crawling' });
    });

    it('is not forgotten in a crash', async () => {
      const stage = await banned(2, 3);
      stage.instance.crash(10);
      await stage.pass(COOL_DOWN_MS / 2);
      expect(stage.last.incident).toMatchObject({ verdict: 'banned' });
      expect(stage.asked).toEqual([1, 2]);
      await stage.pass(COOL_DOWN_MS);
      expect(stage.asked).toEqual([1, 2, 2, 3]);
    });

    it('rests twice as long the second time, also after a crash between them', async () => {
      const stage = await banned(2, 4);
      stage.instance.crash(10);
      stage.answer = (product) => (product === 3 ? 'ban' : 'fine');
      await stage.until('the second ban', () => stage.asked.includes(3) && stage.last.incident !== null);
      const { sinceMs, leftMs } = stage.last.incident!;
      expect(sinceMs + leftMs!).toBe(2 * COOL_DOWN_MS);
    });

    it('rests it for as long as the first time in a probe, which measures the ban', async () => {
      const stage = await crawling(4, { site: { maxRequests: 99 } });
      stage.answer = (product) => (product === 3 ? 'ban' : 'fine');
      await stage.until('the second ban', () => stage.asked.filter((n) => n === 3).length === 2);
      await stage.beat();
      const { sinceMs, leftMs } = stage.last.incident!;
      expect(sinceMs + leftMs!).toBe(COOL_DOWN_MS);
    });

    it('is followed by twice the interval, and half of the excess less with each 20 right pages', async () => {
      const stage = await banned(2, 44);
      await stage.pass(COOL_DOWN_MS + 90_000);
      const after = stage.gaps.slice(2);
      expect(after.slice(0, 19)).toEqual(Array(19).fill(2_020));
      expect(after.slice(19, 39)).toEqual(Array(20).fill(1_515));
      expect(after[39]).toBeCloseTo(1_263, -1);
      await stage.beat();
      expect(stage.last.progress.sinceBan).toBe(stage.last.progress.stored - 1);
    });

    it('of an earlier night makes it begin like that', async () => {
      const stage = await crawling(3, { site: { bannedLately: [0] } });
      await stage.pass(10_000);
      expect(stage.gaps).toEqual([2_020, 2_020]);
      expect(stage.last.progress.sinceBan).toBe(3);
    });

    it('returns by order what it has not crawled, once its results are in the bucket', async () => {
      const stage = await banned(2, 3);
      stage.orders = { ...stage.orders, returnProducts: true };
      await stage.until('the return', () => stage.last.progress.pending === 0);
      expect(stage.results().map(({ n }) => n)).toEqual([1]);
      expect(stage.last.progress).toMatchObject({ assigned: 1, stored: 1 });
      stage.orders = { ...stage.orders, returnProducts: false };
      await stage.pass(2 * COOL_DOWN_MS);
      expect(stage.asked).toEqual([1, 2]);
      expect(await stage.offer('1-2', [2, 3], 2)).toEqual(refusal('share', 1));
      expect(await stage.offer('1-2', [2, 3], 3)).toEqual(taken(3));
    });

    it('returns nothing while it is not banned', async () => {
      const stage = await crawling(3);
      await stage.beat({ returnProducts: true });
      await stage.pass(20_000);
      expect(stage.asked).toEqual([1, 2, 3]);
    });

    it('is over for the crawl when it drains: the epoch is closed at once', async () => {
      const stage = await banned(2, 3);
      stage.orders = { ...stage.orders, sealed: true, drain: true };
      await stage.pass(COOL_DOWN_MS / 2);
      expect(stage.last.phase).toBe('done');
      expect(stage.results().map(({ n }) => n)).toEqual([1]);
    });
  });

  describe(`${name}: a suspicion`, () => {
    async function suspect(): Promise<InstanceStage> {
      const stage = await open();
      stage.answer = () => 'odd';
      await stage.give('1-1', [1, 9]);
      await stage.until('the suspicion', () => stage.last.incident !== null);
      stage.answer = () => 'fine';
      await stage.pass(5_000);
      return stage;
    }

    it('waits for the verdict, however long it takes', async () => {
      const stage = await suspect();
      const { length } = stage.requests;
      await stage.pass(3 * COOL_DOWN_MS);
      expect(stage.last.incident).toMatchObject({ verdict: 'suspect', leftMs: null });
      expect(stage.requests).toHaveLength(length);
    });

    it('ends with the verdict that the site serves the address', async () => {
      const stage = await suspect();
      const { length } = stage.requests;
      await stage.beat({ verdict: 'ok' });
      await stage.pass(5_000);
      expect(stage.last.incident).toBeNull();
      expect(stage.requests.length).toBeGreaterThan(length);
    });

    it('becomes a ban by the verdict, which lasts for the cool-down from then on', async () => {
      const stage = await suspect();
      await stage.beat({ verdict: 'banned' });
      await stage.beat();
      const { sinceMs, leftMs, verdict } = stage.last.incident!;
      expect([verdict, sinceMs + leftMs!]).toEqual(['banned', COOL_DOWN_MS]);
    });
  });

  describe(`${name}: a pause`, () => {
    it('begins with the reply, lets the page under way end, and ends by itself; heartbeats go on', async () => {
      const stage = await open();
      stage.pageMs = 300;
      await stage.give('1-1', [1, 4]);
      await stage.until('the second request', () => stage.asked.length === 2);
      const pausedUntil = new Date(stage.clock.now() + 30_000).toISOString();
      stage.orders = { ...stage.orders, pausedUntil };
      await stage.until('the second result', () => stage.last.progress.stored === 2);
      const { length } = stage.heartbeats;
      await stage.pass(20_000);
      expect(stage.asked).toEqual([1, 2]);
      expect(stage.heartbeats.length).toBeGreaterThan(length + 10);
      expect(stage.last).toMatchObject({ phase: 'crawling', incident: null, progress: { pending: 2 } });
      await stage.pass(20_000);
      expect(stage.asked).toEqual([1, 2, 3, 4]);
      expect(stage.requests[2]!.atMs).toBeGreaterThanOrEqual(Date.parse(pausedUntil));
    });

    it('outlives a crash and a main server that is gone', async () => {
      const stage = await asked(1, 3);
      const pausedUntil = new Date(stage.clock.now() + 30_000).toISOString();
      await stage.beat({ pausedUntil });
      stage.isUp = false;
      const { length } = stage.requests;
      stage.instance.crash(10);
      await stage.pass(25_000);
      expect(stage.requests).toHaveLength(length);
      await stage.pass(20_000);
      expect(stage.asked.at(-1)).toBe(3);
    });

    it('ends with a reply that has none', async () => {
      const stage = await asked(1, 3);
      stage.orders = { ...stage.orders, pausedUntil: after(3_000_000) };
      await stage.pass(10_000);
      const { length } = stage.requests;
      stage.orders = { robots: ALLOW_ALL };
      await stage.pass(5_000);
      expect([length < 3, stage.asked.at(-1)]).toEqual([true, 3]);
    });

    it('leaves less time for what an offer brings', async () => {
      const stage = await open();
      stage.orders = { ...stage.orders, deadline: after(100_000), pausedUntil: after(50_000) };
      await stage.beat();
      expect(await stage.offer('1-1', [1, 60])).toEqual(refusal('deadline', 49));
    });
  });

  describe(`${name}: the pace`, () => {
    it('is the interval with its margin from start to start, however long a page takes within it', async () => {
      const stage = await crawling(4);
      await stage.pass(10_000);
      expect(stage.gaps).toEqual([SPACING_MS, SPACING_MS, SPACING_MS]);
      expect(stage.last.progress.minGapMs).toBe(SPACING_MS);
    });

    it('waits for the page under way: one at a time', async () => {
      const stage = await open();
      stage.pageMs = 4_000;
      await stage.give('1-1', [1, 3]);
      await stage.pass(20_000);
      expect(stage.asked).toEqual([1, 2, 3]);
      for (const gap of stage.gaps) expect(gap).toBeGreaterThanOrEqual(4_000);
    });

    it('follows the interval in the orders from the last start on', async () => {
      const stage = await asked(1, 3);
      stage.orders = { ...stage.orders, intervalMs: 5_000 };
      await stage.pass(20_000);
      expect(stage.gaps).toEqual([5_050, 5_050]);
    });

    it('keeps the Crawl-delay of the rules it knows, also after a crash, whatever the orders say', async () => {
      const stage = await open();
      stage.orders = { robots: { ...ALLOW_ALL, version: 'slow', crawlDelayMs: 8_000 } };
      await stage.give('1-1', [1, 3]);
      await stage.until('a request', () => stage.requests.length === 1);
      stage.orders = {};
      stage.instance.crash(10);
      await stage.pass(60_000);
      for (const gap of stage.gaps) expect(gap).toBeGreaterThanOrEqual(8_080);
      expect(stage.last).toMatchObject({ robots: 'slow', progress: { stored: 3 } });
    });

    it('begins again after a crash: a whole interval from the start of the process', async () => {
      const stage = await asked(1, 3);
      stage.instance.crash(700);
      await stage.until('another request', () => stage.requests.length === 2);
      expect(stage.gaps).toEqual([700 + SPACING_MS]);
    });

    it('is kept when the site is down', async () => {
      const stage = await crawling(3);
      stage.answer = () => 'down';
      await stage.pass(5_000);
      for (const gap of stage.gaps) expect(gap).toBeGreaterThanOrEqual(SPACING_MS);
    });

    it('holds at each domain', async () => {
      const productUrl = [1, 2].map((i) => ({ url: `http://shop${i}.example/{id}`, weight: 1 }));
      const stage = await crawling(12, { site: { productUrl } });
      await stage.pass(3_000);
      // Two addresses would need two intervals for four products.
      expect(stage.requests.length).toBeGreaterThan(3);
      await stage.pass(20_000);
      expect(sorted(stage.asked)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
      expect(stage.last.progress.minGapMs).toBeGreaterThanOrEqual(SPACING_MS);
    });

    it.each([
      ['before it knows robots.txt', {}],
      ['where robots.txt allows nothing', { robots: { ...ALLOW_ALL, version: 'none', access: 'none' as const } }],
    ])('sends nothing %s', async (_, orders) => {
      const stage = await crawling(3, { orders });
      await stage.pass(5_000);
      expect(stage.requests).toEqual([]);
      stage.orders = { robots: { ...ALLOW_ALL, version: 'open' } };
      await stage.pass(5_000);
      expect(stage.asked).toEqual([1, 2, 3]);
    });

    it('needs no rules where robots.txt is ignored', async () => {
      const stage = await crawling(2, { site: { robots: 'ignore' }, orders: {} });
      await stage.pass(5_000);
      expect(stage.asked).toEqual([1, 2]);
    });

    it('ends at the maximum of requests', async () => {
      const stage = await crawling(5, { site: { maxRequests: 2 } });
      await stage.pass(20_000);
      expect(stage.asked).toEqual([1, 2]);
      expect(stage.last.progress).toMatchObject({ pending: 3, stored: 2 });
    });
  });

  describe(`${name}: what survives a crash`, () => {
    it('are the results; the product under way goes to the end', async () => {
      const stage = await asked(2, 4);
      stage.instance.crash(10);
      stage.orders = { ...stage.orders, sealed: true };
      await stage.until('the end', () => stage.last.phase === 'done');
      expect(stage.asked).toEqual([1, 2, 3, 4, 2]);
      expect(stage.results().map(({ n }) => n)).toEqual([1, 3, 4, 2]);
      expect(stage.last.progress).toMatchObject({ assigned: 4, pending: 0, stored: 4, requests: 5 });
    });

    it('tries the product under way again without a seal, when the queue has been empty for a heartbeat', async () => {
      const stage = await asked(1, 2);
      stage.instance.crash(10);
      await stage.pass(20_000);
      expect(stage.asked).toEqual([1, 2, 1]);
    });

    it('gives a product up in whose requests the process died twice', async () => {
      const stage = await asked(1, 2);
      stage.instance.crash(10);
      await stage.until('the second try', () => stage.requests.length === 3);
      stage.instance.crash(10);
      stage.orders = { ...stage.orders, sealed: true };
      await stage.until('the end', () => stage.last.phase === 'done');
      expect(stage.asked).toEqual([1, 2, 1]);
      expect(stage.results().map((r) => [r.n, r.outcome === 'failed' ? r.reason : r.outcome])).toEqual([
        [2, 'stored'],
        [1, 'poison'],
      ]);
    });

    it('are its orders: a sealed instance ends though no main server answers', async () => {
      const stage = await asked(1, 3);
      await stage.beat({ sealed: true });
      stage.isUp = false;
      stage.instance.crash(10);
      await stage.pass(60_000);
      expect(stage.hasManifest()).toBe(true);
      expect(stage.results()).toHaveLength(3);
    });

    it('are acknowledgements of parts', async () => {
      const stage = await banned(3, 3);
      await stage.beat({ returnProducts: true });
      await stage.until('a part', () => stage.last.parts.length > 0);
      await stage.beat();
      stage.instance.crash(10);
      await stage.pass(20);
      expect((await stage.beat()).parts).toEqual([]);
    });

    it('are not the counters of the process', async () => {
      const stage = await asked(2, 5);
      await stage.beat();
      expect(stage.last.progress).toMatchObject({ tried: 2, served: 2, pageMs: 5 });
      stage.instance.crash(10);
      await stage.pass(20);
      await stage.beat();
      expect(stage.last.progress).toMatchObject({ tried: 0, served: 0, pageMs: null, requests: 2, stored: 2 });
    });

    it('crawls nothing after losing records before its chunks are granted again, and numbers parts far above', async () => {
      const stage = await crawling(4);
      await stage.give('2-1', [5, 6]);
      await stage.until('three results', () => stage.last.progress.stored === 3);
      stage.instance.crash(10, 1);
      await stage.pass(5_000);
      const { length } = stage.requests;
      expect(stage.last.offered.toSorted()).toEqual(['1-1', '2-1']);
      expect(stage.last.progress).toMatchObject({ assigned: 6, pending: 4, stored: 2 });
      stage.orders = { ...stage.orders, sealed: true };
      await stage.beat({ grants: ['1-1'], drops: ['2-1'] });
      await stage.until('the end', () => stage.last.phase === 'done');
      expect(sorted(stage.asked.slice(length))).toEqual([3, 4]);
      expect(sorted(stage.results().map(({ n }) => n))).toEqual([1, 2, 3, 4]);
      const names = [...stage.objects.objects.keys()].filter((key) => key.endsWith('.ndjson.gz'));
      expect(names.map((key) => Number(/(\d+)-[0-9a-f]{64}/.exec(key)![1]))).toEqual([1_000]);
    });
  });

  describe(`${name}: progress`, () => {
    it('counts products and requests', async () => {
      const stage = await crawling(3);
      expect(stage.last.phase).toBe('ready');
      await stage.until('two requests', () => stage.requests.length === 2);
      await stage.beat();
      expect(stage.last.phase).toBe('crawling');
      expect(stage.last.progress).toMatchObject({
        assigned: 3,
        pending: 1,
        stored: 2,
        failed: 0,
        requests: 2,
        tried: 2,
        served: 2,
        unavailable: 0,
        minGapMs: SPACING_MS,
        uploadMs: null,
      });
      expect(stage.last.progress.okAgoMs).toBeGreaterThanOrEqual(0);
      expect(stage.last.progress.okAgoMs).toBeLessThanOrEqual(HEARTBEAT_MS);
    });

    it('counts refused requests as tried, not as served', async () => {
      const stage = await banned(2, 3);
      expect(stage.last.progress).toMatchObject({ requests: 2, tried: 2, served: 1, unavailable: 0, stored: 1 });
    });

    it('counts server errors, tries such products again at the end, and then gives them up', async () => {
      const stage = await open();
      stage.answer = (n) => (n === 1 ? 'down' : 'fine');
      await stage.give('1-1', [1, 2]);
      await stage.until('two requests', () => stage.requests.length === 2);
      await stage.beat();
      expect(stage.last.progress).toMatchObject({
        pending: 1,
        stored: 1,
        failed: 0,
        tried: 2,
        served: 1,
        unavailable: 1,
      });
      await stage.pass(5_000);
      expect(stage.asked).toEqual([1, 2, 1]);
      expect(stage.last.progress).toMatchObject({ pending: 0, stored: 1, failed: 1, unavailable: 2 });
    });

    it('is reported at once when the queue is empty', async () => {
      const stage = await asked(2, 2);
      await stage.until('the report', () => stage.last.progress.pending === 0);
      expect(stage.heartbeatTimes.at(-1)! - stage.requests.at(-1)!.atMs).toBe(stage.pageMs);
    });
  });
}

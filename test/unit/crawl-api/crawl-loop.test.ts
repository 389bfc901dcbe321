import { describe, expect, it } from 'vitest';
import { SignalFlag } from '../../../crawl-api/process/signal-flag.ts';
import type { PageResult, PageSource } from '../../../crawl-api/fetch/page-result.ts';
import { Pacer, PageTimes } from '../../../crawl-api/politeness/pacer.ts';
import { Places } from '../../../crawl-api/politeness/places.ts';
import { RecordTooLargeError } from '../../../crawl-api/queue/journal-file.ts';
import { siteDomain } from '../../../crawl-api/queue/domain-policy.ts';
import { Pages } from '../../../crawl-api/queue/pages.ts';
import { RenderChoice } from '../../../crawl-api/politeness/render-choice.ts';
import { compileFollowRules } from '../../../crawl-api/politeness/follow-rules.ts';
import { compileSiteRules } from '../../../crawl-api/politeness/site-rules.ts';
import {
  broken,
  crawl,
  createScene,
  fine,
  gaps,
  outcomes,
  refused,
  results,
  toElsewhere,
  urls,
} from './crawl-scene.ts';
import { START_MS, createQueue, give, products, createGranted } from './fakes.ts';
import { oneTitle } from '../../support/one-title.ts';

const page: PageResult = fine();

describe('the crawl loop', () => {
  it('crawls granted products one by one, start to start at the interval and its margin', async () => {
    const scene = await crawl(4);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4']);
    for (const gap of gaps(scene.starts)) {
      expect(gap).toBeGreaterThanOrEqual(1_000 + 10);
      expect(gap).toBeLessThan(1_150);
    }
    expect(scene.end()).toBe('finished');
  });

  it('keeps the interval after a page that takes longer than the interval', async () => {
    const scene = await crawl(3, () => page, { pageMs: 3_000 });
    for (const gap of gaps(scene.starts)) expect(gap).toBe(3_000);
  });

  it('waits for more until the shard is sealed', async () => {
    const scene = await crawl(1, undefined, { sealed: false });
    expect(scene.end()).toBeNull();
    await give(scene.queue, '2-1', [2, 2]);
    await scene.follow({});
    await scene.run(2_000);
    expect(urls(scene)).toEqual(['p1', 'p2']);
    await scene.follow({ sealed: true });
    await scene.run(100);
    expect(scene.end()).toBe('finished');
  });

  it('retries a failed product once at the end of the shard, and only the second result counts', async () => {
    const bad = refused(500);
    const scene = await crawl(3, (url, tries) =>
      (url.endsWith('p1') && tries === 1) || url.endsWith('p2') ? bad : page,
    );
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p1', 'p2']);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 2, failed: 1, pending: 0, requests: 5 });
    expect(results(scene.journal).map((r) => [r.n, r.outcome, r.attempts])).toEqual([
      [3, 'stored', 1],
      [1, 'stored', 2],
      [2, 'failed', 2],
    ]);
  });

  it('retries failed products before the seal only when no chunk has arrived for a while', async () => {
    const bad = broken();
    const scene = await crawl(1, (_url, tries) => (tries === 1 ? bad : page), { ms: 4_000, sealed: false });
    expect(urls(scene)).toEqual(['p1']);
    await scene.run(4_000);
    expect(urls(scene)).toEqual(['p1', 'p1']);
  });

  it('keeps the pace when the shop accepts no connection', async () => {
    let tries = 0;
    const scene = await crawl(100, () => (tries++, 'no-connection'), { ms: 10_000, sealed: false });
    expect(tries).toBeGreaterThanOrEqual(9);
    expect(tries).toBeLessThanOrEqual(10);
    expect(scene.starts).toEqual([]);
  });

  it('ends at the deadline even if the clock is set back at that moment', async () => {
    const deadlineMs = START_MS + 2_300;
    const world = await createGranted(10, { deadline: new Date(deadlineMs).toISOString() });
    const now = world.clock.now.bind(world.clock);
    let late = 0;
    world.clock.now = () => {
      if (now() < deadlineMs) return now();
      if (++late > 1_000) throw new Error('the loop turns without an end');
      return late === 1 ? now() : now() - 2_000;
    };
    const scene = await createScene(world, () => page, { pageMs: 2_000 });
    await scene.run(10_000);
    expect(scene.end()).toBe('deadline');
  });

  it('fails a product whose result is too large for the journal', async () => {
    const world = await createGranted(2, { sealed: true });
    const append = world.journal.append.bind(world.journal);
    world.journal.append = (records) => {
      if (JSON.stringify(records).length > 10_000) throw new RecordTooLargeError('a record of 70000000 bytes');
      append(records);
    };
    const scene = await createScene(world, (path) => fine(path, { t: path === '/p1' ? 'x'.repeat(20_000) : 'x' }));
    await scene.run(10_000);
    expect(scene.end()).toBe('finished');
    expect(outcomes(world.journal)).toEqual(['p1 too-large', 'p2 stored']);
    expect(world.queue.diskProblem).toBeNull();
  });

  it('stops at the deadline in the middle of a page, which gets no result', async () => {
    const world = await createGranted(10, { deadline: new Date(START_MS + 2_300).toISOString() });
    const scene = await createScene(world, () => page, { pageMs: 200 });
    await scene.run(10_000);
    expect(scene.end()).toBe('deadline');
    expect(world.queue.progress(null)).toMatchObject({ stored: 2, pending: 8, requests: 3 });
  });

  it('finishes the current page and stops when ordered to drain', async () => {
    const scene = await crawl(10, () => page, { ms: 1_200, sealed: false, pageMs: 200 });
    expect(scene.queue.progress(null)).toMatchObject({ stored: 1, requests: 2 });
    await scene.follow({ drain: true });
    await scene.run(1_000);
    expect(scene.end()).toBe('drained');
    expect(scene.queue.progress(null)).toMatchObject({ stored: 2, requests: 2 });
  });

  it('applies a longer interval immediately, even while it waits for the next start', async () => {
    const scene = await crawl(3, undefined, { ms: 500 });
    await scene.follow({ intervalMs: 30_000, sealed: true });
    await scene.run(29_000);
    expect(urls(scene)).toEqual(['p1']);
    await scene.run(62_000);
    expect(Math.min(...gaps(scene.starts))).toBeGreaterThanOrEqual(30_000);
    expect(urls(scene)).toHaveLength(3);
  });

  it('applies a longer interval before its orders are on disk', async () => {
    const world = await createGranted(3);
    await world.queue.offer({ chunk: '4-1', share: 100_000, products: products(4, 6) });
    const scene = await createScene(world);
    await scene.run(500);
    world.journal.sync = () => new Promise<never>(() => undefined);
    void scene.follow({ intervalMs: 30_000, grants: ['4-1'] });
    await scene.run(29_000);
    expect(urls(scene)).toEqual(['p1']);
  });

  it('sends no request beyond its limit, redirects included, until it is ordered to drain', async () => {
    const scene = await crawl(5, (path) => (path === '/p1' ? toElsewhere('/moved') : fine(path)), { maxRequests: 4 });
    expect(urls(scene)).toEqual(['p1', 'moved', 'p2', 'p3']);
    expect(scene.end()).toBeNull();
    await scene.follow({ drain: true });
    await scene.run(100);
    expect(scene.end()).toBe('drained');
    expect(scene.queue.progress(null)).toMatchObject({ requests: 4, pending: 2 });
  });

  it('ends immediately on abort', async () => {
    const scene = await crawl(3, undefined, { ms: 1_080, sealed: false });
    scene.stop.abort();
    await scene.run(0);
    expect(scene.end()).toBe('stopped');
  });

  it('sends no request that it could not journal, and continues when the disk has room again', async () => {
    const world = await createGranted(2, { sealed: true });
    world.journal.full = true;
    const scene = await createScene(world);
    await scene.run(5_000);
    expect(scene.starts).toEqual([]);
    world.journal.full = false;
    await scene.run(5_000);
    expect(world.queue.progress(null)).toMatchObject({ stored: 2, pending: 0 });
  });

  it('does not lose a page that was fetched while the disk became full', async () => {
    const scene = await crawl(1, undefined, { ms: 50 });
    scene.journal.full = true;
    await scene.run(5_000);
    scene.journal.full = false;
    await scene.run(2_000);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 1, requests: 1 });
    expect(scene.end()).toBe('finished');
  });

  it('keeps the pace from the real start when the page source fails after it', async () => {
    const { queue, clock } = createQueue({ intervalMs: 10_000 });
    await give(queue, '1-1', [1, 2], { intervalMs: 10_000 });
    const starts: number[] = [];
    const connectMs = [25_000, 0];
    const http: PageSource = {
      fetch: async (_url, hooks) => {
        await clock.sleep(connectMs.shift()!);
        hooks.onStart();
        starts.push(clock.monotonic());
        throw new Error('failed when all was written');
      },
      close: () => Promise.resolve(),
    };
    const pacer = new Pacer(clock, () => queue.intervalAt(0), false);
    const alone = { domain: 0, places: new Places(1) };
    const parts = { ...alone, queue, pacer, clock, pageTimes: new PageTimes(), changed: new SignalFlag() };
    const rules = await compileSiteRules({ statuses: [], redirects: [], patterns: [] }, true);
    const render = new RenderChoice('http');
    const { site } = oneTitle('http://shop/{id}');
    const follow = await compileFollowRules({ site });
    const policy = siteDomain({ queue, clock, site, follow, domain: 0, isOneOfMany: false });
    const pages = new Pages({ ...parts, policy, site, follow, rules, render, http, browser: null, cookies: null });
    const send = (n: number) => {
      const url = `http://shop/${n}`;
      return pages.fetch({ n, url, product: { id: 'P1', url }, interruptible: false }, new AbortController().signal);
    };
    const answers = send(1).then(async (first) => [first, await send(2)]);
    await clock.advance(120_000);
    expect(await answers).toEqual([{ kind: 'not-now' }, { kind: 'not-now' }]);
    expect(starts[1]! - starts[0]!).toBeGreaterThanOrEqual(10_100);
  });

  it('keeps the pace across a restart of the process', async () => {
    const first = await createGranted(10);
    const scene = await createScene(first);
    await scene.run(1_120);
    scene.stop.abort();
    await scene.run(0);
    const lastAt = scene.starts.at(-1)!.at;
    const again = createQueue({ journal: first.journal, clock: first.clock });
    const second = await createScene(again);
    await second.run(3_000);
    expect(second.starts[0]!.url).toBe('p2');
    expect(second.starts[0]!.at - lastAt).toBeGreaterThanOrEqual(1_010);
    expect(second.starts[0]!.at - lastAt).toBeLessThan(1_150);
  });
});

describe('PageTimes', () => {
  it('returns the median of the last pages', () => {
    const times = new PageTimes();
    expect(times.median()).toBeNull();
    for (const ms of [5, 1, 100]) times.add(ms);
    expect(times.median()).toBe(5);
    for (let i = 0; i < 200; i++) times.add(7);
    expect(times.median()).toBe(7);
  });
});

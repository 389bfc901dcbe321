import { describe, expect, it } from 'vitest';
import { leaveAlone } from '../../../../shared/domain/own-url.ts';
import { broken, fine, notFound, odd, refused, results, toElsewhere } from '../crawl-scene.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { START_MS } from '../fakes.ts';
import { INTERVAL_MS, LEASE_MS, openHostScene, rulesOf } from './host-scene.ts';

const HOUR = 3_600_000;
const page = (host: string, name: string): string => `https://${host}/${name}`;

describe('the crawl of many hosts', () => {
  it('asks for robots.txt first, and keeps the pace of each host', async () => {
    const scene = await openHostScene();
    await scene.give([page('a.example', '1'), page('a.example', '2'), page('b.example', '1')]);
    await scene.run(60_000);
    const gaps = scene.of('a.example').map(([at], i, all) => at - (all[i - 1]?.[0] ?? at));
    expect(scene.of('a.example').map(([, path]) => path)).toEqual(['/robots.txt', '/1', '/2']);
    expect(Math.min(...gaps.slice(1))).toBeGreaterThanOrEqual(INTERVAL_MS / 1_000);
    expect(Math.max(...gaps)).toBeLessThan(16);
    expect(scene.of('b.example').map(([, path]) => path)).toEqual(['/robots.txt', '/1']);
    expect(scene.outcomes()).toEqual({
      [page('a.example', '1')]: 'stored',
      [page('a.example', '2')]: 'stored',
      [page('b.example', '1')]: 'stored',
    });
    expect(scene.queue.state.canaries).toBe(0);
    await scene.follow({ sealed: true });
    await scene.run(1_000);
    expect(scene.end()).toBe('finished');
  });

  it('asks names of one domain side by side where each has its own pace', async () => {
    const scene = await openHostScene({ site: { hostKey: 'host' } });
    const names = ['a.shop.example', 'b.shop.example'];
    await scene.give([...names, 'www.a.shop.example'].flatMap((name) => [page(name, '1'), page(name, '2')]));
    await scene.run(90_000);
    const startsOf = (name: string): number[] =>
      scene.sent.filter(({ url }) => new URL(url).hostname.endsWith(name)).map(({ at }) => at);
    for (const name of names) {
      const starts = startsOf(name);
      expect(Math.min(...starts.slice(1).map((at, i) => at - starts[i]!)), name).toBeGreaterThanOrEqual(INTERVAL_MS);
    }
    // Two robots.txt and four pages; one of each and two pages.
    expect(names.map((name) => startsOf(name).length)).toEqual([6, 3]);
    expect(startsOf('b.shop.example')[0]! - startsOf('a.shop.example')[0]!).toBeLessThan(1_000);
    expect(new Set(Object.values(scene.outcomes()))).toEqual(new Set(['stored']));
  });

  it('reads robots.txt again each hour, within the pace', async () => {
    const scene = await openHostScene();
    await scene.give(Array.from({ length: 300 }, (_, i) => page('a.example', String(i))));
    await scene.run(HOUR + 120_000);
    const read = scene.of('a.example').filter(([, path]) => path === '/robots.txt');
    expect(read).toHaveLength(2);
    expect(read[1]![0] - read[0]![0]).toBeGreaterThanOrEqual(3_600);
    const times = scene.of('a.example').map(([at]) => at);
    expect(Math.min(...times.slice(1).map((at, i) => at - times[i]!))).toBeGreaterThanOrEqual(15);
  });

  it('has no more pages under way than places, and uses all of them', async () => {
    const scene = await openHostScene({ pagesAtOnce: 4, pageMs: 1_000 });
    await scene.give(Array.from({ length: 40 }, (_, i) => page(`h${i}.example`, 'p')));
    await scene.run(10_000);
    expect(scene.most()).toBe(4);
    expect(scene.sent.length).toBeGreaterThanOrEqual(36);
  });

  it('opens the longest host first', async () => {
    const scene = await openHostScene({ pagesAtOnce: 1 });
    await scene.give([page('a.example', '1'), page('b.example', '1'), page('b.example', '2')]);
    await scene.run(500);
    expect(scene.sent[0]!.host).toBe('b.example');
  });

  it('asks nothing that robots.txt forbids', async () => {
    const scene = await openHostScene({
      rules: () => rulesOf({ access: 'rules', rules: [{ allow: false, pattern: '/private' }] }),
    });
    await scene.give([page('a.example', 'private/1'), page('a.example', 'open')]);
    await scene.run(60_000);
    expect(scene.of('a.example').map(([, path]) => path)).toEqual(['/robots.txt', '/open']);
    expect(scene.outcomes()).toEqual({
      [page('a.example', 'private/1')]: 'robots',
      [page('a.example', 'open')]: 'stored',
    });
  });

  it('fails at once, and asks nobody about, what is left alone', async () => {
    const scene = await openHostScene();
    const denied = Array.from({ length: 500 }, (_, i) => leaveAlone('denied', page('big.example', String(i))));
    await scene.give([...denied, leaveAlone('unmapped', page('a.example', '1')), page('b.example', '1')]);
    await scene.run(30_000);
    expect(new Set(scene.sent.map(({ host }) => host))).toEqual(new Set(['b.example']));
    const ends = Object.values(scene.outcomes());
    expect(ends.filter((end) => end === 'redirect')).toHaveLength(501);
    expect(results(scene.journal).find(({ id }) => id === denied[0])).toMatchObject({
      outcome: 'failed',
      reason: 'redirect',
      detail: 'not requested: site.follow.deny has its URL',
    });
  });

  it('reads the rules of each origin of a host', async () => {
    const scene = await openHostScene({
      rules: (url) =>
        url.startsWith('https://www.')
          ? rulesOf({ access: 'rules', rules: [{ allow: false, pattern: '/' }] })
          : undefined,
    });
    await scene.give(['https://www.a.example/1', 'http://a.example:8080/1']);
    await scene.run(120_000);
    expect(scene.sent.map(({ url }) => url)).toEqual([
      'https://www.a.example/robots.txt',
      'http://a.example:8080/robots.txt',
      'http://a.example:8080/1',
    ]);
  });

  it('keeps a Crawl-delay, and tells the main server before it asks again', async () => {
    let news = 0;
    const scene = await openHostScene({
      rules: () => rulesOf({ crawlDelayMs: 40_000 }),
      isMute: true,
      news: () => news++,
    });
    scene.beat();
    await scene.give([page('a.example', '1'), page('a.example', '2')]);
    await scene.run(120_000);
    expect(scene.of('a.example')).toHaveLength(1);
    expect(news).toBe(1);
    expect(scene.beat()).toEqual([{ host: 'a.example', delayMs: 40_000 }]);
    expect(scene.beat()).toEqual([]);
    await scene.run(60_000);
    const times = scene.of('a.example').map(([at]) => at);
    expect(times).toHaveLength(3);
    expect(times[2]! - times[1]!).toBeGreaterThanOrEqual(40);
  });

  it('asks for no page where the Crawl-delay is longer than the run, and does not wait for its end', async () => {
    const scene = await openHostScene({
      rules: (url) => (url.includes('day') ? rulesOf({ crawlDelayMs: 24 * HOUR }) : undefined),
    });
    await scene.give([page('day.example', '1'), page('day.example', '2'), page('a.example', '1')]);
    await scene.run(60_000);
    expect(scene.of('day.example').map(([, path]) => path)).toEqual(['/robots.txt']);
    expect(scene.outcomes()).toEqual({
      [page('day.example', '1')]: 'robots',
      [page('day.example', '2')]: 'robots',
      [page('a.example', '1')]: 'stored',
    });
  });

  it('keeps what the main server knows of a host from its first request on', async () => {
    const scene = await openHostScene();
    const hosts = [
      { host: 'a.example', waitMs: 60_000, delayMs: 30_000 },
      { host: 'b.example', denied: true as const },
    ];
    await scene.give([page('a.example', '1'), page('b.example', '1')], { hosts });
    await scene.run(59_000);
    expect(scene.sent).toEqual([]);
    expect(scene.outcomes()).toEqual({ [page('b.example', '1')]: 'redirect' });
    await scene.run(60_000);
    const [first, second] = scene.of('a.example').map(([at]) => at);
    expect(first).toBeGreaterThanOrEqual(60);
    expect(second! - first!).toBeGreaterThanOrEqual(30);
  });

  it('asks nothing before its first heartbeat is accepted, and nothing once its lease is over', async () => {
    const scene = await openHostScene({ isMute: true });
    await scene.give(Array.from({ length: 100 }, (_, i) => page('a.example', String(i))));
    await scene.run(60_000);
    expect(scene.sent).toEqual([]);
    const at = scene.clock.now();
    scene.beat();
    await scene.run(HOUR);
    expect(scene.sent.length).toBeGreaterThan(10);
    expect(Math.max(...scene.sent.map((each) => each.at))).toBeLessThan(at + LEASE_MS);
    const before = scene.sent.length;
    scene.beat();
    await scene.run(20_000);
    expect(scene.sent.length).toBeGreaterThan(before);
  });

  it.each([
    ['longer than its lease', LEASE_MS, 0],
    ['shorter than its lease', LEASE_MS / 2, 1],
  ])('asks as its lease allows after the machine was asleep for %s', async (_, asleepMs, least) => {
    // Asleep, the monotonic clock stands still.
    class SleepingClock extends VirtualClock {
      asleepMs = 0;
      override now(): number {
        return super.now() + this.asleepMs;
      }
    }
    const clock = new SleepingClock(START_MS);
    const scene = await openHostScene({ isMute: true, clock });
    await scene.give(Array.from({ length: 20 }, (__, i) => page('a.example', String(i))));
    scene.beat();
    await scene.run(60_000);
    const before = scene.sent.length;
    clock.asleepMs = asleepMs;
    await scene.run(60_000);
    expect(Math.min(1, scene.sent.length - before)).toBe(least);
  });

  it('sends nothing, robots.txt neither, where the lease ends while it connects', async () => {
    const scene = await openHostScene({ isMute: true, connectMs: 4_000, pagesAtOnce: 8 });
    const urls = Array.from({ length: 4 }, (_, i) => page('a.example', String(i)));
    scene.beat();
    await scene.run(LEASE_MS - 22_000);
    await scene.give(urls);
    await scene.run(20_000);
    await scene.give(['b', 'c', 'd'].map((host) => page(`${host}.example`, '1')));
    await scene.run(HOUR);
    expect(scene.sent.map(({ url }) => url)).toEqual(['https://a.example/robots.txt']);
    scene.beat();
    await scene.run(100_000);
    expect(new Set(Object.values(scene.outcomes()))).toEqual(new Set(['stored']));
    expect(Object.keys(scene.outcomes())).toHaveLength(7);
  });

  it('gives a host up that never answers, and asks the others meanwhile', async () => {
    const scene = await openHostScene({
      rules: (url) => (url.includes('dead') ? 'silence' : undefined),
      pagesAtOnce: 2,
    });
    await scene.give([page('dead.example', '1'), page('dead.example', '2'), page('a.example', '1')]);
    await scene.run(600_000);
    expect(scene.of('dead.example')).toHaveLength(4);
    expect(scene.outcomes()).toEqual({
      [page('dead.example', '1')]: 'network',
      [page('dead.example', '2')]: 'network',
      [page('a.example', '1')]: 'stored',
    });
    expect(scene.queue.progress(null)).toMatchObject({ unavailable: 0 });
    await scene.give([page('dead.example', '3')]);
    await scene.run(1_000);
    expect(scene.of('dead.example')).toHaveLength(4);
    expect(scene.outcomes()[page('dead.example', '3')]).toBe('network');
  });

  it('gives a name up that has no address, without a request', async () => {
    const scene = await openHostScene({ addresses: (name) => (name.startsWith('no') ? null : name) });
    await scene.give([page('no.example', '1'), page('a.example', '1')]);
    await scene.run(600_000);
    expect(scene.of('no.example')).toEqual([]);
    expect(scene.outcomes()).toEqual({ [page('no.example', '1')]: 'network', [page('a.example', '1')]: 'stored' });
  });

  it.each([
    ['never answers', { rules: (url: string) => (url.includes('dead') ? 'silence' : undefined) }, 'network', 4],
    ['has no address', { addresses: (name: string) => (name.startsWith('dead') ? null : name) }, 'network', 0],
    [
      'has a robots.txt that cannot be read',
      {
        rules: (url: string) => (url.includes('dead') ? rulesOf({ access: 'none', source: '503' }) : undefined),
      },
      'robots',
      4,
    ],
  ] as const)('goes on at the other names of a host of which one %s', async (_, options, reason, requests) => {
    const scene = await openHostScene(options);
    const dead = ['1', '2', '3'].map((name) => page('dead.a.example', name));
    const alive = ['1', '2', '3', '4'].map((name) => page('www.a.example', name));
    await scene.give([...dead, ...alive]);
    await scene.run(120_000);
    // They do not wait for the rests of that name.
    expect(alive.map((url) => scene.outcomes()[url])).toEqual(['stored', 'stored', 'stored', 'stored']);
    await scene.run(600_000);
    expect(dead.map((url) => scene.outcomes()[url])).toEqual([reason, reason, reason]);
    expect(scene.sent.filter(({ url }) => url.includes('dead'))).toHaveLength(requests);
    const times = scene.of('a.example').map(([at]) => at);
    expect(Math.min(...times.slice(1).map((at, i) => at - times[i]!))).toBeGreaterThanOrEqual(15);
    expect(scene.queue.state.items.openCount).toBe(0);
  });

  it('ends a record that another name of its host redirects to, where that never answers', async () => {
    const scene = await openHostScene({
      rules: (url) => (url.includes('dead') ? 'silence' : undefined),
      world: (url) => (url.endsWith('/moved') ? toElsewhere('https://dead.a.example/1') : fine(url)),
    });
    await scene.give([page('a.example', 'moved'), page('a.example', '1'), page('a.example', '2')]);
    await scene.run(900_000);
    expect(scene.outcomes()).toEqual({
      [page('a.example', 'moved')]: 'robots',
      [page('a.example', '1')]: 'stored',
      [page('a.example', '2')]: 'stored',
    });
  });

  it('takes no host for dead while none of many answers', async () => {
    let isDown = true;
    const scene = await openHostScene({ rules: () => (isDown ? 'silence' : undefined), pagesAtOnce: 8 });
    await scene.give(Array.from({ length: 60 }, (_, i) => page(`h${i}.example`, 'p')));
    await scene.run(HOUR / 2);
    expect(Object.values(scene.outcomes()).filter((outcome) => outcome === 'network').length).toBeLessThan(20);
    expect(scene.problem()).toContain('no host answers');
    expect(scene.queue.progress(null).unavailable).toBeGreaterThan(20);
    isDown = false;
    await scene.run(HOUR);
    expect(scene.problem()).toBeNull();
    expect(Object.values(scene.outcomes()).filter((outcome) => outcome === 'stored').length).toBeGreaterThan(40);
    expect(Object.keys(scene.outcomes())).toHaveLength(60);
  });

  it('takes hosts for dead that never answered, though nothing else is left to ask', async () => {
    const scene = await openHostScene({
      rules: (url) => (url.includes('dead') ? 'silence' : undefined),
      pagesAtOnce: 8,
    });
    const hosts = Array.from({ length: 200 }, (_, i) => (i % 4 === 0 ? `dead${i}.example` : `h${i}.example`));
    await scene.give(hosts.map((host) => page(host, 'p')));
    await scene.run(HOUR);
    const outcomes = Object.values(scene.outcomes());
    expect(outcomes.filter((outcome) => outcome === 'network')).toHaveLength(50);
    expect(outcomes.filter((outcome) => outcome === 'stored')).toHaveLength(150);
    expect(scene.queue.progress(null).unavailable).toBe(0);
  });

  it('does not wait for the network when hosts that never answered are all that is left of a night', async () => {
    const scene = await openHostScene({
      rules: (url) => (url.includes('dead') ? 'silence' : undefined),
      pagesAtOnce: 32,
    });
    const alive = Array.from({ length: 40 }, (_, i) => `h${i}.example`);
    const dead = Array.from({ length: 70 }, (_, i) => `dead${i}.example`);
    await scene.give([...alive, ...dead].map((host) => page(host, 'p')));
    await scene.run(HOUR / 4);
    // More may come, and would be lost as well.
    expect(scene.problem()).toContain('no host answers');
    await scene.follow({ sealed: true });
    await scene.run(HOUR / 2);
    expect(scene.problem()).toBeNull();
    expect(Object.values(scene.outcomes()).sort()).toEqual([
      ...dead.map(() => 'network'),
      ...alive.map(() => 'stored'),
    ]);
  });

  it('waits for the network also at the end of a night, when hosts that have answered do so no more', async () => {
    let isDown = false;
    const scene = await openHostScene({ world: (url) => (isDown ? 'silence' : fine(url)), pagesAtOnce: 8 });
    const hosts = Array.from({ length: 8 }, (_, i) => `h${i}.example`);
    const pages = ['1', '2', '3'].flatMap((name) => hosts.map((host) => page(host, name)));
    await scene.give(pages, { sealed: true });
    await scene.run(2_000);
    isDown = true;
    await scene.run(HOUR / 2);
    expect(scene.problem()).toContain('no host answers');
    isDown = false;
    await scene.run(HOUR / 2);
    expect(Object.values(scene.outcomes())).toEqual(pages.map(() => 'stored'));
  });

  it('lets a host rest that refuses, tries once more, and then gives up', async () => {
    const scene = await openHostScene({ world: (url) => (url.includes('bad.example') ? refused(403) : fine(url)) });
    await scene.give([...['1', '2', '3', '4'].map((name) => page('bad.example', name)), page('a.example', '1')]);
    await scene.run(2 * HOUR);
    const pages = scene.of('bad.example').filter(([, path]) => path !== '/robots.txt');
    // The first refusal, one more page to be sure, and one after the rest.
    expect(pages).toHaveLength(3);
    expect(pages[2]![0] - pages[1]![0]).toBeGreaterThanOrEqual(scene.queue.progress(null) ? 60 : 0);
    expect(Object.values(scene.outcomes()).sort()).toEqual(['banned', 'banned', 'banned', 'banned', 'stored']);
  });

  it('says that its address is in doubt when a third of the last hosts refuse it that were right before', async () => {
    let refusing = 0;
    const numberOf = (url: string): number => Number(/h(\d+)\./.exec(url)?.[1]);
    const scene = await openHostScene({
      world: (url) => (numberOf(url) < refusing ? refused(403) : fine(url)),
      pagesAtOnce: 8,
    });
    const hosts = Array.from({ length: 30 }, (_, i) => `h${i}.example`);
    await scene.give(hosts.map((host) => page(host, '1')));
    await scene.run(60_000);
    expect(scene.problem()).toBeNull();
    refusing = 9;
    await scene.give(hosts.flatMap((host) => ['2', '3', '4'].map((name) => page(host, name))));
    await scene.run(HOUR);
    expect(scene.problem()).toBeNull();
    refusing = 10;
    await scene.give(hosts.flatMap((host) => ['5', '6', '7'].map((name) => page(host, name))));
    await scene.run(HOUR);
    expect(scene.problem()).toMatch(/a third of the hosts/);
  });

  it('does not doubt its address for hosts that were never right', async () => {
    const scene = await openHostScene({ world: () => refused(403), pagesAtOnce: 8 });
    await scene.give(
      Array.from({ length: 60 }, (_, i) => ['1', '2'].map((name) => page(`h${i}.example`, name))).flat(),
    );
    await scene.run(HOUR);
    expect(scene.problem()).toBeNull();
  });

  it('takes a redirect to the home page for a page that is gone, where none was right', async () => {
    const world = (url: string) => (url.includes('/old') ? toElsewhere(new URL('/', url).href) : fine(url));
    const scene = await openHostScene({ world });
    await scene.give(['old1', 'old2', 'old3', 'p'].map((name) => page('a.example', name)));
    await scene.run(120_000);
    expect(Object.values(scene.outcomes())).toEqual(['redirect', 'redirect', 'redirect', 'stored']);
    expect(scene.queue.hostNews(10)).toEqual([]);
    expect(scene.queue.state.domains.at(0)).toMatchObject({ bans: 0, givenUp: null });
  });

  it('lets a page that was right before prove that a redirect to the home page is none of a ban', async () => {
    const world = (url: string) => (url.includes('/old') ? toElsewhere(new URL('/', url).href) : fine(url));
    const scene = await openHostScene({ world });
    await scene.give(['p', 'old1', 'q'].map((name) => page('a.example', name)));
    await scene.run(300_000);
    expect(Object.values(scene.outcomes()).sort()).toEqual(['redirect', 'stored', 'stored']);
    expect(scene.queue.state.domains.at(0)).toMatchObject({ bans: 0, givenUp: null });
  });

  it('sends nothing more after a 429, and one request after its Retry-After', async () => {
    const scene = await openHostScene({
      world: (url) => (url.includes('bad.example') ? refused(429, 20 * 60_000) : fine(url)),
      site: { ban: { statuses: [], redirects: [], patterns: [], coolDownMs: 60_000 } },
    });
    await scene.give(['1', '2', '3'].map((name) => page('bad.example', name)));
    await scene.run(2 * HOUR);
    const times = scene
      .of('bad.example')
      .filter(([, path]) => path !== '/robots.txt')
      .map(([at]) => at);
    expect(times).toHaveLength(2);
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(20 * 60);
    expect(Object.values(scene.outcomes())).toEqual(['banned', 'banned', 'banned']);
  });

  it('says that it rests itself while all its hosts do, and only then', async () => {
    const scene = await openHostScene({ world: (url) => (url.includes('a.example') ? refused(429, HOUR) : fine(url)) });
    await scene.give([
      ...['1', '2'].map((name) => page('a.example', name)),
      ...['1', '2'].map((n) => page('b.example', n)),
    ]);
    const rests: number[] = [];
    for (let i = 0; i < 12; i++) {
      await scene.run(5_000);
      rests.push(scene.queue.progress(null).restMs);
    }
    expect(rests[4]).toBe(0);
    expect(rests.at(-1)).toBeGreaterThan(HOUR - 60_000);
    await scene.run(2 * HOUR);
    expect(scene.queue.progress(null)).toMatchObject({ pending: 0, restMs: 0 });
  });

  it('tells the main server of a rest, and goes on slower after it', async () => {
    let isBad = true;
    const scene = await openHostScene({
      world: (url) => (isBad ? refused(429) : fine(url)),
      isMute: true,
      site: { ban: { statuses: [], redirects: [], patterns: [], coolDownMs: 60_000 } },
    });
    scene.beat();
    await scene.give(['1', '2', '3'].map((name) => page('a.example', name)));
    await scene.run(20_000);
    const [rest] = scene.beat() ?? [];
    expect(rest).toMatchObject({ host: 'a.example' });
    expect(rest!.waitMs).toBeGreaterThan(50_000);
    isBad = false;
    await scene.run(200_000);
    const times = scene.of('a.example').map(([at]) => at);
    expect(times.at(-1)! - times.at(-2)!).toBeGreaterThanOrEqual(30);
    expect(Object.values(scene.outcomes())).toEqual(['stored', 'stored', 'stored']);
  });

  it('tells the next owner that a host has refused once, or is given up', async () => {
    const first = await openHostScene({ world: () => refused(429), isMute: true });
    first.beat();
    await first.give(['1', '2'].map((name) => page('a.example', name)));
    await first.run(20_000);
    expect(first.beat()).toEqual([
      { host: 'a.example', delayMs: 0, refusals: 2, waitMs: expect.any(Number) as number },
    ]);
    for (let minutes = 0; minutes < 60; minutes++) {
      await first.run(60_000);
      if (first.queue.state.domains.at(0).givenUp !== null) break;
      first.beat();
    }
    expect(first.beat()).toMatchObject([{ host: 'a.example', refusals: 3 }]);

    const second = await openHostScene({ world: (url) => (url.includes('/r') ? refused(403) : fine(url)) });
    const hosts = [
      { host: 'a.example', refusals: 3 },
      { host: 'b.example', refusals: 2 },
    ];
    await second.give([page('a.example', '1'), ...['r1', 'r2', '3'].map((name) => page('b.example', name))], { hosts });
    await second.run(HOUR);
    expect(second.of('a.example')).toEqual([]);
    expect(second.of('b.example').map(([, path]) => path)).toEqual(['/robots.txt', '/r1']);
    expect(new Set(Object.values(second.outcomes()))).toEqual(new Set(['banned']));
  });

  it.each([
    [0, ['/r', '/3', '/4', '/r', '/4']],
    // A page that was right before shows whether it still is.
    [2, ['/1', '/2', '/r', '/2', '/3', '/4', '/r', '/4']],
  ])('tells the main server of a first refusal before it asks again (%i right pages before)', async (good, paths) => {
    let news = 0;
    const world = (url: string) => (url.endsWith('/r') ? refused(403) : fine(url));
    const scene = await openHostScene({ world, isMute: true, news: () => news++ });
    const asked = () => scene.of('a.example').map(([, path]) => path);
    scene.beat();
    const names = [...['1', '2'].slice(0, good), 'r', '3', '4'];
    await scene.give(names.map((name) => page('a.example', name)));
    await scene.run(180_000);
    expect(asked()).toEqual(['/robots.txt', ...paths.slice(0, good + 1)]);
    expect(news).toBe(1);
    expect(scene.beat()).toEqual([{ host: 'a.example', delayMs: 0, refusals: 1 }]);
    // The next page is right: the next owner shall not think otherwise.
    await scene.run(60_000);
    expect(asked()).toEqual(['/robots.txt', ...paths.slice(0, good + 2)]);
    expect(scene.beat()).toEqual([{ host: 'a.example', delayMs: 0 }]);
    for (let i = 0; i < 6; i++) {
      await scene.run(20_000);
      scene.beat();
    }
    expect(asked()).toEqual(['/robots.txt', ...paths]);
    expect(scene.journal.records.filter(({ t }) => t === 'rested')).toEqual([]);
  });

  it('lets a host rest first that has refused its owner before, and asks nothing more after another refusal', async () => {
    const hosts = [{ host: 'a.example', refusals: 1 }];
    const world = (url: string) => (url.endsWith('/r') ? refused(403) : fine(url));
    const first = await openHostScene({ world });
    await first.give(
      ['r', '2', '3'].map((name) => page('a.example', name)),
      { hosts },
    );
    await first.run(59_000);
    expect(first.of('a.example')).toEqual([]);
    await first.run(120_000);
    expect(first.of('a.example').map(([, path]) => path)).toEqual(['/robots.txt', '/r']);
    expect(Object.values(first.outcomes())).toEqual(['banned', 'banned', 'banned']);

    const second = await openHostScene({ world });
    await second.give(
      ['1', 'r'].map((name) => page('a.example', name)),
      { hosts },
    );
    await second.run(100_000);
    // The same with the next slice says nothing new.
    await second.give([page('a.example', '4')], { hosts });
    await second.run(300_000);
    expect(second.journal.records.filter(({ t }) => t === 'rested')).toHaveLength(1);
    expect(second.outcomes()).toMatchObject({ [page('a.example', '4')]: 'stored' });
  });

  it('never follows a redirect to another host, and suspects nothing', async () => {
    const scene = await openHostScene({
      world: (url) => (url.includes('moved') ? toElsewhere('https://sale.example/') : fine(url)),
    });
    await scene.give(['1', '2', '3', '4', '5', '6'].map((name) => page('moved.example', name)));
    await scene.run(300_000);
    expect(scene.of('sale.example')).toEqual([]);
    expect(Object.values(scene.outcomes())).toEqual(Array.from({ length: 6 }, () => 'redirect'));
    expect(scene.of('moved.example')).toHaveLength(7);
  });

  it('follows a redirect to another name of the host, once its rules are read', async () => {
    const scene = await openHostScene({
      world: (url) => (url === 'http://a.example/1' ? toElsewhere('https://shop.a.example/1') : fine(url)),
    });
    await scene.give(['http://a.example/1']);
    await scene.run(120_000);
    expect(scene.sent.map(({ url }) => url)).toEqual([
      'http://a.example/robots.txt',
      'http://a.example/1',
      'https://shop.a.example/robots.txt',
      'https://shop.a.example/1',
    ]);
    const times = scene.of('a.example').map(([at]) => at);
    expect(Math.min(...times.slice(1).map((at, i) => at - times[i]!))).toBeGreaterThanOrEqual(15);
    expect(Object.values(scene.outcomes())).toEqual(['stored']);
  });

  it('follows the redirect of a robots.txt within the host, each in its turn', async () => {
    const scene = await openHostScene({
      rules: (url) =>
        url.startsWith('http://') ? { kind: 'moved', status: 301, to: url.replace('http:', 'https:') } : rulesOf({}),
    });
    await scene.give(['http://a.example/1']);
    await scene.run(60_000);
    expect(scene.sent.map(({ url }) => url)).toEqual([
      'http://a.example/robots.txt',
      'https://a.example/robots.txt',
      'http://a.example/1',
    ]);
  });

  it('crawls nothing where robots.txt leads to another host', async () => {
    const scene = await openHostScene({
      rules: () => ({ kind: 'moved', status: 301, to: 'https://b.example/robots.txt' }),
    });
    await scene.give(['http://a.example/1']);
    await scene.run(60_000);
    expect(scene.sent).toHaveLength(1);
    expect(Object.values(scene.outcomes())).toEqual(['robots']);
  });

  it('believes 404s and odd pages of a host without a right page', async () => {
    const scene = await openHostScene({
      world: (url) => (url.includes('gone') ? notFound : url.includes('parked') ? odd() : broken('network')),
    });
    const names = ['1', '2', '3', '4', '5', '6'];
    await scene.give([
      ...names.map((name) => page('gone.example', name)),
      ...names.map((name) => page('parked.example', name)),
    ]);
    await scene.run(2 * HOUR);
    expect(new Set(names.map((name) => scene.outcomes()[page('gone.example', name)]))).toEqual(new Set(['gone']));
    expect(new Set(names.map((name) => scene.outcomes()[page('parked.example', name)]))).toEqual(new Set(['parse']));
  });

  it('asks an address of many names once a second', async () => {
    const scene = await openHostScene({ addresses: () => '192.0.2.1', pagesAtOnce: 8 });
    await scene.give(Array.from({ length: 50 }, (_, i) => page(`h${i}.example`, 'p')));
    await scene.run(150_000);
    const times = scene.sent.map(({ at }) => at);
    expect(times.length).toBeGreaterThanOrEqual(90);
    expect(Math.min(...times.slice(1).map((at, i) => at - times[i]!))).toBeGreaterThanOrEqual(1_000);
    expect(scene.most()).toBe(1);
  });

  it('asks an address of many names once a second, whichever name of a host leads there', async () => {
    const scene = await openHostScene({
      addresses: (name) => (name.startsWith('www.') ? '192.0.2.1' : name),
      pagesAtOnce: 8,
    });
    await scene.give(Array.from({ length: 20 }, (_, i) => page(`h${i}.example`, 'p')));
    await scene.give(Array.from({ length: 20 }, (_, i) => page(`www.h${i}.example`, 'p')));
    await scene.run(300_000);
    const times = scene.sent.filter(({ url }) => url.includes('www.')).map(({ at }) => at);
    expect(times).toHaveLength(40);
    expect(Math.min(...times.slice(1).map((at, i) => at - times[i]!))).toBeGreaterThanOrEqual(1_000);
  });

  it.each([
    ['of the address', () => '192.0.2.1'],
    ['of another address', (name: string) => (name.startsWith('www.') ? '192.0.2.1' : name)],
  ])('asks an address once a second that redirects from names %s lead to, and keeps it busy', async (_, addresses) => {
    const scene = await openHostScene({
      addresses,
      pagesAtOnce: 8,
      world: (url) => (url.startsWith('http:') ? toElsewhere(url.replace('http://', 'https://www.')) : fine(url)),
    });
    const urls = Array.from({ length: 50 }, (__, i) => `http://h${i}.example/p`);
    await scene.give(urls);
    await scene.run(400_000);
    expect(urls.filter((url) => scene.outcomes()[url] === 'stored')).toHaveLength(50);
    const times = scene.sent.flatMap(({ url, at }) => (addresses(new URL(url).hostname) === '192.0.2.1' ? [at] : []));
    expect(Math.min(...times.slice(1).map((at, i) => at - times[i]!))).toBeGreaterThanOrEqual(1_000);
  });

  it('waits for a whole interval at each host after a restart, and knows its rules', async () => {
    const first = await openHostScene();
    await first.give(['1', '2', '3'].map((name) => page('a.example', name)));
    await first.run(16_000);
    first.stop.abort();
    await first.run(0);
    const asked = first.of('a.example').length;
    const second = await openHostScene({ journal: first.journal, clock: first.clock });
    await second.run(60_000);
    const [[at, path] = [0, '']] = second.of('a.example');
    expect(path).not.toBe('/robots.txt');
    expect(at - first.of('a.example')[asked - 1]![0]).toBeGreaterThanOrEqual(15);
    expect(Object.keys(second.outcomes())).toHaveLength(3);
  });

  it('keeps a rest and what it has given up over a restart', async () => {
    const world = () => refused(429);
    const first = await openHostScene({ world });
    await first.give(['1', '2', '3'].map((name) => page('a.example', name)));
    await first.run(20_000);
    first.stop.abort();
    await first.run(0);
    const second = await openHostScene({ world, journal: first.journal, clock: first.clock });
    await second.run(HOUR + 120_000);
    expect(second.of('a.example').filter(([, path]) => path !== '/robots.txt').length).toBeLessThanOrEqual(1);
    expect(Object.values(second.outcomes())).toEqual(['banned', 'banned', 'banned']);
  });

  it.each([1, 3])(
    'asks once more after a refusal, also if the process dies then (%i good pages before)',
    async (good) => {
      const names = ['1', '2', '3', '4', '5', '6'];
      const world = (url: string) => (Number(url.at(-1)) > good ? refused(403) : fine(url));
      const first = await openHostScene({ world });
      await first.give(names.map((name) => page('a.example', name)));
      while (!first.journal.records.some(({ t }) => t === 'refused')) await first.run(1_000);
      first.stop.abort();
      await first.run(0);
      const second = await openHostScene({ world, journal: first.journal, clock: first.clock });
      await second.run(55_000);
      expect(second.of('a.example').filter(([, path]) => path !== '/robots.txt')).toHaveLength(1);
      expect(first.journal.records.filter(({ t }) => t === 'rested')).toHaveLength(1);
    },
  );

  it('asks a host that is due, however often it looks at the clock', async () => {
    const clock = new VirtualClock(START_MS);
    let looks = 0;
    const monotonic = clock.monotonic.bind(clock);
    clock.monotonic = () => monotonic() + ++looks / 10_000;
    const scene = await openHostScene({ clock });
    await scene.give([page('a.example', '1'), page('b.example', '1')]);
    await scene.run(60_000);
    expect(Object.values(scene.outcomes())).toEqual(['stored', 'stored']);
  });

  it.each(['respect', 'ignore'] as const)(
    'returns no chunk of a host that it has asked (robots: %s)',
    async (rules) => {
      const scene = await openHostScene({ site: { robots: rules } });
      await scene.give([page('a.example', '1')]);
      await scene.give([page('a.example', '2')]);
      await scene.run(300);
      await scene.follow({ transfer: [...scene.queue.state.chunks.keys()] });
      expect(scene.queue.transferredChunks()).toEqual([]);
    },
  );

  it('returns chunks of hosts that it has not asked, and no others', async () => {
    const scene = await openHostScene({ pagesAtOnce: 1 });
    await scene.give([page('a.example', '1'), page('a.example', '2'), page('b.example', '1')]);
    await scene.give([page('c.example', '1')]);
    await scene.run(300);
    const [opened, other] = [...scene.queue.state.chunks.keys()];
    await scene.follow({ transfer: [opened!, other!] });
    expect(scene.queue.transferredChunks()).toEqual([other]);
    await scene.run(60_000);
    expect(scene.of('c.example')).toEqual([]);
  });
});

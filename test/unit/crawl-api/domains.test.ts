import { describe, expect, it } from 'vitest';
import { domainOf } from '../../../shared/domain/domains.ts';
import { productUrl } from '../../../shared/domain/product.ts';
import { combinePolicies } from '../../../shared/domain/robots.ts';
import {
  createScene,
  crawl,
  fine,
  gaps,
  notFound,
  outcomes,
  refused,
  type Scene,
  type Site,
  toElsewhere,
} from './crawl-scene.ts';
import { createGranted, createQueue, orders, robots, START_MS } from './fakes.ts';

const A = 'http://a.example';
const B = 'http://b.example';
const SHOPS = [
  { url: `${A}/{id}`, weight: 1 },
  { url: `${B}/{id}`, weight: 1 },
];
const TWO = { productUrl: SHOPS };
const at = (scene: Scene, origin: string) => scene.starts.filter(({ url }) => url.startsWith(origin));
const idsAt = (domain: number, last: number): string[] =>
  Array.from({ length: last }, (_, i) => `p${i + 1}`).filter((id) => domainOf(SHOPS, id) === domain);

describe('a shop with two domains', () => {
  it('is crawled at the pace of each, every product at its own domain, in little more than half the time', async () => {
    const scene = await crawl(20, (path) => fine(path), TWO);
    expect(scene.end()).toBe('finished');
    const expected = Array.from({ length: 20 }, (_, i) => productUrl(SHOPS, `p${i + 1}`));
    expect(scene.starts.map(({ url }) => url).toSorted()).toEqual(expected.toSorted());
    for (const origin of [A, B]) expect(Math.min(...gaps(at(scene, origin)))).toBeGreaterThanOrEqual(1_010);
    const most = Math.max(idsAt(0, 20).length, idsAt(1, 20).length);
    expect(most).toBeLessThan(15);
    expect(scene.starts.at(-1)!.at - START_MS).toBeLessThan(most * 1_150);
    expect(scene.queue.progress(null).minGapMs).toBeGreaterThanOrEqual(1_010);
  });

  it('gets one page at a time', async () => {
    const scene = await crawl(20, (path) => fine(path), { ...TWO, pageMs: 700 });
    expect(Math.min(...gaps(scene.starts))).toBeGreaterThanOrEqual(700);
    expect(scene.end()).toBe('finished');
  });

  it('waits at one domain for the further pages of a product while products of the other are crawled', async () => {
    const [first] = idsAt(0, 20);
    const site: Site = (path) =>
      path === `${A}/${first}` ? fine(path, { t: 'x' }, [`${path}/2`, `${path}/3`]) : fine(path);
    const scene = await crawl(20, site, TWO);
    const page = `${A}/${first}`;
    const own = scene.starts.filter(({ url }) => url === page || url.startsWith(`${page}/`)).map(({ at: ms }) => ms);
    expect(own).toHaveLength(3);
    expect(at(scene, B).some(({ at: ms }) => ms > own[0]! && ms < own[2]!)).toBe(true);
    for (const origin of [A, B]) expect(Math.min(...gaps(at(scene, origin)))).toBeGreaterThanOrEqual(1_010);
  });

  it('keeps the pace of each domain across a restart of the process', async () => {
    const first = await createGranted(20, {}, SHOPS);
    const before = await createScene(first, (path) => fine(path), TWO);
    await before.run(1_150);
    before.stop.abort();
    await before.run(0);
    const again = createQueue({ journal: first.journal, clock: first.clock, productUrl: SHOPS });
    const after = await createScene(again, (path) => fine(path), TWO);
    await after.run(1_200);
    for (const origin of [A, B])
      expect(at(after, origin)[0]!.at - at(before, origin).at(-1)!.at).toBeGreaterThanOrEqual(1_010);
  });

  it('is left alone only at the domain that asks for a pause', async () => {
    const scene = await crawl(
      20,
      (path, tries) => (path === `${A}/${idsAt(0, 20)[0]}` && tries === 1 ? refused(503, 15_000) : fine(path)),
      TWO,
    );
    const [own, other] = [at(scene, A), at(scene, B)];
    expect(own[1]!.at - own[0]!.at).toBeGreaterThanOrEqual(15_000);
    expect(other.filter(({ at: ms }) => ms < own[1]!.at)).toHaveLength(idsAt(1, 20).length);
    expect(scene.end()).toBe('finished');
  });

  it('is asked by the robots.txt of each domain', async () => {
    const [forbidden] = idsAt(1, 20);
    const world = await createGranted(20, { sealed: true }, SHOPS);
    const scene = await createScene(world, (path) => fine(path), { ...TWO, robots: 'respect' });
    const rules = robots({
      access: 'rules',
      rules: [{ allow: false, pattern: `/${forbidden}$` }],
      crawlDelayMs: 3_000,
    });
    const unreadable = robots({ access: 'none' });
    await scene.follow({
      sealed: true,
      robots: combinePolicies([
        { ...unreadable, version: 'v0' },
        { ...rules, version: 'v2' },
      ]),
    });
    await scene.run(60_000);
    expect(at(scene, A)).toEqual([]);
    expect(at(scene, B)).toHaveLength(idsAt(1, 20).length - 1);
    expect(Math.min(...gaps(at(scene, B)))).toBeGreaterThanOrEqual(3_000);
    expect(outcomes(world.journal)).toContain(`${forbidden} robots`);
    await scene.follow({
      sealed: true,
      robots: combinePolicies([
        { ...robots(), version: 'v3' },
        { ...rules, version: 'v2' },
      ]),
    });
    await scene.run(60_000);
    expect(at(scene, A)).toHaveLength(idsAt(0, 20).length);
    expect(Math.min(...gaps(at(scene, A)))).toBeLessThan(2_000);
    expect(scene.end()).toBe('finished');
  });

  it('does not prove a missing product of one domain by pages of the other', async () => {
    const world = await createGranted(20, {}, SHOPS);
    const scene = await createScene(world, (path) => (path.startsWith(A) ? notFound : fine(path)), TWO);
    await scene.run(30_000);
    const { state } = world.queue;
    expect(state.counts).toEqual({ stored: idsAt(1, 20).length, gone: 0, failed: 0 });
    expect([...state.items.at('held', 0)]).toHaveLength(idsAt(0, 20).length);
    expect(world.queue.progress(null).okAgoMs).toBeNull();
  });

  it('proves them by a canary page of the same domain', async () => {
    const canaries = [{ id: 'c1', fields: { t: 'x' } }];
    const site: Site = (path) => (path.startsWith(A) && !path.endsWith('/c1') ? notFound : fine(path));
    const scene = await crawl(20, site, { ...TWO, canaries });
    expect(scene.end()).toBe('finished');
    expect(at(scene, `${A}/c1`)).toHaveLength(1);
    expect(at(scene, `${B}/c1`)).toHaveLength(0);
    expect(scene.queue.state.counts.gone).toBe(idsAt(0, 20).length);
  });

  it('is left alone at every domain when one bans the address', async () => {
    const scene = await crawl(20, (path) => (path === `${A}/${idsAt(0, 20)[2]}` ? refused(429) : fine(path)), TWO);
    expect(scene.incidents.describe()).toMatchObject({ verdict: 'banned' });
    const bannedAt = at(scene, A).at(-1)!.at;
    expect(at(scene, A)).toHaveLength(3);
    expect(at(scene, B).every(({ at: ms }) => ms < bannedAt + 1_010)).toBe(true);
  });

  it('accepts the results of the domain in doubt alone when the main server ends a suspicion', async () => {
    const world = await createGranted(20, {}, SHOPS);
    const scene = await createScene(world, (path) => (path.startsWith(B) ? notFound : fine(path)), TWO);
    // Before the domain without a right page is in doubt by itself.
    await scene.run(14_000);
    scene.incidents.begin('suspect', { rule: 'r', url: A, status: 200, headers: {}, body: '' });
    scene.incidents.decide('ok');
    expect([...world.queue.state.items.at('held', 1)]).toHaveLength(idsAt(1, 20).length);
    scene.incidents.begin('suspect', { rule: 'r', url: B, status: 200, headers: {}, body: '' }, { domain: 1 });
    scene.incidents.decide('ok');
    expect([...world.queue.state.items.at('held', 1)]).toEqual([]);
  });

  it('follows no redirect to another domain, even where robots.txt is ignored', async () => {
    const shops = [
      { url: 'http://shop.example/{id}', weight: 1 },
      { url: 'http://fr.shop.example/{id}', weight: 1 },
    ];
    const scene = await crawl(
      6,
      (path) => (/^https?:/.test(path) ? fine(path) : toElsewhere('http://fr.shop.example/x')),
      { productUrl: shops },
    );
    expect(scene.starts.filter(({ url }) => url.endsWith('/x'))).toEqual([]);
  });

  it('blames a crash on the product whose page was under way', async () => {
    const [a, b] = [idsAt(0, 20)[0]!, idsAt(1, 20)[0]!].map((id) => Number(id.slice(1))) as [number, number];
    const { queue, journal } = await createGranted(20, {}, SHOPS);
    queue.recordStart(a, START_MS);
    queue.recordStart(b, START_MS + 10, { domain: 1 });
    queue.recordBrokenOff(0);
    expect(journal.replay(SHOPS).underWay.numbers).toEqual([b]);
    queue.recordBrokenOff(1);
    expect(journal.replay(SHOPS).underWay.numbers).toEqual([]);
  });

  it('has room for as many products as its busiest domain', async () => {
    const { queue } = createQueue({ productUrl: SHOPS, intervalMs: 1_000, deadlineMs: START_MS + 10_100 });
    const offer = (chunk: string, count: number) =>
      queue.offer({
        chunk,
        share: 1_000,
        products: Array.from({ length: count }, (_, i) => ({ n: i + 1, id: `p${i + 1}` })),
      });
    expect(await offer('1-1', 21)).toEqual({ taken: false, refused: 'deadline', room: 20 });
    expect(await offer('1-1', 20)).toMatchObject({ taken: true });
    await queue.follow(orders({ grants: ['1-1'] }));
  });
});

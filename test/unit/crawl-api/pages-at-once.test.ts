/** site.pages_at_once: pages of several domains under way at the same time. */
import { describe, expect, it } from 'vitest';
import { domainOf } from '../../../shared/domain/domains.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import { createScene, crawl, fine, gaps, outcomes, refused, type Scene } from './crawl-scene.ts';
import { createGranted, START_MS } from './fakes.ts';

const A = 'http://a.example';
const B = 'http://b.example';
const SHOPS = [
  { url: `${A}/{id}`, weight: 1 },
  { url: `${B}/{id}`, weight: 1 },
];
const SLOW = { productUrl: SHOPS, pageMs: 5_000, ms: 300_000 };
const TWO = { ...SLOW, pagesAtOnce: 2 };
const PRODUCTS = 20;
const MOST_AT_ONE = Math.max(
  ...[0, 1].map(
    (domain) =>
      Array.from({ length: PRODUCTS }, (_, i) => domainOf(SHOPS, `p${i + 1}`) === domain).filter(Boolean).length,
  ),
);
const at = (scene: Scene, origin: string) => scene.starts.filter(({ url }) => url.startsWith(origin));
const evidence = (url: string): Evidence => ({ rule: 'r', url, status: 200, headers: {}, body: '' });

describe('two pages at a time, of two domains', () => {
  it('take as long as the pages of the domain with more of them', async () => {
    const [one, two] = [
      await crawl(PRODUCTS, (path) => fine(path), SLOW),
      await crawl(PRODUCTS, (path) => fine(path), TWO),
    ];
    const lastMs = (scene: Scene): number => scene.starts.at(-1)!.at - START_MS;
    expect(lastMs(one)).toBeGreaterThanOrEqual((PRODUCTS - 1) * 5_000);
    expect(lastMs(two)).toBeLessThan(MOST_AT_ONE * 5_000);
    for (const origin of [A, B]) expect(Math.min(...gaps(at(two, origin)))).toBeGreaterThanOrEqual(5_000);
    expect([two.end(), two.queue.progress(null).stored]).toEqual(['finished', PRODUCTS]);
  });

  it('count when they come after a ban at the other domain, and no request follows them', async () => {
    const world = await createGranted(PRODUCTS, {}, SHOPS);
    const scene = await createScene(world, (path) => fine(path), TWO);
    await scene.run(100);
    expect(scene.starts).toHaveLength(2);
    scene.incidents.begin('banned', evidence(A));
    await scene.run(60_000);
    expect([outcomes(world.journal).length, scene.starts.length]).toEqual([2, 2]);
  });

  it('may both be bans: the address rests for the longer of the two times, and then asks both again', async () => {
    const world = await createGranted(PRODUCTS, { sealed: true }, SHOPS);
    const banning = new Set([A, B]);
    const scene = await createScene(
      world,
      (path) =>
        banning.delete(new URL(path).origin) ? refused(429, path.startsWith(A) ? 7_200_000 : null) : fine(path),
      { ...TWO, coolDownMs: 600_000 },
    );
    await scene.run(30_000);
    expect(world.queue.state.incident).toMatchObject({ verdict: 'banned' });
    const restedMs = world.queue.state.incident!.untilMs!;
    expect(restedMs - START_MS).toBeGreaterThanOrEqual(7_200_000);
    expect([0, 1].map((domain) => world.queue.state.domains.at(domain).bans)).toEqual([1, 1]);
  });

  it('never end a ban by a suspicion at the other domain', async () => {
    const world = await createGranted(PRODUCTS, {}, SHOPS);
    const scene = await createScene(world, (path) => fine(path), TWO);
    scene.incidents.begin('banned', evidence(A));
    scene.incidents.begin('suspect', evidence(B), { domain: 1 });
    scene.incidents.decide('ok');
    expect(world.queue.state.incident).toMatchObject({ verdict: 'banned' });
  });
});

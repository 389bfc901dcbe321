/** The linked shop over HTTP: what it serves, and what its log says about it. */
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { wikiTitle } from '../../support/shop/linked/wiki.ts';
import { type Shop, startShop } from '../../support/shop/start-shop.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await startShop({ products: 300, linked: true, wiki: 100 });
});
afterAll(() => shop?.stop());
beforeEach(() => shop.reset());

const get = (path: string): Promise<Response> => fetch(shop.url + path);

it('leads from robots.txt to a gzipped sitemap and to its products', async () => {
  const robots = await (await get('/robots.txt')).text();
  const [index] = /http:\S+sitemap\.xml/.exec(robots)!;
  const files = [...(await (await fetch(index)).text()).matchAll(/<loc>([^<]+)</g)].map(([, loc]) => loc!);
  const gzipped = files.find((file) => file.endsWith('.gz'))!;
  const text = gunzipSync(await (await fetch(gzipped)).arrayBuffer()).toString();
  const items = [...text.matchAll(/<loc>([^<]+)</g)].map(([, loc]) => loc!);
  expect(items).toHaveLength(150);
  expect(await (await fetch(items.at(-1)!)).text()).toContain('data-id="P00300"');
});

it('serves its pages, and no others', async () => {
  const paths = ['/', '/category/3?page=2', '/search?q=a%20b&page=7', '/list?filter=9', '/calendar/2030/1', '/a/b/a/b'];
  for (const path of paths) expect([path, (await get(path)).status]).toEqual([path, 200]);
  expect(await (await get('/wiki/99')).text()).toContain(wikiTitle(99));
  const missing = ['/wiki/100', '/item/P00301', '/category/4', '/search?q=a&page=8', '/sitemap-items-9.xml', '/b'];
  for (const path of missing) expect([path, (await get(path)).status]).toEqual([path, 404]);
});

it('counts pages for the pace, but neither robots.txt nor sitemaps', async () => {
  for (const path of ['/robots.txt', '/sitemap.xml', '/sitemap-items-1.xml', '/category/1', '/wiki/1'])
    await (await get(path)).text();
  expect(await shop.stats()).toMatchObject({ requests: 2, robotsRequests: 1, sitemapRequests: 2 });
  expect((await shop.log()).map(({ kind, status }) => [kind, status])).toEqual([
    ['robots', 200],
    ['sitemap', 200],
    ['sitemap', 200],
    ['page', 200],
    ['page', 200],
  ]);
});

it('obeys rules, bans and the robots.txt of a test like the plain shop', async () => {
  await shop.setRobots('User-agent: *\nDisallow: /a\n');
  expect(await (await get('/robots.txt')).text()).not.toContain('Sitemap');
  await shop.setRules([{ id: 'P00001', do: { type: 'status', status: 500 } }]);
  expect((await get('/item/P00001')).status).toBe(500);
  await shop.setBanPolicies([{ when: { request: 1 }, answer: { type: 'status', status: 403 } }]);
  expect((await get('/category/1')).status).toBe(403);
});

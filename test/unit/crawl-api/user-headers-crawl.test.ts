/** Which requests of a crawl get the headers of the user: each is asked for anew, whatever led to it. */
import { describe, expect, it } from 'vitest';
import { UserHeaders } from '../../../crawl-api/fetch/user-headers.ts';
import {
  crawl,
  createScene,
  fine,
  notFound,
  odd,
  type SceneOptions,
  SHOP,
  type Site,
  toElsewhere,
  urls,
} from './crawl-scene.ts';
import { createGranted } from './fakes.ts';

const plain = (origin = SHOP): UserHeaders =>
  new UserHeaders({ userHeaders: [{ origin, headers: { 'x-a': '1' }, cookies: {} }] });

/** The site, and the URLs that got the header. */
function recording(site: Site): { site: Site; got: string[] } {
  const got: string[] = [];
  const recorded: Site = (path, tries, via, sent) => {
    if (sent.sends?.headers['x-a'] === '1') got.push(path);
    return site(path, tries, via, sent);
  };
  return { site: recorded, got };
}

async function gotBy(site: Site, options: SceneOptions): Promise<{ got: string[]; asked: string[] }> {
  const { site: recorded, got } = recording(site);
  const scene = await crawl(1, recorded, options);
  return { got, asked: urls(scene) };
}

describe('headers of the user in a crawl', () => {
  it('go with redirects within their authority', async () => {
    const site: Site = (path) => (path === '/p1' ? toElsewhere('/new') : fine(path));
    expect((await gotBy(site, { userHeaders: plain() })).got).toEqual(['/p1', '/new']);
  });

  it.each(['http://www.shop.example/p1', 'https://shop.example/p1', 'https://www.shop.example/p1'])(
    'do not go with a redirect to %s',
    async (to) => {
      const site: Site = (path) => (path === '/p1' ? toElsewhere(to) : fine(path));
      const { got, asked } = await gotBy(site, { userHeaders: plain() });
      expect(asked.length).toBe(2);
      expect(got).toEqual(['/p1']);
    },
  );

  it('come back with a redirect back', async () => {
    const site: Site = (path) =>
      path === '/p1'
        ? toElsewhere('http://www.shop.example/a')
        : path.endsWith('/a')
          ? toElsewhere('/end')
          : fine(path);
    expect((await gotBy(site, { userHeaders: plain() })).got).toEqual(['/p1', '/end']);
  });

  it('go with further pages of their authority, and not of a further host', async () => {
    const links = [`${SHOP}/more`, 'https://reviews.example/p1'];
    const site: Site = (path) =>
      path === '/p1'
        ? ({
            ...odd(),
            extraction: { rows: null, missing: 't', links, partial: { row: { u: 1 }, missing: ['t'] } },
          } as never)
        : fine(path);
    const { got, asked } = await gotBy(site, { userHeaders: plain(), follow: { hosts: ['https://reviews.example'] } });
    expect(asked.toSorted()).toEqual(['https://reviews.example/p1', 'more', 'p1']);
    expect(got).toEqual(['/p1', '/more']);
  });

  it('go with canary pages and with the browser', async () => {
    const site: Site = (path, _tries, via) => (path === '/c1' || via === 'browser' ? fine(path) : odd());
    const { got, asked } = await gotBy(site, {
      userHeaders: plain(),
      render: 'auto',
      canaries: [{ id: 'c1', fields: { t: 'x' } }],
    });
    expect(got).toEqual(asked.map((path) => `/${path}`));
  });

  it('are those of the domain that a product is read at', async () => {
    const productUrl = [
      { url: 'https://a.example/{id}', weight: 1 },
      { url: 'https://b.example/{id}', weight: 1 },
    ];
    const { site, got } = recording(() => notFound);
    await crawl(20, site, { productUrl, userHeaders: plain('https://b.example') });
    expect(got.length).toBeGreaterThan(0);
    expect(got.filter((url) => !url.startsWith('https://b.example/'))).toEqual([]);
  });

  it('that are secret keep the address from asking until they have come', async () => {
    const userHeaders = new UserHeaders({
      userHeaders: [{ origin: SHOP, headers: { 'x-a': { secret: '${A}' } }, cookies: {} }],
    });
    const { site, got } = recording((path) => fine(path));
    const scene = await createScene(await createGranted(2, { sealed: true }), site, { userHeaders });
    await scene.run(60_000);
    expect(scene.starts).toEqual([]);
    userHeaders.take('v1', { values: { '${A}': '1' }, masked: ['1'] });
    await scene.follow({});
    await scene.run(60_000);
    expect(got).toEqual(['/p1', '/p2']);
  });
});

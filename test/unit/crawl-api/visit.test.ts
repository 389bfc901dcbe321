/** One product: redirects, further pages, robots.txt, the browser. */
import { describe, expect, it } from 'vitest';
import type { PageResult } from '../../../crawl-api/fetch/page-result.ts';
import type { KeyedRow, Row } from '../../../shared/domain/mapping.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import {
  broken,
  crawl,
  createScene,
  fine,
  gaps,
  notFound,
  odd,
  outcomes,
  refused,
  reply,
  results,
  shell,
  SHOP,
  type Scene,
  type SceneOptions,
  type Site,
  toElsewhere,
  urls,
} from './crawl-scene.ts';
import { createQueue, robots, createGranted } from './fakes.ts';

async function world(last = 1, sealed = true) {
  const w = await createGranted(last, { sealed });
  return w;
}

const records = (rows: KeyedRow[], links: string[] = []): PageResult => ({
  ...(fine() as Extract<PageResult, { kind: 'page' }>),
  extraction: { rows, missing: null, links },
});

const withLinks = (links: string[]) => ({ extraction: { rows: null, missing: 't', links } });

/** A page without the required fields in `missing`. */
const incomplete = (row: Row, missing: [string, ...string[]], links: string[] = []): PageResult => ({
  ...(odd() as Extract<PageResult, { kind: 'page' }>),
  extraction: { rows: null, missing: missing[0], links, partial: { row, missing } },
});

const answers =
  (pages: Record<string, PageResult>): Site =>
  (path) =>
    pages[path] ?? notFound;

describe('redirects', () => {
  it('within the same site are followed, each at the pace', async () => {
    const site = answers({
      '/p1': toElsewhere('/items/p1'),
      '/items/p1': toElsewhere('/items/p1-bag'),
      '/items/p1-bag': fine(),
    });
    const scene = await crawl(1, site);
    expect(urls(scene)).toEqual(['p1', 'items/p1', 'items/p1-bag']);
    expect(Math.min(...gaps(scene.starts))).toBeGreaterThanOrEqual(1_010);
    expect(results(scene.journal)).toMatchObject([{ outcome: 'stored', url: `${SHOP}/p1` }]);
  });

  it.each<[string, Site, number]>([
    ['more than five', (path) => toElsewhere(`/a${Number(path.replace(/\D/g, '')) + 1}`), 6],
    ['in a circle', (path) => toElsewhere(path === '/p1' ? '/x' : '/p1'), 2],
  ])('fail the product: %s', async (_what, site, requests) => {
    const scene = await crawl(1, (path, ...rest) => (path === '/c1' ? fine(path) : site(path, ...rest)), {
      canaries: [{ id: 'c1', fields: { t: 'x' } }],
    });
    expect(scene.starts).toHaveLength(requests + 1);
    expect(results(scene.journal)).toMatchObject([
      { outcome: 'failed', reason: 'redirect', evidence: { rule: 'redirect-loop' } },
    ]);
  });
});

describe('a redirect to a page that the user denies', () => {
  it('is not followed, in any spelling, and says nothing about the address', async () => {
    const site = answers({
      '/p1': toElsewhere('/private/a'),
      '/p2': toElsewhere('//private//%61'),
      '/p3': toElsewhere('/items/p3'),
      '/items/p3': toElsewhere('/private/b?utm_source=x'),
      '/p4': toElsewhere('/privat'),
      '/privat': fine(),
    });
    const scene = await crawl(4, site, { deny: ['/private/'] });
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'items/p3', 'p4', 'privat']);
    expect(results(scene.journal)).toMatchObject([
      { outcome: 'failed', reason: 'redirect', detail: `it leads to ${SHOP}/private/a, which site.follow.deny denies` },
      { outcome: 'failed', reason: 'redirect' },
      { outcome: 'failed', reason: 'redirect' },
      { outcome: 'stored' },
    ]);
    expect(scene.queue.state.incident).toBeNull();
  });
});

describe('a request that the server closed its connection on', () => {
  const unread: PageResult = { ...(broken('network') as Extract<PageResult, { kind: 'failed' }>), unread: true };

  it('is sent once more, at the pace, and counted', async () => {
    const site: Site = (path, tries) =>
      path === '/p1' ? toElsewhere('/new') : path === '/new' && tries === 1 ? unread : fine(path);
    const scene = await crawl(2, site);
    expect(urls(scene)).toEqual(['p1', 'new', 'new', 'p2']);
    expect(Math.min(...gaps(scene.starts))).toBeGreaterThanOrEqual(1_010);
    expect(outcomes(scene.journal)).toEqual(['p1 stored', 'p2 stored']);
    expect(scene.journal.records.filter(({ t }) => t === 'started')).toHaveLength(4);
    const { tried, unavailable, replies } = scene.queue.tally;
    expect({ tried, unavailable, replies }).toEqual({ tried: 3, unavailable: 0, replies: { 302: 1, 200: 2 } });
  });

  it('counts as failed the second time', async () => {
    const scene = await crawl(1, (_path, tries) => (tries < 3 ? unread : fine()));
    expect(urls(scene)).toEqual(['p1', 'p1', 'p1']);
    expect(scene.queue.tally.replies).toEqual({ network: 1, 200: 1 });
    expect(results(scene.journal)).toMatchObject([{ outcome: 'stored', attempts: 2 }]);
  });

  it('is not sent again beyond the budget', async () => {
    const scene = await crawl(1, () => unread, { maxRequests: 1 });
    expect(urls(scene)).toEqual(['p1']);
  });
});

describe('a redirect through another host of the site', () => {
  it('must end on the site of the product', async () => {
    const productUrl = 'http://one.shops.example/{id}';
    const site: Site = (path) =>
      path === 'http://one.shops.example/p1'
        ? toElsewhere('http://shops.example/p1')
        : path === 'http://shops.example/p1'
          ? toElsewhere('http://two.shops.example/p1')
          : fine(path);
    const scene = await crawl(1, site, { productUrl, canaries: [{ id: 'c1', fields: { t: 'x' } }] });
    expect(urls(scene)).toEqual([
      'http://one.shops.example/p1',
      'http://shops.example/p1',
      'http://one.shops.example/c1',
    ]);
    expect(results(scene.journal)).toMatchObject([{ reason: 'redirect', evidence: { rule: 'redirect-elsewhere' } }]);
  });
});

describe('further pages', () => {
  it('add their records, each key once, and are requested once', async () => {
    const row = (key: string, stars: number): KeyedRow => ({ key, row: { stars } });
    const scene = await crawl(
      1,
      answers({
        '/p1': records([row('a', 1), row('b', 2)], [`${SHOP}/p1?page=2`, 'http://elsewhere.net/x', `${SHOP}/p1`]),
        '/p1?page=2': records([row('b', 9), row('c', 3)], [`${SHOP}/p1?page=3`, `${SHOP}/p1?page=2`]),
        '/p1?page=3': records([row('d', 4)]),
      }),
    );
    expect(urls(scene)).toEqual(['p1', 'p1?page=2', 'p1?page=3']);
    expect(Math.min(...gaps(scene.starts))).toBeGreaterThanOrEqual(1_010);
    expect(results(scene.journal)).toMatchObject([
      { outcome: 'stored', rows: [row('a', 1), row('b', 2), row('c', 3), row('d', 4)] },
    ]);
  });

  it('fill the fields that the first page left empty', async () => {
    const scene = await crawl(
      1,
      answers({
        '/p1': fine('/p1', { t: 'x', size: null, colour: 'red' }, [`${SHOP}/p1/specs`]),
        '/p1/specs': fine('/p1/specs', { t: 'y', size: 'L', colour: 'blue' }),
      }),
    );
    expect(results(scene.journal)).toMatchObject([
      { rows: [{ key: null, row: { t: 'x', size: 'L', colour: 'red' } }] },
    ]);
  });

  describe('of a page without a required field', () => {
    const specs = `${SHOP}/p1/specs`;

    it('may contain it', async () => {
      const scene = await crawl(
        1,
        answers({
          '/p1': incomplete({ t: 'x', price: null }, ['price'], [specs]),
          '/p1/specs': incomplete({ t: null, price: 5 }, ['t']),
        }),
      );
      expect(urls(scene)).toEqual(['p1', 'p1/specs']);
      expect(results(scene.journal)).toMatchObject([
        { outcome: 'stored', url: `${SHOP}/p1`, rows: [{ key: null, row: { t: 'x', price: 5 } }] },
      ]);
      expect(scene.queue.state.incident).toBeNull();
    });

    it('fail the product when none has it', async () => {
      const scene = await crawl(
        1,
        answers({
          '/p1': incomplete({ t: 'x', price: null, size: null }, ['price'], [specs]),
          '/p1/specs': incomplete({ t: 'x', price: null, size: 'L' }, ['price']),
        }),
      );
      expect(results(scene.journal)).toMatchObject([
        { outcome: 'failed', reason: 'parse', detail: expect.stringContaining('price') },
      ]);
    });

    it.each<[string, PageResult]>([
      ['has no value at all', { ...odd(), ...withLinks([`${SHOP}/p1/specs`]) }],
      ['is a ban page', { ...shell, ...withLinks([`${SHOP}/p1/specs`]) }],
    ])('are not requested when that page %s', async (_what, first) => {
      const scene = await crawl(1, answers({ '/p1': first, '/p1/specs': fine() }));
      expect(urls(scene).filter((url) => url !== 'p1')).toEqual([]);
      expect(outcomes(scene.journal).filter((outcome) => outcome !== 'p1 parse')).toEqual([]);
    });

    it('are followed only while they add something', async () => {
      const site: Site = (path) =>
        incomplete({ t: 'x', price: null }, ['price'], [`${SHOP}/p1?page=${Number(path.split('=')[1] ?? 1) + 1}`]);
      const scene = await crawl(1, site, { ms: 200_000 });
      expect(new Set(urls(scene))).toEqual(new Set(['p1', 'p1?page=2']));
      expect(outcomes(scene.journal)).toEqual(['p1 parse']);
    });

    it.each<[string, PageResult, string]>([
      ['that are bans stop the crawl', refused(429), ''],
      ['that are unavailable fail the product with that reason', refused(500), 'p1 http-status'],
    ])('%s', async (_what, second, outcome) => {
      const first = incomplete({ t: 'x', price: null }, ['price'], [specs]);
      const scene = await crawl(1, answers({ '/p1': first, '/p1/specs': second }));
      expect(outcomes(scene.journal).join()).toBe(outcome);
      expect(scene.queue.state.incident?.verdict ?? '').toBe(outcome === '' ? 'banned' : '');
    });

    it('prove that the address is served, like a canary page', async () => {
      const scene = await crawl(4, (path) => {
        if (path === '/p2') return refused(403);
        const id = path.split('/')[1]!;
        return path.endsWith('/specs')
          ? incomplete({ t: null, price: 5 }, ['t'])
          : incomplete({ t: 'x', price: null }, ['price'], [`${SHOP}/${id}/specs`]);
      });
      expect(outcomes(scene.journal).sort()).toEqual(['p1 stored', 'p2 http-status', 'p3 stored', 'p4 stored']);
      expect(scene.queue.state.incident).toBeNull();
    });
  });

  it('that are gone hold the product until it is proven', async () => {
    let served = 0;
    const first = (path: string) => records([{ key: path, row: { t: path } }], [`${SHOP}${path}-2`]);
    const second = (path: string) => records([{ key: path, row: { t: path } }]);
    const scene = await crawl(3, (path) =>
      ++served > 3 ? notFound : path.endsWith('-2') ? second(path) : first(path),
    );
    // p2's second page and all after it are a ban by 404: p2 would have lost the rows of that page.
    expect(urls(scene)).toEqual(['p1', 'p1-2', 'p2', 'p2-2', 'p3', 'p1']);
    expect(outcomes(scene.journal)).toEqual(['p1 stored']);
    expect(scene.queue.state.incident?.verdict).toBe('suspect');
    scene.incidents.decide('banned');
    expect(scene.queue.state.items.count('pending')).toBe(2);
  });

  it('that are gone prove the product held before: at most one product is held with its rows', async () => {
    const site: Site = (path) =>
      path.endsWith('-2') ? notFound : records([{ key: path, row: { t: path } }], [`${SHOP}${path}-2`]);
    const scene = await crawl(4, site, { ms: 7_500 });
    expect(urls(scene)).toHaveLength(8);
    expect(scene.queue.state.items.count('held')).toBe(1);
    expect(outcomes(scene.journal)).toEqual(['p1 stored', 'p2 stored', 'p3 stored']);
    await scene.run(60_000);
    expect(urls(scene).slice(8)).toEqual(['p3']);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 4, pending: 0, canaries: 1 });
  });

  describe('under site.follow', () => {
    const chain: Site = (path) => {
      const page = Number(/page=(\d)/.exec(path)?.[1] ?? 1);
      return records([{ key: `${page}`, row: { t: path } }], [`${SHOP}/p1?page=${page + 1}`, `${SHOP}/ads/${page}`]);
    };
    const requested = async (options: SceneOptions): Promise<string[]> => urls(await crawl(1, chain, options));

    it('are at most `depth` links from the product', async () => {
      expect(await requested({ follow: { depth: 1 } })).toEqual(['p1', 'p1?page=2', 'ads/1']);
      expect(await requested({ follow: { depth: 0 } })).toEqual(['p1']);
    });

    it('are not those of a page whose X-Robots-Tag says nofollow, where that is obeyed', async () => {
      const pages = (header: string) =>
        answers({
          '/p1': {
            ...fine('/p1', { t: 'x' }, [`${SHOP}/p1?page=2`]),
            reply: reply('/p1', 200, { headers: { 'x-robots-tag': header } }),
          },
          '/p1?page=2': fine('/p1?page=2', { t: 'y' }),
        });
      const after = async (header: string, options: SceneOptions) => {
        const scene = await crawl(1, pages(header), options);
        expect(outcomes(scene.journal)).toEqual(['p1 stored']);
        return urls(scene);
      };
      const obey: SceneOptions = { follow: { nofollow: 'obey' } };
      expect(await after('noindex, nofollow', obey)).toEqual(['p1']);
      expect(await after('otherbot: nofollow', obey)).toEqual(['p1', 'p1?page=2']);
      expect(await after('nofollow', {})).toEqual(['p1', 'p1?page=2']);
    });

    it('match `allow`, and are not in `deny`', async () => {
      expect(await requested({ follow: { allow: ['^/p1\\?page=[23]'] } })).toEqual(['p1', 'p1?page=2', 'p1?page=3']);
      expect(await requested({ deny: ['/ads/', '/p1?page=3'] })).toEqual(['p1', 'p1?page=2']);
    });
  });

  it('fail the product when their rows together are too large', async () => {
    const long = 'x'.repeat(60_000);
    const site: Site = (path) => {
      const page = Number(path.split('=')[1] ?? 1);
      const rows = Array.from({ length: 50 }, (_, i) => ({ key: `${page}-${i}`, row: { t: long } }));
      return records(rows, page < 10 ? [`${SHOP}/p1?page=${page + 1}`] : []);
    };
    const scene = await crawl(1, site);
    expect(scene.starts).toHaveLength(3);
    expect(outcomes(scene.journal)).toEqual(['p1 too-large']);
    expect(scene.queue.state.incident).toBeNull();
  });

  it('are limited to twenty per product', async () => {
    const site: Site = (path) => fine(path, { t: 'x' }, [`${SHOP}/p1?page=${Number(path.split('=')[1] ?? 1) + 1}`]);
    const scene = await crawl(1, site, { ms: 200_000 });
    expect(scene.starts).toHaveLength(20);
    expect(scene.end()).toBe('finished');
  });

  it.each<[string, PageResult, string]>([
    ['that are bans stop the crawl', refused(429), ''],
    ['that are unavailable fail the product, which is retried', refused(500), 'p1 http-status'],
    ['that are gone are the end of the list', notFound, 'p1 stored'],
  ])('%s', async (_what, second, outcome) => {
    const scene = await crawl(
      1,
      answers({ '/p1': fine('/p1', { t: 'x' }, [`${SHOP}/p1?page=2`]), '/p1?page=2': second }),
    );
    expect(outcomes(scene.journal).join()).toBe(outcome);
    expect(scene.queue.state.incident?.verdict ?? '').toBe(outcome === '' ? 'banned' : '');
  });
});

describe('F30: robots.txt', () => {
  const rules = (pattern: string, version = 'v1') =>
    robots({ version, access: 'rules', rules: [{ allow: false, pattern }] });

  it('blocks all requests before the first policy', async () => {
    const scene = await crawl(1, undefined, { sealed: false, robots: 'respect' });
    expect(scene.starts).toEqual([]);
    await scene.follow({ robots: robots() });
    await scene.run(1_000);
    expect(urls(scene)).toEqual(['p1']);
  });

  it('that is unavailable makes products wait, not fail', async () => {
    const w = await world(3, false);
    const scene = await createScene(w, undefined, { robots: 'respect' });
    await scene.follow({ robots: robots() });
    await scene.run(500);
    await scene.follow({ robots: robots({ version: 'v2', access: 'none' }) });
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1']);
    expect(w.queue.progress(null)).toMatchObject({ stored: 1, failed: 0, pending: 2 });
    await scene.follow({ robots: robots({ version: 'v3' }) });
    await scene.run(10_000);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3']);
  });

  it('fails forbidden products without a request, even when it changes during the crawl', async () => {
    const w = await world(6, false);
    const scene = await createScene(w, undefined, { robots: 'respect' });
    await scene.follow({ robots: robots() });
    await scene.run(1_500);
    await scene.follow({ robots: rules('/p', 'v2'), sealed: true });
    await scene.run(20_000);
    expect(urls(scene)).toEqual(['p1', 'p2']);
    expect(outcomes(w.journal)).toEqual(['p1 stored', 'p2 stored', 'p3 robots', 'p4 robots', 'p5 robots', 'p6 robots']);
    expect(scene.end()).toBe('finished');
  });

  it('applies to redirects and further pages', async () => {
    const w = await world(2, false);
    const site = answers({ '/p1': toElsewhere('/secret/1'), '/p2': fine('/p2', { t: 'x' }, [`${SHOP}/secret/2`]) });
    const scene = await createScene(w, site, { robots: 'respect' });
    await scene.follow({ robots: rules('/secret/'), sealed: true });
    await scene.run(20_000);
    expect(urls(scene)).toEqual(['p1', 'p2']);
    expect(outcomes(w.journal)).toEqual(['p1 robots', 'p2 stored']);
  });

  describe('of one host does not apply to another', () => {
    const reviews = 'http://reviews.shop.example/1';
    const policy = { robots: robots(), sealed: true };

    it('so further pages there are skipped, but not on www. or https', async () => {
      const w = await world(1, false);
      const behind = ['http://www.shop.example/2', 'https://shop.example/3'];
      const others = [reviews, 'http://shop.example:8080/4'];
      const site: Site = (path) => (path === '/p1' ? fine(path, { t: 'x' }, [...others, ...behind]) : fine(path));
      const scene = await createScene(w, site, { robots: 'respect' });
      await scene.follow(policy);
      await scene.run(20_000);
      expect(urls(scene)).toEqual(['p1', ...behind]);
      expect(outcomes(w.journal)).toEqual(['p1 stored']);
    });

    describe('unless it is one of site.follow.hosts', () => {
      const follow = { hosts: ['http://reviews.shop.example', 'http://other.example:8080'] };
      const other = 'http://other.example:8080/list/2';
      const linked: Site = (path) =>
        path === '/p1' ? fine(path, { t: 'x' }, [reviews, other, 'http://other.example/3']) : fine(path);
      const further = (...policies: RobotsPolicy[]) => ({
        robots: robots({ crawlDelayMs: 5_000, further: policies }),
        sealed: true,
      });
      const crawlWith = async (orders: Parameters<Scene['follow']>[0], site = linked, options: SceneOptions = {}) => {
        const w = await world(2, false);
        const scene = await createScene(w, site, { robots: 'respect', follow, ...options });
        await scene.follow(orders);
        await scene.run(60_000);
        return { w, scene, requested: urls(scene), ended: outcomes(w.journal) };
      };

      it('so its pages are requested in the one pace, with the longest Crawl-delay', async () => {
        const { scene, requested, ended } = await crawlWith(further(robots(), rules('/secret')));
        expect(requested).toEqual(['p1', reviews, other, 'p2']);
        expect(Math.min(...gaps(scene.starts))).toBeGreaterThanOrEqual(5_000);
        expect(ended).toEqual(['p1 stored', 'p2 stored']);
      });

      it('each by its own robots.txt', async () => {
        const { requested, ended } = await crawlWith(further(robots(), rules('/list')));
        expect(requested).toEqual(['p1', reviews, 'p2']);
        expect(ended).toEqual(['p1 stored', 'p2 stored']);
        const unread = await crawlWith(further(robots({ access: 'none' }), robots()));
        expect(unread.requested).toEqual(['p1', other, 'p2']);
        // Of an earlier main server, which has read none.
        expect((await crawlWith({ robots: robots(), sealed: true })).requested).toEqual(['p1', 'p2']);
      });

      it('a ban there bans the address', async () => {
        const site: Site = (path, ...rest) => (path === reviews ? refused(429) : linked(path, ...rest));
        const { w } = await crawlWith(further(robots(), robots()), site);
        expect(w.queue.state.incident).not.toBeNull();
      });

      it('and its pages are under allow and deny, too', async () => {
        const denied = await crawlWith(further(robots(), robots()), linked, {
          deny: ['http://other.example:8080/list/'],
        });
        expect(denied.requested).toEqual(['p1', reviews, 'p2']);
        const allowed = await crawlWith(further(robots(), robots()), linked, {
          follow: { ...follow, allow: ['^/list/'] },
        });
        expect(allowed.requested).toEqual(['p1', other, 'p2']);
      });
    });

    it('so a redirect there is not followed', async () => {
      const w = await world(1, false);
      const site: Site = (path) => (path === '/p1' ? toElsewhere(reviews) : fine(path));
      const canaries = [{ id: 'c1', fields: { t: 'x' } }];
      const scene = await createScene(w, site, { robots: 'respect', canaries });
      await scene.follow(policy);
      await scene.run(20_000);
      expect(urls(scene)).toEqual(['p1', 'c1']);
      expect(results(w.journal)).toMatchObject([{ reason: 'redirect', evidence: { rule: 'redirect-elsewhere' } }]);
    });

    it('which does not matter where it is ignored', async () => {
      const site: Site = (path) =>
        path === '/p1' ? fine(path, { t: 'x' }, [reviews]) : path === '/p2' ? toElsewhere(reviews) : fine(path);
      const scene = await crawl(2, site);
      expect(urls(scene)).toEqual(['p1', reviews, 'p2', reviews]);
      expect(outcomes(scene.journal)).toEqual(['p1 stored', 'p2 stored']);
    });
  });

  it('is known to the next process', async () => {
    const w = await world(2, false);
    await w.queue.follow({ ...(await import('./fakes.ts')).orders(), robots: rules('/p1') });
    const again = createQueue({ journal: w.journal, clock: w.clock });
    const scene = await createScene(again, undefined, { robots: 'respect' });
    await scene.run(20_000);
    expect(urls(scene)).toEqual(['p2']);
  });
});

describe('render: auto', () => {
  const needsBrowser: Site = (path, _tries, via) => (via === 'http' ? odd('<div id=root></div>') : fine(path));

  it('uses the browser where HTTP lacks the required fields, at the pace', async () => {
    const scene = await crawl(2, needsBrowser, { render: 'auto' });
    expect(scene.starts.map((s) => `${s.url} ${s.via}`)).toEqual(['p1 http', 'p1 browser', 'p2 http', 'p2 browser']);
    expect(Math.min(...gaps(scene.starts))).toBeGreaterThanOrEqual(1_010);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 2, rendered: 2, requests: 4 });
  });

  it('learns to use the browser first', async () => {
    const scene = await crawl(8, needsBrowser, { render: 'auto' });
    expect(scene.starts.slice(10).map((s) => s.via)).toEqual(['browser', 'browser', 'browser']);
    expect(scene.queue.progress(null)).toMatchObject({ stored: 8, rendered: 8 });
  });

  it('does not render ban pages', async () => {
    const scene = await crawl(2, () => shell, { render: 'auto' });
    expect(scene.starts.map((s) => s.via)).toEqual(['http', 'http']);
  });

  it('treats the browser page as odd when the fields are missing there too', async () => {
    const scene = await crawl(1, () => odd(), { render: 'auto' });
    expect(outcomes(scene.journal)).toEqual(['p1 parse']);
  });
});

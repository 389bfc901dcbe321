/** Cookies in the crawl: shops that answer only once they get them back, and what a ban leaves of them. */
import { describe, expect, it } from 'vitest';
import type { PageResult } from '../../../crawl-api/fetch/page-result.ts';
import {
  crawl,
  createScene,
  fine,
  gaps,
  odd,
  outcomes,
  refused,
  results,
  type Scene,
  type SceneOptions,
  setting,
  SHOP,
  type Site,
  toElsewhere,
  urls,
} from './crawl-scene.ts';
import { createGranted, createQueue, robots } from './fakes.ts';

type Answer = ReturnType<Site>;

/** A site that knows its visitors by cookie: `door` answers those that have none of this name. */
const behind =
  (name: string, door: (path: string) => Answer, inside: (path: string) => Answer = named): Site =>
  (path, _tries, _via, { cookie }) =>
    cookie.includes(`${name}=`) ? inside(path) : door(path);

/** A page whose row names its path. */
const named = (path: string): PageResult => fine(path, { t: path });

const rowsOf = ({ journal }: Awaited<ReturnType<typeof crawl>>): unknown[] =>
  results(journal).map((result) => (result.outcome === 'stored' ? result.rows[0]?.row.t : result.outcome));

const isPaced = (scene: Scene): boolean => Math.min(...gaps(scene.starts)) >= 1_010;

describe('a shop that wants its cookie back', () => {
  it('and redirects to the same URL, is asked twice once, and then once for each product', async () => {
    const site = behind('s', (path) => setting(toElsewhere(path), 's=1; Path=/'));
    const scene = await crawl(3, site);
    expect(urls(scene)).toEqual(['p1', 'p1', 'p2', 'p3']);
    expect(rowsOf(scene)).toEqual(['/p1', '/p2', '/p3']);
    expect(scene.queue.state.requests).toBe(4);
    expect(isPaced(scene)).toBe(true);
  });

  it('and leads over another page back to the product', async () => {
    const site = behind('s', (path) =>
      path === '/gate' ? setting(toElsewhere('/p1'), 's=1; Path=/') : toElsewhere('/gate'),
    );
    const scene = await crawl(1, site);
    expect(urls(scene)).toEqual(['p1', 'gate', 'p1']);
    expect(rowsOf(scene)).toEqual(['/p1']);
  });

  it('in two steps at the same URL', async () => {
    const second = behind('b', (path) => setting(toElsewhere(path), 'b=1'));
    const site: Site = (path, tries, via, sent) =>
      sent.cookie.includes('a=1') ? second(path, tries, via, sent) : setting(toElsewhere(path), 'a=1');
    expect(rowsOf(await crawl(2, site))).toEqual(['/p1', '/p2']);
  });

  it.each<[string, PageResult]>([
    ['whose page has all required fields', fine('/consent', { t: 'Before you continue' })],
    ['whose page has no required field', odd('<p>Before you continue</p>')],
  ])('after a consent page %s', async (_what, wall) => {
    const site = behind('ok', (path) =>
      path.startsWith('/consent') ? setting(wall, 'ok=1; Path=/') : toElsewhere(`/consent?return=${path}`),
    );
    const scene = await crawl(3, site);
    expect(urls(scene)).toEqual(['p1', 'consent?return=/p1', 'p1', 'p2', 'p3']);
    expect(rowsOf(scene)).toEqual(['/p1', '/p2', '/p3']);
    expect(isPaced(scene)).toBe(true);
  });

  it('after a page for consent, and then one for the country', async () => {
    const country = behind('land', (path) =>
      path === '/country' ? setting(fine(path), 'land=JP; Path=/') : toElsewhere('/country'),
    );
    const site: Site = (path, tries, via, sent) =>
      path === '/consent'
        ? setting(fine(path), 'ok=1; Path=/')
        : sent.cookie.includes('ok=1')
          ? country(path, tries, via, sent)
          : toElsewhere('/consent');
    expect(rowsOf(await crawl(2, site))).toEqual(['/p1', '/p2']);
  });

  it.each([
    ['its front page', '/'],
    ['another site', 'http://countries.example/'],
    ['a page that robots.txt forbids', '/session'],
  ])('and first leads to %s, which is no ban then', async (_what, to) => {
    const site = behind('sid', () => setting(toElsewhere(to), 'sid=7; Path=/'));
    const world = await createGranted(3, {
      sealed: true,
      robots: robots({ access: 'rules', rules: [{ allow: false, pattern: '/session' }] }),
    });
    const scene = await createScene(world, site, { robots: 'respect', canaries: [{ id: 'c1', fields: {} }] });
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'p1', 'p2', 'p3']);
    expect(scene.incidents.describe()).toBeNull();
  });

  it('in each of its domains, which have a jar each', async () => {
    const productUrl = [
      { url: `${SHOP}/{id}`, weight: 1 },
      { url: 'http://m.shop.example/{id}', weight: 1 },
    ];
    const first = new Set<string>();
    const site: Site = (path, _tries, _via, { cookie }) => {
      const domain = path.startsWith('http') ? 'm' : 'www';
      if (cookie.includes('s=1')) return named(path);
      first.add(domain);
      return setting(toElsewhere(path), 's=1; Path=/; Domain=shop.example');
    };
    const scene = await crawl(8, site, { productUrl });
    expect(first).toEqual(new Set(['m', 'www']));
    expect(scene.starts).toHaveLength(10);
  });

  it('also gets it from canary pages, from the browser, and from HTTP after the browser', async () => {
    const vias: string[] = [];
    const site: Site = (path, _tries, via, { cookie }) => {
      vias.push(`${via} ${cookie}`);
      if (!cookie.includes('s=1')) return setting(toElsewhere(path), 's=1; Path=/');
      if (path === '/p2') return refused(403);
      return via === 'http' && path === '/p1' ? odd() : named(path);
    };
    const scene = await crawl(3, site, { render: 'auto' });
    expect(vias.slice(0, 5)).toEqual(['http ', 'http s=1', 'browser s=1', 'http s=1', 'http s=1']);
    expect(urls(scene).slice(0, 6)).toEqual(['p1', 'p1', 'p1', 'p2', 'p1', 'p1']);
    expect(outcomes(scene.journal)).toEqual(['p1 stored', 'p3 stored', 'p2 http-status']);
  });
});

describe('an ordinary shop', () => {
  it('with a cookie on every page gets no further request', async () => {
    const scene = await crawl(5, (path) => setting(named(path), `visit=${path}; Path=/`, `${path.slice(1)}=seen`));
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
  });

  it('that redirects to the full name of a product is asked once more, for all products together', async () => {
    const site: Site = (path) =>
      path.endsWith('-tea') ? named(path) : setting(toElsewhere(`${path}-tea`), 'sid=1; Path=/');
    const scene = await crawl(3, site);
    expect(urls(scene)).toEqual(['p1', 'p1-tea', 'p1', 'p1-tea', 'p2', 'p2-tea', 'p3', 'p3-tea']);
  });

  it('whose cookies have a new name each time is asked again for few products only', async () => {
    let n = 0;
    const site: Site = (path) =>
      path.endsWith('-tea') ? named(path) : setting(toElsewhere(`${path}-tea`), `visit${n++}=1; Path=/`);
    const scene = await crawl(60, site, { ms: 600_000 });
    expect(outcomes(scene.journal)).toHaveLength(60);
    // Two rounds more for each product, until 50 names are known.
    expect(scene.starts).toHaveLength(2 * (60 + 50));
  });
});

describe('a redirect in a circle', () => {
  const canaries = [{ id: 'c1', fields: {} }];
  const exceptCanary =
    (site: Site): Site =>
    (path, ...rest) =>
      path === '/c1' ? fine(path) : site(path, ...rest);
  const failed = async (site: Site, options: SceneOptions = {}) => {
    const scene = await crawl(1, exceptCanary(site), { canaries, ...options });
    return { scene, result: results(scene.journal)[0] };
  };

  it('with another value of the same cookie each time ends after five redirects', async () => {
    let n = 0;
    const { scene, result } = await failed((path) => setting(toElsewhere(path), `s=${n++}`));
    expect(urls(scene)).toEqual([...Array<string>(6).fill('p1'), 'c1']);
    expect(result).toMatchObject({
      outcome: 'failed',
      reason: 'redirect',
      evidence: { rule: 'redirect-loop', cookie: 's' },
    });
  });

  it.each<[string, SceneOptions, string]>([
    ['that may not be sent back', { keepCookies: false }, 's=secret; Path=/'],
    ['that is not valid for the shop', {}, 's=secret; Domain=other.example'],
  ])('because of a cookie %s names it, without its value', async (_what, options, line) => {
    const { scene, result } = await failed((path) => setting(toElsewhere(path), line), options);
    expect(urls(scene)).toEqual(['p1', 'c1']);
    expect(result).toMatchObject({
      detail: `302 to ${SHOP}/p1 (redirect-loop, the site sets the cookie s)`,
      evidence: { rule: 'redirect-loop', cookie: 's' },
    });
    expect(JSON.stringify(scene.journal.records)).not.toContain('secret');
  });

  it('without a cookie names none', async () => {
    const { result } = await failed((path) => toElsewhere(path));
    expect(result).toMatchObject({ detail: `302 to ${SHOP}/p1 (redirect-loop)` });
  });
});

describe('a ban', () => {
  it.each(['/verify', '/login'])('by a redirect to %s is not tried with its cookies', async (to) => {
    const site: Site = (path) => (path === '/p2' ? setting(toElsewhere(to), 's=1; Path=/') : fine(path));
    expect(urls(await crawl(2, site, { ms: 4_000 }))).toEqual(['p1', 'p2', 'p1']);
  });

  it('leaves none of its cookies, and those before it stay', async () => {
    const cookies: string[] = [];
    const site: Site = (path, _tries, _via, { cookie }) => {
      cookies.push(`${path} ${cookie}`);
      return path === '/p2'
        ? setting(refused(403), 'blocked=1; Path=/', 's=bad; Path=/')
        : setting(fine(path), 's=1; Path=/');
    };
    await crawl(3, site);
    expect(cookies).toEqual(['/p1 ', '/p2 s=1', '/p1 s=1', '/p3 s=1', '/p2 s=1', '/p3 s=1']);
  });

  it('by a redirect leaves none of the redirects before it', async () => {
    const cookies: string[] = [];
    const site: Site = (path, _tries, _via, { cookie }) => {
      cookies.push(`${path} ${cookie}`);
      if (path === '/p2') return setting(toElsewhere('/step'), 'a=1; Path=/');
      return path === '/step' ? setting(toElsewhere('/verify'), 'b=1; Path=/') : fine(path);
    };
    await crawl(2, site, { ms: 10_000 });
    expect(cookies.slice(0, 4)).toEqual(['/p1 ', '/p2 ', '/step a=1', '/p1 ']);
  });

  it('empties the jar, and so does a restart of the process', async () => {
    const cookies: string[] = [];
    let isBanned = false;
    const site: Site = (path, _tries, _via, { cookie }) => {
      cookies.push(cookie);
      return isBanned ? refused(429) : setting(fine(path), 's=1; Path=/');
    };
    const world = await createGranted(20);
    const scene = await createScene(world, site, { coolDownMs: 60_000 });
    await scene.run(2_500);
    isBanned = true;
    await scene.run(2_000);
    expect(scene.incidents.describe()).toMatchObject({ verdict: 'banned' });
    isBanned = false;
    cookies.length = 0;
    await scene.run(64_000);
    expect(cookies.slice(0, 2)).toEqual(['', 's=1']);
    scene.stop.abort();
    await scene.run(0);
    cookies.length = 0;
    const again = await createScene(createQueue({ journal: world.journal, clock: world.clock }), site);
    await again.run(5_000);
    expect(cookies.slice(0, 2)).toEqual(['', 's=1']);
  });
});

/** Further pages that a product is stored without. */
import { describe, expect, it } from 'vitest';
import { compileRowPages } from '../../../crawl-api/extract/row-pages.ts';
import type { PageResult } from '../../../crawl-api/fetch/page-result.ts';
import type { KeyedRow, Row } from '../../../shared/domain/mapping.ts';
import {
  broken,
  crawl,
  createScene,
  fine,
  notFound,
  odd,
  outcomes,
  refused,
  results,
  SHOP,
  type SceneOptions,
  type Site,
  toElsewhere,
  urls,
} from './crawl-scene.ts';
import { createGranted, robots } from './fakes.ts';

const ONE = `${SHOP}/p1`;
const next = (page: number): string => `${ONE}?page=${page}`;
const record = (key: string): KeyedRow => ({ key, row: { t: key } });

const records = (keys: string[], links: string[] = []): PageResult => ({
  ...(fine() as Extract<PageResult, { kind: 'page' }>),
  extraction: { rows: keys.map(record), missing: null, links },
});

const incomplete = (row: Row, missing: string, links: string[] = []): PageResult => ({
  ...(odd() as Extract<PageResult, { kind: 'page' }>),
  extraction: { rows: null, missing, links, partial: { row, missing: [missing] } },
});

const answers =
  (pages: Record<string, PageResult>): Site =>
  (path) =>
    pages[path] ?? notFound;

const anyPage = (): 'any' => 'any';
const MANY: SceneOptions = { rowPages: anyPage };

/** Crawls products under rules of robots.txt. */
async function crawlUnder(forbidden: string[], site: Site, options: SceneOptions = {}, products = 1) {
  const w = await createGranted(products, { sealed: false });
  const scene = await createScene(w, site, { robots: 'respect', ...options });
  const rules = forbidden.map((pattern) => ({ allow: false, pattern }));
  await scene.follow({ robots: robots({ access: 'rules', rules }), sealed: true });
  await scene.run(300_000);
  return { requested: urls(scene), stored: results(w.journal), incident: w.queue.state.incident };
}

describe('a further page that robots.txt forbids', () => {
  it('is left out, and the product is stored', async () => {
    const site = answers({ '/p1': fine('/p1', { t: 'x' }, [`${SHOP}/secret/1`, `${SHOP}/secret/2`]) });
    const { requested, stored } = await crawlUnder(['/secret/'], site);
    expect(requested).toEqual(['p1']);
    expect(stored).toMatchObject([
      { outcome: 'stored', leftOut: { robots: { pages: 2, example: `${SHOP}/secret/1` } } },
    ]);
    expect(stored[0]).not.toHaveProperty('partial');
  });

  it('makes a product of rows partial', async () => {
    const site = answers({ '/p1': records(['a'], [next(2)]), '/p1?page=2': records(['b'], [next(3)]) });
    const { requested, stored } = await crawlUnder(['/p1?page=3'], site, MANY);
    expect(requested).toEqual(['p1', 'p1?page=2']);
    expect(stored).toMatchObject([
      {
        outcome: 'stored',
        rows: [record('a'), record('b')],
        leftOut: { robots: { pages: 1, example: next(3) } },
        partial: true,
      },
    ]);
  });

  it('is no part of the limit', async () => {
    const site = answers({ '/p1': records(['a'], [next(2), next(3)]), '/p1?page=3': records(['c']) });
    const { requested, stored } = await crawlUnder(['/p1?page=2'], site, { ...MANY, maxPages: 2 });
    expect(requested).toEqual(['p1', 'p1?page=3']);
    expect(stored).toMatchObject([{ leftOut: { robots: { pages: 1 } } }]);
  });

  it('fails the product when a required field stays empty for it, without suspicion', async () => {
    const site: Site = (path) => incomplete({ t: 'x', price: null }, 'price', [`${SHOP}/secret${path}`]);
    const { incident, stored, requested } = await crawlUnder(['/secret/'], site, {}, 6);
    expect(stored[0]).toMatchObject({
      outcome: 'failed',
      reason: 'robots',
      detail: `the required field price has no value: robots.txt does not allow ${SHOP}/secret/p1`,
    });
    expect(stored).toHaveLength(6);
    expect(requested).toHaveLength(6);
    expect(incident).toBeNull();
  });

  it('may be behind a redirect, whose reply may be a ban: the product is held until that is disproved', async () => {
    const site: Site = (path) =>
      path.startsWith('/more') ? toElsewhere('/secret/1') : records([path], [`${SHOP}/more${path}`]);
    const w = await createGranted(1, { sealed: true });
    const scene = await createScene(w, site, { ...MANY, robots: 'respect' });
    await scene.follow({ robots: robots({ access: 'rules', rules: [{ allow: false, pattern: '/secret/' }] }) });
    await scene.run(1_500);
    expect(w.queue.state.items.count('held')).toBe(1);
    await scene.run(60_000);
    expect(urls(scene)).toEqual(['p1', 'more/p1', 'p1']);
    expect(results(w.journal)).toMatchObject([{ outcome: 'stored', partial: true, leftOut: { robots: { pages: 1 } } }]);
  });
});

describe('a further page on another host', () => {
  const foreign = 'http://elsewhere.example/reviews/1';
  const reviews = 'http://reviews.shop.example/1';
  const crawled = async (links: string[], options: SceneOptions) => {
    const site = answers({ '/p1': records(['a'], links) });
    return (await crawlUnder(['/never'], site, options)).stored;
  };

  it('is left out and counted; with rows it makes the product partial on a subdomain of the site', async () => {
    const [result] = await crawled([reviews], MANY);
    expect(result).toMatchObject({ leftOut: { elsewhere: { pages: 1, example: reviews } }, partial: true });
  });

  it('is no page of the product on another site', async () => {
    const [result] = await crawled([foreign], MANY);
    expect(result).toMatchObject({ leftOut: { elsewhere: { pages: 1, example: foreign } } });
    expect(result).not.toHaveProperty('partial');
  });

  it('is one on another site if a section of the mapping names it', async () => {
    const section = {
      name: 's',
      urlParsers: [],
      fields: [],
      rows: { each: { type: 'css', selector: 'li' } as const, key: 'k', empty: null },
    };
    const rowPages = await compileRowPages({
      pages: [
        { ...section, urlPatterns: ['//shop\\.example/'] },
        { ...section, urlPatterns: ['//elsewhere\\.example/reviews/'] },
      ],
    });
    expect(await crawled([foreign], { rowPages })).toMatchObject([{ partial: true }]);
    const [none] = await crawled(['http://elsewhere.example/terms'], { rowPages });
    expect(none).not.toHaveProperty('partial');
  });

  it('and stays unsaid where the user does not want it', async () => {
    const [result] = await crawled([foreign, reviews], { ...MANY, deny: ['http://reviews.shop.example/', foreign] });
    expect(result).not.toHaveProperty('leftOut');
  });

  it('is left out when a redirect leads there, and the product is held: it may be a ban', async () => {
    const site: Site = (path) =>
      path.endsWith('-2') ? toElsewhere('http://check.example/') : records([path], [`${SHOP}${path}-2`]);
    const scene = await crawl(3, site, MANY);
    expect(scene.queue.state.incident).toBeNull();
    expect(urls(scene)).toEqual(['p1', 'p1-2', 'p2', 'p2-2', 'p3', 'p3-2', 'p2']);
    expect(results(scene.journal)).toHaveLength(3);
    expect(results(scene.journal)[0]).toMatchObject({ leftOut: { elsewhere: { example: `${ONE}-2` } }, partial: true });
  });
});

describe('a further page that redirects to what the user denies', () => {
  it('is left out', async () => {
    const site = answers({ '/p1': records(['a'], [next(2)]), '/p1?page=2': toElsewhere('/private/2') });
    const { stored } = await crawlUnder(['/never'], site, { ...MANY, deny: ['/private/'] });
    expect(stored).toMatchObject([{ outcome: 'stored', leftOut: { denied: { pages: 1 } }, partial: true }]);
  });
});

describe('further pages beyond the limit', () => {
  const chain =
    (last: number): Site =>
    (path) => {
      const page = Number(path.split('=')[1] ?? 1);
      return records([`${page}`], page === last ? [] : [next(page + 1)]);
    };

  it('are left out, and a product of rows is partial', async () => {
    const scene = await crawl(1, chain(40), { ...MANY, ms: 200_000 });
    expect(results(scene.journal)).toMatchObject([
      { rows: { length: 20 }, leftOut: { limit: { pages: 1, example: next(21) } }, partial: true },
    ]);
    expect(scene.queue.state.incident).toBeNull();
  });

  it('begin where site.pages_per_product says', async () => {
    const [whole] = results((await crawl(1, chain(36), { ...MANY, maxPages: 36, ms: 200_000 })).journal);
    expect(whole).toMatchObject({ rows: { length: 36 } });
    expect(whole).not.toHaveProperty('leftOut');
    const [cut] = results((await crawl(1, chain(4), { ...MANY, maxPages: 3 })).journal);
    expect(cut).toMatchObject({ rows: { length: 3 }, partial: true });
  });

  it('are counted one by one, and each once', async () => {
    const links = Array.from({ length: 30 }, (_, i) => next(i + 2));
    const scene = await crawl(1, () => records(['a'], links), { ...MANY, ms: 200_000 });
    expect(urls(scene)).toHaveLength(20);
    expect(results(scene.journal)).toMatchObject([{ leftOut: { limit: { pages: 11, example: next(21) } } }]);
  });

  it('do not hide pages that may be followed behind many that may not', async () => {
    const foreign = Array.from({ length: 2_000 }, (_, i) => `http://elsewhere.example/${i}`);
    const site = answers({ '/p1': records(['a'], [...foreign, next(2)]), '/p1?page=2': records(['b'], foreign) });
    expect(results((await crawl(1, site, MANY)).journal)).toMatchObject([
      { rows: { length: 2 }, leftOut: { elsewhere: { pages: 1_000 } } },
    ]);
  });
});

describe('a further page that is gone', () => {
  it('is left out: a product of rows is partial, another is not', async () => {
    const site = answers({ '/p1': records(['a'], [next(2)]) });
    const [many] = results((await crawl(1, site, MANY)).journal);
    expect(many).toMatchObject({ outcome: 'stored', leftOut: { gone: { pages: 1, example: next(2) } }, partial: true });
    const one = answers({ '/p1': fine('/p1', { t: 'x' }, [next(2)]) });
    const [result] = results((await crawl(1, one)).journal);
    expect(result).toMatchObject({ outcome: 'stored', leftOut: { gone: { pages: 1 } } });
    expect(result).not.toHaveProperty('partial');
  });
});

it.each<[string, PageResult, string]>([
  ['has failed with 5xx', refused(500), 'p1 http-status'],
  ['was not reached', broken('network'), 'p1 network'],
  ['was too slow', broken('timeout'), 'p1 timeout'],
  ['is a ban', refused(429), ''],
])('a further page that %s decides for the product, as before', async (_what, second, outcome) => {
  const site = answers({ '/p1': records(['a'], [next(2)]), '/p1?page=2': second });
  const scene = await crawl(1, site, MANY);
  expect(outcomes(scene.journal).join()).toBe(outcome);
  expect(scene.queue.state.incident?.verdict ?? '').toBe(outcome === '' ? 'banned' : '');
});

describe('the validators of a page (site.conditional)', () => {
  const named = (links: string[]) => {
    const page = records(['a'], links) as Extract<PageResult, { kind: 'page' }>;
    page.reply = { ...page.reply, headers: { etag: '"1"' }, bytes: 9 };
    return page;
  };
  const stamped = async (links: string[], options: SceneOptions = {}) =>
    (await crawlUnder(['/secret/'], answers({ '/p1': named(links) }), { ...MANY, ...options })).stored[0];

  it('are not kept of a product that comes without pages: it is not all in that page', async () => {
    expect(await stamped([`${SHOP}/secret/1`])).not.toHaveProperty('page');
    expect(await stamped(['http://reviews.shop.example/'])).not.toHaveProperty('page');
  });

  it('are kept where links lead to other sites', async () => {
    expect(await stamped([])).toHaveProperty('page');
    expect(await stamped(['http://elsewhere.example/'])).toHaveProperty('page');
  });
});

it('a product without pages is not suspected for the usual fields that those have', async () => {
  const whole: Site = (path) => {
    const id = path.split('/')[1]!;
    if (path.endsWith('/specs')) return fine(path, { t: null, size: 'L', colour: 'red', weight: '1 kg' });
    return fine(path, { t: 'x' }, [`${SHOP}/${id}/specs`]);
  };
  const { stored, requested } = await crawlUnder(['/p12/specs'], whole, {}, 12);
  expect(stored).toHaveLength(12);
  expect(stored.at(-1)).toMatchObject({ id: 'p12', outcome: 'stored', attempts: 1 });
  expect(requested).toHaveLength(23);
});

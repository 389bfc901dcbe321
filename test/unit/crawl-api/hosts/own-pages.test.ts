/** Pages one link away from a record, on its own host. */
import { describe, expect, it } from 'vitest';
import type { PageResult } from '../../../../crawl-api/fetch/page-result.ts';
import type { Mapping, PageMapping, Row } from '../../../../shared/domain/mapping.ts';
import { broken, fine, notFound, odd, refused, results, toElsewhere } from '../crawl-scene.ts';
import { type HostScene, type HostSceneOptions, openHostScene, rulesOf } from './host-scene.ts';

const field = (name: string, required = false): PageMapping['fields'][number] => ({
  name,
  steps: [{ type: 'css', selector: `.${name}` }],
  required,
});
const section = (urlPattern: string, fields: PageMapping['fields']): PageMapping => ({
  name: urlPattern,
  urlPatterns: [urlPattern],
  urlParsers: [],
  rows: null,
  fields,
});
const SECTIONS: Mapping = {
  pages: [
    section('/p/', [field('name', true), field('mail'), field('phone')]),
    section('/contact', [field('mail')]),
    section('/imprint', [field('mail'), field('phone')]),
  ],
};
const RECORD = 'https://a.example/p/1';
const CONTACT = 'https://a.example/contact';
const IMPRINT = 'https://a.example/imprint';

const row = (values: Row): Row => ({ name: 'x', mail: null, phone: null, ...values });

async function crawled(
  pages: Record<string, PageResult | ((tries: number) => PageResult)>,
  { records = [RECORD], ms = 600_000, ...options }: HostSceneOptions & { records?: string[]; ms?: number } = {},
): Promise<HostScene> {
  const world = (url: string, tries: number): PageResult => {
    const page = pages[url] ?? notFound;
    return typeof page === 'function' ? page(tries) : page;
  };
  const scene = await openHostScene({
    world,
    sections: SECTIONS,
    ...options,
    site: { follow: { depth: 1 }, ...options.site },
  });
  await scene.give(records, { sealed: true });
  await scene.run(ms);
  return scene;
}

const urls = ({ sent }: HostScene): string[] =>
  sent.map(({ url }) => url).filter((url) => !url.endsWith('/robots.txt'));
const stored = ({ journal }: HostScene) => results(journal);

describe('a record with pages on its own host', () => {
  it('has the values of all of them', async () => {
    const scene = await crawled({
      [RECORD]: fine(RECORD, row({}), [CONTACT, IMPRINT]),
      [CONTACT]: fine(CONTACT, { mail: 'a@a.example' }),
      [IMPRINT]: fine(IMPRINT, { mail: 'b@a.example', phone: '1' }),
    });
    expect(urls(scene)).toEqual([RECORD, CONTACT, IMPRINT]);
    expect(stored(scene)).toMatchObject([
      { outcome: 'stored', rows: [{ row: { name: 'x', mail: 'a@a.example', phone: '1' } }] },
    ]);
    expect(stored(scene)[0]).not.toHaveProperty('leftOut');
  });

  it('is done as soon as each field that they may have has a value', async () => {
    const scene = await crawled({
      [RECORD]: fine(RECORD, row({ phone: '1' }), [CONTACT, IMPRINT]),
      [CONTACT]: fine(CONTACT, { mail: 'a@a.example' }),
    });
    expect(urls(scene)).toEqual([RECORD, CONTACT]);
    expect(stored(scene)).toMatchObject([{ outcome: 'stored', rows: [{ row: { mail: 'a@a.example' } }] }]);
    const whole = await crawled({ [RECORD]: fine(RECORD, row({ mail: 'm', phone: '1' }), [CONTACT, IMPRINT]) });
    expect(urls(whole)).toEqual([RECORD]);
  });

  it('does not request a page whose section has nothing that is missing, or that no section reads', async () => {
    const scene = await crawled({
      [RECORD]: fine(RECORD, row({ mail: 'a@a.example' }), ['https://a.example/news', CONTACT, IMPRINT]),
      [IMPRINT]: fine(IMPRINT, { phone: '1' }),
    });
    expect(urls(scene)).toEqual([RECORD, IMPRINT]);
    expect(stored(scene)).toMatchObject([{ outcome: 'stored', rows: [{ row: { phone: '1' } }] }]);
  });

  it('may have its required field on one of them', async () => {
    const pages = [section('/p/', [field('name', true), field('mail', true)]), section('/contact', [field('mail')])];
    const own = odd() as Extract<PageResult, { kind: 'page' }>;
    const partial = { row: { name: 'x', mail: null }, missing: ['mail'] };
    const record: PageResult = {
      ...own,
      extraction: { rows: null, missing: 'mail', links: [CONTACT], partial },
    };
    const found = await crawled({ [RECORD]: record, [CONTACT]: fine(CONTACT, { mail: 'm' }) }, { sections: { pages } });
    expect(stored(found)).toMatchObject([{ outcome: 'stored', rows: [{ row: { name: 'x', mail: 'm' } }] }]);
    const down = await crawled({ [RECORD]: record, [CONTACT]: refused(500) }, { sections: { pages } });
    expect(stored(down).at(-1)).toMatchObject({ outcome: 'failed', reason: 'http-status' });
    expect(urls(down)).toEqual([RECORD, CONTACT, RECORD, CONTACT]);
  });

  it('keeps the pace of its host, over all of its names', async () => {
    const www = 'http://www.a.example/imprint';
    const scene = await crawled(
      {
        [RECORD]: fine(RECORD, row({}), [CONTACT, www]),
        [CONTACT]: fine(CONTACT, { mail: 'm' }),
        [www]: fine(www, { phone: '1' }),
        'https://a.example/p/2': fine('https://a.example/p/2', row({}), [CONTACT]),
      },
      { records: [RECORD, 'https://a.example/p/2'] },
    );
    const times = scene.sent.map(({ at }) => at);
    expect(Math.min(...times.slice(1).map((at, i) => at - times[i]!))).toBeGreaterThanOrEqual(15_000);
    const all = scene.sent.map(({ url }) => url);
    expect(all.indexOf('http://www.a.example/robots.txt')).toBeLessThan(all.indexOf(www));
    expect(all.filter((url) => url.endsWith('/robots.txt'))).toHaveLength(2);
    expect(Object.values(scene.outcomes())).toEqual(['stored', 'stored']);
  });

  it('comes without a page that the robots.txt of its origin forbids', async () => {
    const www = 'https://www.a.example/imprint';
    const scene = await crawled(
      { [RECORD]: fine(RECORD, row({}), [CONTACT, www]), [www]: fine(www, { phone: '1' }) },
      {
        rules: (url) =>
          url === 'https://www.a.example/robots.txt'
            ? rulesOf({ access: 'rules', rules: [{ allow: false, pattern: '/imprint' }] })
            : rulesOf({ access: 'rules', rules: [{ allow: false, pattern: '/contact' }] }),
      },
    );
    expect(urls(scene)).toEqual([RECORD]);
    expect(stored(scene)).toMatchObject([{ outcome: 'stored', leftOut: { robots: { pages: 2, example: CONTACT } } }]);
  });

  it('follows no link and no redirect to another host', async () => {
    const scene = await crawled({
      [RECORD]: fine(RECORD, row({}), ['https://b.example/contact', CONTACT, IMPRINT]),
      [CONTACT]: toElsewhere('https://b.example/contact'),
      [IMPRINT]: fine(IMPRINT, { phone: '1' }),
    });
    expect(urls(scene)).toEqual([RECORD, CONTACT, IMPRINT]);
    expect(stored(scene)).toMatchObject([
      { outcome: 'stored', rows: [{ row: { phone: '1' } }], leftOut: { elsewhere: { pages: 2 } } },
    ]);
    expect(scene.queue.state.domains.at(0)).toMatchObject({ bans: 0, refused: false });
  });

  it('follows no link and no redirect to what is denied', async () => {
    const scene = await crawled(
      {
        [RECORD]: fine(RECORD, row({}), [CONTACT, 'https://shop.a.example/contact', IMPRINT]),
        [IMPRINT]: toElsewhere('https://shop.a.example/imprint'),
      },
      { deny: ['/contact', 'https://shop.a.example/'] },
    );
    expect(urls(scene)).toEqual([RECORD, IMPRINT]);
    expect(stored(scene)).toMatchObject([{ outcome: 'stored', leftOut: { denied: { pages: 1 } } }]);
  });

  it('follows links of its own page only', async () => {
    const scene = await crawled({
      [RECORD]: fine(RECORD, row({}), [CONTACT]),
      [CONTACT]: fine(CONTACT, { mail: 'm' }, [IMPRINT]),
    });
    expect(urls(scene)).toEqual([RECORD, CONTACT]);
  });

  it('is stored though one of them is gone, is empty or cannot be read, with no request more', async () => {
    for (const [page, leftOut] of [
      [notFound, { gone: { pages: 1, example: CONTACT } }],
      [toElsewhere('https://a.example/'), { gone: { pages: 1, example: CONTACT } }],
      [odd(), undefined],
      [refused(500), { unread: { pages: 1, example: CONTACT } }],
      [broken(), { unread: { pages: 1, example: CONTACT } }],
    ] as const) {
      const scene = await crawled({
        [RECORD]: fine(RECORD, row({}), [CONTACT, IMPRINT]),
        [CONTACT]: page,
        [IMPRINT]: fine(IMPRINT, { phone: '1' }),
      });
      expect(urls(scene)).toEqual([RECORD, CONTACT, IMPRINT]);
      const [result] = stored(scene);
      expect(result).toMatchObject({ outcome: 'stored', rows: [{ row: { phone: '1' } }] });
      expect(result?.outcome === 'stored' ? result.leftOut : null).toEqual(leftOut);
    }
  });

  it('does not hide a refusal: its host rests, and the record is tried again', async () => {
    const scene = await crawled(
      {
        [RECORD]: fine(RECORD, row({}), [CONTACT]),
        [CONTACT]: (tries) => (tries === 1 ? refused(429) : fine(CONTACT, { mail: 'm' })),
      },
      { ms: 2 * 3_600_000 },
    );
    const [first, second, third] = scene.sent.filter(({ url }) => url !== 'https://a.example/robots.txt');
    expect([first!.url, second!.url, third!.url]).toEqual([RECORD, CONTACT, RECORD]);
    expect(third!.at - second!.at).toBeGreaterThanOrEqual(60_000);
    expect(stored(scene).at(-1)).toMatchObject({ outcome: 'stored', rows: [{ row: { mail: 'm' } }] });
  });

  it('is failed as banned when one of them is refused again after the rest', async () => {
    const scene = await crawled(
      { [RECORD]: fine(RECORD, row({}), [CONTACT]), [CONTACT]: refused(429) },
      { records: [RECORD, 'https://a.example/p/2'], ms: 3 * 3_600_000 },
    );
    const refusals = urls(scene).filter((url) => url === CONTACT);
    expect(refusals).toHaveLength(2);
    expect(Object.values(scene.outcomes())).toEqual(['banned', 'banned']);
  });
});

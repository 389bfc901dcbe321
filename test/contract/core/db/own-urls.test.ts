/** `site.hosts`: the URLs of products from the query into the ledger, to instances, and back to the user. */
import { expect, it } from 'vitest';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { History } from '../../../../orchestrator/core/db/history.ts';
import { ListedUrls } from '../../../../orchestrator/core/db/listed-urls.ts';
import { createProductSource } from '../../../../orchestrator/core/db/product-source.ts';
import { readSharedResults } from '../../../../orchestrator/core/db/shared-results.ts';
import { NO_URL } from '../../../../shared/domain/own-url.ts';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import { expectFault } from '../../../support/expect-fault.ts';
import { bound, createInstance, createRun, failed, load, onBothEngines, publish, settings, stored } from './harness.ts';

const HOSTS = [
  { url: 'https://shop.example/{url}', weight: 2 },
  { url: 'https://b.example/{url}', weight: 1 },
];
const LONG = `https://shop.example/${'a'.repeat(1_979)}`;
const PAGE = { etag: '"v1"', bytes: 10 };

onBothEngines('Products with URLs of their own', (bench) => {
  let tables = 0;
  const ownSettings = (more = {}) => {
    const own = settings(`own_${++tables}`, more);
    return { ...own, site: { ...own.site, productUrl: HOSTS } };
  };
  const URLS = new Map([
    ['p1', LONG],
    ['p2', 'https://b.example/red-pot?x=1'],
    ['p3', NO_URL],
  ]);
  const run = (urls = URLS, own = ownSettings()) => createRun(bench(), [...urls.keys()], { settings: own, urls });

  it('are read from a column of the query, beside what recrawl needs', async () => {
    const db = await openDatabase(bench().url);
    await db.knex.raw('create table listed_urls (id varchar(20), url varchar(3000), score integer)');
    await db.knex('listed_urls').insert([
      { id: 'a', url: 'https://shop.example/a#x', score: 1 },
      { id: 'b', url: null, score: 0 },
      { id: 'c', url: 'https://elsewhere.example/c', score: 0 },
      { id: 'a', url: null, score: 1 },
    ]);
    await db.close();
    for (const recrawls of [false, true]) {
      const urls = new ListedUrls(HOSTS);
      const source = createProductSource(bench().url, 'select id, url as URL, score from listed_urls', urls);
      const ids: string[] = [];
      if (recrawls) for await (const { id, score } of source.listed('score')) ids.push(`${id}${score}`);
      else for await (const id of source.read()) ids.push(id);
      expect(ids).toEqual(recrawls ? ['a1', 'b0', 'c0', 'a1'] : ['a', 'b', 'c', 'a']);
      expect(['a', 'b', 'c'].map((id) => [id, urls.urls!.get(id)])).toEqual([
        ['a', 'https://shop.example/a'],
        ['b', NO_URL],
        ['c', 'https://elsewhere.example/c'],
      ]);
      expect(urls.unusable).toEqual({
        products: 2,
        of: 3,
        named: [
          { row: 2, id: 'b', fault: 'it has no URL' },
          { row: 3, id: 'c', fault: 'elsewhere.example is none of site.hosts' },
        ],
      });
    }
    const plain = new ListedUrls('https://shop.example/{id}');
    for await (const _ of createProductSource(bench().url, 'select id, url from listed_urls', plain).read());
    expect(plain.ignoresColumn).toBe(true);
    const lacking = createProductSource(bench().url, 'select id from listed_urls', new ListedUrls(HOSTS)).read();
    await expectFault(Array.fromAsync(lacking), 'products-query', 'no column url');
  });

  it('are offered in place of the IDs, which results and the user get back', async () => {
    const { id, work } = await run();
    await createInstance(bench(), id, 0);
    const [chunk] = await work.waiting(1, new Set());
    expect(chunk!.products).toEqual([
      { n: 1, id: LONG },
      { n: 2, id: URLS.get('p2') },
      { n: 3, id: NO_URL },
    ]);
    await load(bench(), id, [stored(1, LONG), stored(2, URLS.get('p2')), failed(3, 'not requested', NO_URL)]);
    expect(await work.failedProducts(0, 9)).toEqual([
      { n: 3, id: 'p3', url: NO_URL, reason: 'http-status', detail: 'not requested' },
    ]);
    await publish(bench(), id);
    expect(await bench().db.knex(`own_${tables}`).orderBy('product_id').pluck('product_id')).toEqual(['p1', 'p2']);
    const history = new History(bench().db);
    expect(await history.productIdAt(id, LONG)).toBe('p1');
    expect(await history.productIdAt(id, 'https://shop.example/other')).toBeNull();
    expect(await work.anyStored()).toBe(LONG);
  });

  it('own the page that several products end on, whatever its spelling', async () => {
    const urls = new Map([
      ['owner', 'http://www.shop.example/tea?utm_source=feed&a=1'],
      ['p2', 'https://shop.example/b'],
      ['p3', 'https://shop.example/c'],
    ]);
    const { id } = await run(urls);
    const at = (n: number, url: string): ItemResult => ({
      ...(stored(n, url) as ItemResult & { outcome: 'stored' }),
      url,
      finalUrl: 'https://shop.example/tea?a=1',
    });
    await load(bench(), id, [stored(1, urls.get('owner')), at(2, urls.get('p2')!), at(3, urls.get('p3')!)]);
    const { pages } = await readSharedResults(bench().db.knex, bench().db, { runId: id, least: 2 });
    expect(pages).toMatchObject([{ page: 'shop.example/tea?a=1', ownerId: 'owner', products: 2 }]);
  });

  it('are asked for conditionally only while the URL is the one that the row was read from', async () => {
    const own = ownSettings({ conditional: 'f1' });
    const urls = new Map([
      ['p1', 'https://shop.example/a'],
      ['p2', 'https://shop.example/b'],
    ]);
    const first = await run(urls, own);
    const named = (n: number, url: string): ItemResult => ({ ...stored(n, url), url, page: PAGE }) as ItemResult;
    await load(bench(), first.id, [named(1, urls.get('p1')!), named(2, urls.get('p2')!)]);
    await publish(bench(), first.id);
    const second = await run(new Map([...urls, ['p2', 'https://shop.example/moved']]), own);
    const [chunk] = await bound(bench(), second.id).work.waiting(1, new Set());
    expect(chunk!.products).toEqual([
      { n: 1, id: 'https://shop.example/a', validators: { etag: PAGE.etag } },
      { n: 2, id: 'https://shop.example/moved' },
    ]);
  });
});

/**
 * `orchestrator discover` on a shop whose pages link to each other: by links, by sitemaps, over two nights, killed.
 *
 * @module-tag nightly
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { waitFor } from '../support/processes.ts';
import { SHOP_MAPPING } from '../support/shop/product.ts';
import { Catalogue } from '../support/shop/linked/catalogue.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type Fleet, makeFleet, readReport } from './fleet.ts';

const PRODUCTS = 100;
const CATALOGUE = [...new Catalogue(PRODUCTS).products()].sort();

eachEngineByDay('discover', (engine) => {
  const makeSite = async (
    discover: (shop: Shop) => object,
    run: object = {},
    site: object = {},
  ): Promise<{
    shop: Shop;
    fleet: Fleet;
    night: (...args: string[]) => Promise<RunReport>;
    end: () => Promise<void>;
  }> => {
    const shop = await startShop({ products: PRODUCTS, linked: true });
    const mappings = [
      { url_patterns: ['/item/'], ...SHOP_MAPPING },
      { name: 'lists', url_patterns: ['/category/', '/search', '/calendar/', '/list', '/a/b', '/$'] },
    ];
    const fleet = await makeFleet({
      engine,
      productUrl: shop.productUrl,
      ids: [],
      config: {
        site: { mapping: { mappings }, ...site },
        run: { deadline: '90s', ...run },
        discover: { into: { table: 'found', id: '/item/(\\w+)' }, pages: 200, ...discover(shop) },
      },
    });
    return {
      shop,
      fleet,
      async night(...args) {
        const result = await fleet.run('discover', '--dry-run', '--yes', '--json', ...args);
        const report = readReport(result);
        expect(report.exitCode, result.stderr).toBe(0);
        return report;
      },
      async end() {
        await fleet.remove();
        await shop.stop();
      },
    };
  };

  const found = async (fleet: Fleet): Promise<unknown[]> =>
    (await fleet.query('select product_id from found order by product_id')).map((row) => row.product_id);
  /** Number of requests for each page; the main server requests robots.txt and sitemaps. */
  const asked = async (shop: Shop): Promise<Map<string, number>> => {
    const pages = (await shop.log()).map(({ path }) => path).filter((path) => !/robots|sitemap/.test(path));
    return new Map([...Map.groupBy(pages, (path) => path)].map(([path, times]) => [path, times.length]));
  };
  const checkLinks = ({ discovery }: RunReport): void => {
    const { found: links, fresh, known, denied, dropped } = discovery!;
    expect(links).toBe(fresh + known + dropped + Object.values(denied).reduce((all, one) => all + one, 0));
  };

  it('finds every product by links, requests each page once, and crawls lists again the next night', async () => {
    const { shop, fleet, night, end } = await makeSite(({ url }) => ({ seeds: [`${url}/`], depth: 3 }));
    try {
      const first = await night();
      expect(await found(fleet)).toEqual(CATALOGUE);
      const url = `${shop.url}/item/P00007?utm_source=mail`;
      const { stdout } = await fleet.run('product', url, '--json');
      expect(JSON.parse(stdout)).toMatchObject({ id: 'P00007', nights: [{ url: `${shop.url}/item/P00007` }] });
      expect([...(await asked(shop)).values()].every((times) => times === 1)).toBe(true);
      const { planned, stored } = first.products;
      expect([planned, stored]).toEqual([PRODUCTS, PRODUCTS]);
      expect(PRODUCTS + first.discovery!.linkPages!.planned).toBe((await asked(shop)).size);
      expect(first.discovery).toMatchObject({ entered: 1, waiting: 0 });
      checkLinks(first);
      expect((await fleet.run('verify')).exitCode).toBe(0);

      await shop.reset();
      const second = await night();
      expect(second.products).toMatchObject({ planned: 0, stored: 0 });
      expect(second.discovery!.linkPages!.planned).toBeGreaterThan(0);
      expect([...(await asked(shop)).keys()].filter((path) => path.startsWith('/item/'))).toEqual([]);
      checkLinks(second);
      expect(await found(fleet)).toEqual(CATALOGUE);
    } finally {
      await end();
    }
  });

  it('takes the highest scores of the sitemaps first, and leaves the rest for the next night', async () => {
    const scores = `select id, length(id) as score from scored`;
    const { shop, fleet, night, end } = await makeSite(
      () => ({ sitemaps: 'auto', depth: 0, order: 'score', scores, pages: 40 }),
      { min_instances: 1, max_instances: 1 },
    );
    try {
      await fleet.query('create table scored (id varchar(200) not null)');
      const best = CATALOGUE.slice(50, 60).map((id) => `/item/${id}`);
      await fleet.query(`insert into scored (id) values ${best.map((path) => `('${path}')`).join(', ')}`);
      const first = await night();
      const { linkPages, entered } = first.discovery!;
      const products = 40 - linkPages!.planned;
      expect(first.products).toMatchObject({ planned: products, stored: products });
      expect(first.discovery).toMatchObject({ waiting: entered - 40 });
      expect([...(await asked(shop)).keys()].slice(0, 10).sort()).toEqual(best);
      const [dated] = await fleet.query(
        'select count(*) as days from found_frontier where id is not null and modified_at is not null',
      );
      expect(Number(dated!.days)).toBe(PRODUCTS);
      await night();
      await night();
      expect(await found(fleet)).toEqual(CATALOGUE);
      expect([...(await asked(shop)).values()].every((times) => times === 1)).toBe(true);
    } finally {
      await end();
    }
  });

  it('follows no redirect to what site.follow.deny denies', async () => {
    const { shop, fleet, night, end } = await makeSite(
      ({ url }) => ({
        seeds: [`${url}/item/P00007`, `${url}/item/P00008`],
        depth: 0,
        deny: 'deny.txt',
      }),
      { max_failed: '50%' },
    );
    try {
      writeFileSync(join(fleet.dir, 'deny.txt'), '/ITEM\n/item/P00007?hops\n');
      await shop.setRules([{ prefix: 'P0000', do: { type: 'chain', hops: 1 } }]);
      const { products } = await night();
      expect(products).toMatchObject({ planned: 2, stored: 1, failed: 1, reasons: { redirect: 1 } });
      expect(await found(fleet)).toEqual(['P00008']);
      expect((await asked(shop)).get('/item/P00007')).toBe(1);
      expect((await fleet.run('verify')).exitCode).toBe(0);
    } finally {
      await end();
    }
  });

  it('begins with one instance for one seed, and grows with what it finds', async () => {
    const { fleet, night, end } = await makeSite(
      ({ url }) => ({ seeds: [`${url}/`], depth: 3 }),
      {},
      { interval: '2s' },
    );
    try {
      const { instances } = await night();
      expect(instances.planned).toBe(1);
      expect(instances.launched).toBeGreaterThan(1);
      expect(await found(fleet)).toEqual(CATALOGUE);
    } finally {
      await end();
    }
  });

  it('is resumed after kill -9', async () => {
    const { shop, fleet, end } = await makeSite(({ url }) => ({ seeds: [`${url}/`], depth: 3 }));
    try {
      const run = fleet.start('discover', '--dry-run', '--yes', '--json');
      await waitFor(async () => (await shop.stats()).requests >= 40, { what: 'the crawl to begin', timeoutMs: 60_000 });
      run.kill('SIGKILL');
      await run.finished;
      const resumed = await fleet.run('resume', '--json');
      checkLinks(readReport(resumed));
      expect(resumed.exitCode, resumed.stderr).toBe(0);
      expect(await found(fleet)).toEqual(CATALOGUE);
      expect([...(await asked(shop)).values()].every((times) => times === 1)).toBe(true);
      expect((await fleet.run('verify')).exitCode).toBe(0);
    } finally {
      await end();
    }
  });

  it('continues the next night after kill -9, without losing a URL or repeating a request', async () => {
    const { shop, fleet, night, end } = await makeSite(({ url }) => ({ seeds: [`${url}/`], depth: 3 }), {
      deadline: '25s',
      // For the last uploads: on a busy machine they take their time.
      grace: '20s',
    });
    try {
      const run = fleet.start('discover', '--dry-run', '--yes', '--json');
      await waitFor(async () => (await shop.stats()).requests >= 40, {
        what: 'the crawl to begin',
        timeoutMs: 60_000,
      });
      run.kill('SIGKILL');
      await run.finished;
      const [{ deadline_at: deadline }] = (await fleet.query('select deadline_at from crawlfleet_runs')) as [
        { deadline_at: number | string },
      ];
      await waitFor(() => Date.now() > Number(deadline) + 1_000, { what: 'the deadline', timeoutMs: 60_000 });
      await night('--deadline', '90s');
      expect(await found(fleet)).toEqual(CATALOGUE);
      const again = [...(await asked(shop)).values()].filter((times) => times > 1);
      expect(again.length).toBeLessThanOrEqual(3);
      expect((await fleet.run('verify')).exitCode).toBe(0);
    } finally {
      await end();
    }
  });
});

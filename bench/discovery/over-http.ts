/**
 * The shop of `discovery` over real HTTP: the shop, the instances, the sandbox and the main server are processes. The
 * main server is killed half-way and does not come back; the next night goes on with its frontier.
 */
import { waitFor } from '../../test/support/processes.ts';
import { Catalogue } from '../../test/support/shop/linked/catalogue.ts';
import { SHOP_MAPPING } from '../../test/support/shop/product.ts';
import { startShop } from '../../test/support/shop/start-shop.ts';
import { makeFleet, readReport } from '../../test/system/fleet.ts';
import type { Bench, BenchResult } from '../frame.ts';

const PRODUCTS = 5_000;
const INSTANCES = 10;
const INTERVAL_MS = 100;
/** Of the first night. Its instances go on without the main server and end then. */
const FIRST_S = 150;
const SECOND = '5m';

export const bench: Bench = { title: 'Discovery over HTTP: the main server killed half-way, the next night', run };

async function run(): Promise<BenchResult> {
  const shop = await startShop({ products: PRODUCTS, linked: true });
  const mappings = [
    { url_patterns: ['/item/'], ...SHOP_MAPPING },
    { name: 'lists', url_patterns: ['/category/', '/search', '/calendar/', '/list', '/a/b', '/$'] },
  ];
  const into = { table: 'found', id: '/item/(\\w+)' };
  const fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: shop.productUrl,
    ids: [],
    config: {
      site: { interval: `${INTERVAL_MS}ms`, mapping: { mappings } },
      run: { deadline: SECOND, grace: '5s', min_instances: INSTANCES, max_instances: INSTANCES },
      discover: {
        seeds: [`${shop.url}/`],
        sitemaps: 'auto',
        depth: 400,
        pages: PRODUCTS * 1.25,
        keep: 1_000_000,
        into,
      },
    },
  });
  try {
    const args = ['--dry-run', '--yes', '--json'];
    const startMs = performance.now();
    const first = fleet.start('discover', ...args, '--deadline', `${FIRST_S}s`);
    const half = async (): Promise<boolean> => (await shop.stats()).requests >= PRODUCTS / 2;
    const ended = first.finished.then(({ stderr }) => Promise.reject(new Error(stderr)));
    await Promise.race([waitFor(half, { what: 'half of the products', timeoutMs: FIRST_S * 1_000 }), ended]);
    ended.catch(() => undefined);
    const halfMs = performance.now() - startMs;
    first.kill('SIGKILL');
    await first.finished;
    const [row] = await fleet.query('select deadline_at from crawlfleet_runs');
    const over = (): boolean => Date.now() > Number(row!.deadline_at) + 6_000;
    await waitFor(over, { what: 'the end of the first night', timeoutMs: FIRST_S * 2_000 });
    const secondMs = performance.now();
    const second = readReport(await fleet.run('discover', ...args));
    const tookMs = performance.now() - secondMs;
    const pages = (await shop.log()).filter(({ path }) => !/robots|sitemap/.test(path));
    const asked = Map.groupBy(pages, ({ path }) => path);
    const found = new Set((await fleet.query('select product_id from found')).map((one) => String(one.product_id)));
    const missing = [...new Catalogue(PRODUCTS).products()].filter((id) => !found.has(id)).length;
    const figures = {
      requests: pages.length,
      found: found.size,
      missing,
      twice: [...asked.values()].filter((times) => times.length > 1).length,
      waiting: second.discovery!.waiting,
      exitCode: second.exitCode,
      firstHalfPagesPerSecond: (PRODUCTS / 2 / halfMs) * 1_000,
      secondNightPagesPerSecond: (second.products.planned / tookMs) * 1_000,
      smallestGapMs: (await shop.stats()).minGapMs ?? 0,
      verify: (await fleet.run('verify')).exitCode ?? -1,
    };
    return {
      about:
        `${PRODUCTS} products, ${INSTANCES} instances as processes, ${INTERVAL_MS} ms between requests of one address, SQLite; the shop, with sitemaps, runs on the same cores. ` +
        'The main server is killed after half as many requests as there are products; the first night ends without it.',
      rows: [{ name: 'two nights', figures }],
      ratios: [
        { name: 'products that were found', value: found.size / PRODUCTS, target: '1' },
        { name: 'URLs asked for twice, per instance at the kill', value: figures.twice / INSTANCES },
        { name: 'smallest gap / interval', value: figures.smallestGapMs / INTERVAL_MS, target: 'at least 1' },
      ],
    };
  } finally {
    await fleet.remove();
    await shop.stop();
  }
}

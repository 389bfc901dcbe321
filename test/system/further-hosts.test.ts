/**
 * `site.follow.hosts`: further pages of a product at a second shop, in one pace over both, each by its own robots.txt.
 *
 * @module-tag nightly
 */
import { afterEach, expect, it } from 'vitest';
import { productIds, SHOP_MAPPING } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type Fleet, makeFleet } from './fleet.ts';
import { expectSound } from './soundness.ts';

const PRODUCTS = 6;
const INTERVAL_MS = 300;
/** Of the second shop alone. */
const DELAY_MS = 700;

const opened: { stop: () => Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.stop();
});

it('reads further pages at a second host, keeps the longer Crawl-delay over both, and its robots.txt', async () => {
  const shops: Shop[] = [];
  for (const address of ['127.0.0.1', '127.0.7.1', '127.0.8.1']) {
    const shop = await startShop({ products: PRODUCTS, address });
    opened.push(shop);
    shops.push(shop);
  }
  const [site, further, unnamed] = shops as [Shop, Shop, Shop];
  const ids = productIds(PRODUCTS);
  const [forbidden, denied] = ids as [string, string];
  await further.setRobots(`User-agent: *\nCrawl-delay: ${DELAY_MS / 1_000}\nDisallow: /item/${forbidden}\n`);
  const linkTo = ({ url }: Shop): object => ({
    css: 'article.product',
    attr: 'data-id',
    regex: '^P.*',
    replace: { find: 'P', with: `${url}/item/P` },
  });
  const fleet: Fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: site.productUrl,
    ids,
    config: {
      site: {
        interval: `${INTERVAL_MS}ms`,
        mapping: { ...SHOP_MAPPING, url_parsers: [linkTo(further), linkTo(unnamed)] },
        follow: { hosts: [further.url], deny: [`${further.url}/item/${denied}`] },
      },
      run: { deadline: '60s', min_instances: 1, max_instances: 1, max_failed: '50%' },
    },
  });
  opened.push({ stop: () => fleet.remove() });

  const { report, stderr } = await fleet.dryRun();
  expect(report.products, stderr).toMatchObject({ stored: PRODUCTS, failed: 0 });
  expect(report.furtherPages).toEqual({
    leftOut: {
      robots: { products: 1, pages: 1, example: `${further.url}/item/${forbidden}` },
      elsewhere: { products: PRODUCTS, pages: PRODUCTS, example: expect.stringContaining(unnamed.url) },
    },
    partial: { products: 0, examples: [] },
  });
  await expectSound(fleet, report, site, DELAY_MS);

  const arrivals = (await Promise.all(shops.map((shop) => shop.log()))).map((log) =>
    log.filter(({ kind }) => kind === 'page'),
  );
  const [own, others, none] = arrivals.map((log) => log.map(({ id }) => id!).toSorted((a, b) => a.localeCompare(b)));
  expect(own).toEqual(ids);
  expect(others).toEqual(ids.slice(2));
  expect(none).toEqual([]);
  expect((await further.stats()).robotsRequests).toBeGreaterThan(0);
  const times = arrivals
    .flat()
    .map(({ wallMs }) => wallMs)
    .toSorted((a, b) => a - b);
  expect(Math.min(...times.slice(1).map((at, i) => at - times[i]!))).toBeGreaterThanOrEqual(DELAY_MS);
  expect(report.politeness.minGapMs).toBeGreaterThanOrEqual(DELAY_MS);
});

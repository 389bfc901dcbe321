/**
 * `site.product_url` as a list: two shops at two addresses, crawled by one instance at the pace of each.
 *
 * @module-tag nightly
 */
import { afterEach, expect, it } from 'vitest';
import { domainOf } from '../../shared/domain/domains.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type Fleet, makeFleet } from './fleet.ts';
import { expectSound } from './soundness.ts';

const PRODUCTS = 40;
/** Products read at each domain. */
const EACH = 5;
const INTERVAL_MS = 800;

const opened: { stop: () => Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.stop();
});

it('reads each product at its one domain, keeps the interval at each, and is done in less time than one domain takes', async () => {
  const shops: Shop[] = [];
  for (const address of ['127.0.0.1', '127.0.7.1']) {
    const shop = await startShop({ products: PRODUCTS, address });
    opened.push(shop);
    shops.push(shop);
  }
  const productUrl = shops.map((shop) => ({ url: shop.productUrl, weight: 1 }));
  const ids = shops.flatMap((_, domain) =>
    productIds(PRODUCTS)
      .filter((id) => domainOf(productUrl, id) === domain)
      .slice(0, EACH),
  );
  const fleet: Fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: shops[0]!.productUrl,
    ids,
    config: {
      site: { product_url: productUrl, interval: `${INTERVAL_MS}ms` },
      run: { deadline: '60s', min_instances: 1, max_instances: 1 },
    },
  });
  opened.push({ stop: () => fleet.remove() });

  const { report } = await fleet.dryRun();
  expect(report).toMatchObject({ exitCode: 0, products: { planned: ids.length, stored: ids.length } });
  await expectSound(fleet, report, shops[0]!, INTERVAL_MS);

  const arrivals = await Promise.all(
    shops.map(async (shop) => (await shop.log()).filter(({ kind }) => kind === 'page').sort((a, b) => a.atMs - b.atMs)),
  );
  for (const [domain, own] of arrivals.entries()) {
    expect(own.map(({ id }) => id!).toSorted()).toEqual(ids.filter((id) => domainOf(productUrl, id) === domain));
    const { minGapMs, robotsRequests } = await shops[domain]!.stats();
    expect(minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
    expect(robotsRequests).toBeGreaterThan(0);
  }
  expect(report.politeness.minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
  const times = arrivals.flat().map(({ wallMs }) => wallMs);
  const tookMs = Math.max(...times) - Math.min(...times);
  expect(tookMs).toBeLessThan(0.8 * (ids.length - 1) * INTERVAL_MS);

  const rows = await fleet.query('select product_id, url from product_snapshots');
  for (const { product_id: id, url } of rows)
    expect(url).toBe(productUrl[domainOf(productUrl, String(id))]!.url.replace('{id}', String(id)));
});

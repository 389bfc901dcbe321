/**
 * Two sites whose runs share one database: each has its own lock, so they crawl at the same time.
 *
 * @module-tag nightly
 */
import { expect, it } from 'vitest';
import { OpenResources } from '../../orchestrator/core/open-resources.ts';
import { createTestDatabase } from '../support/mariadb/database.ts';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { startShop } from '../support/shop/start-shop.ts';
import { endOf, makeFleet } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';

const PRODUCTS = 150;
const INTERVAL_MS = 500;
const RUN = ['run', '--dry-run', '--json', '--deadline', '120s'];

it('crawls both at once, refuses a second run of one, and resumes the right one after kill -9', async () => {
  await using made = new OpenResources();
  const database = await createTestDatabase('mysql');
  const ids = productIds(PRODUCTS);
  const sites = [];
  for (const [address, table] of [
    ['127.0.0.1', 'first_snapshots'],
    ['127.0.7.1', 'second_snapshots'],
  ] as const) {
    const shop = await startShop({ products: PRODUCTS, address });
    made.defer(() => shop.stop());
    const fleet = await makeFleet({
      engine: 'mysql',
      database,
      productUrl: shop.productUrl,
      ids: sites.length === 0 ? ids : [],
      config: { site: { interval: `${INTERVAL_MS}ms` }, results: { table }, run: { max_instances: 3 } },
    });
    made.defer(() => fleet.remove());
    sites.push({ shop, fleet, table });
  }
  const [first, second] = sites as [(typeof sites)[0], (typeof sites)[0]];
  const asked = ({ shop }: typeof first): Promise<unknown> =>
    waitFor(async () => (await shop.stats()).requests >= 10, { what: '10 requests', timeoutMs: 60_000 });

  const killed = first.fleet.start(...RUN);
  const other = second.fleet.start(...RUN);
  await asked(first);
  const refused = await first.fleet.run(...RUN);
  expect(refused.exitCode).toBe(20);
  expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'lock-held' } });
  await asked(second);
  killed.kill('SIGKILL');
  await killed.finished;

  // No run is named: it is not the other site's, which is at work.
  const resumed = endOf(first.fleet.start('resume', '--json'));
  for (const [{ fleet, shop, table }, run] of [
    [first, resumed],
    [second, endOf(other)],
  ] as const) {
    const report = expectAllStored(await run, PRODUCTS);
    await expectSound(fleet, report, shop, INTERVAL_MS);
    expect(await fleet.query(`select product_id from ${table}`)).toHaveLength(PRODUCTS);
  }
});

/**
 * `site.pages_at_once`: four slow shops, crawled by one instance that is killed while pages of all are under way.
 *
 * @module-tag nightly
 */
import { afterEach, expect, it } from 'vitest';
import { buildBundle } from '../../userdata/bundle.ts';
import { waitFor } from '../support/processes.ts';
import { startSandbox } from '../support/sandbox/start-sandbox.ts';
import type { Arrival } from '../support/shop/arrivals.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { endOf, makeFleet } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';

const ADDRESSES = ['127.0.0.1', '127.0.7.1', '127.0.7.2', '127.0.7.3'];
const IDS = productIds(40);
const INTERVAL_MS = 500;
/** Several intervals: with one page at a time the run would take 40 of them. */
const PAGE_MS = 2_000;

const opened: { stop: () => Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.stop();
});

it('reads pages of all shops at the same time, one of each, also after the process was killed', async () => {
  const shops: Shop[] = [];
  for (const address of ADDRESSES) {
    const shop = await startShop({ products: IDS.length, address });
    opened.push(shop);
    await shop.setRules([{ prefix: '', do: { type: 'slow', ms: PAGE_MS } }]);
    shops.push(shop);
  }
  const sandbox = await startSandbox({ allowBundles: [(await buildBundle()).sha256] });
  opened.push(sandbox);
  const fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: shops[0]!.productUrl,
    ids: IDS,
    config: {
      aws: { endpoint: sandbox.endpoint },
      site: {
        product_url: shops.map((shop) => ({ url: shop.productUrl, weight: 1 })),
        interval: `${INTERVAL_MS}ms`,
        pages_at_once: 4,
      },
      run: { deadline: '120s', min_instances: 1, max_instances: 1 },
    },
  });
  opened.push({ stop: () => fleet.remove() });
  const pages = async (): Promise<Arrival[]> =>
    (await Promise.all(shops.map((shop) => shop.log()))).flat().filter(({ kind }) => kind === 'page');

  const run = fleet.start('run', '--dry-run', '--json');
  await waitFor(async () => (await pages()).length >= 12, { what: '12 pages', timeoutMs: 60_000 });
  const { instances } = (await sandbox.control('GET', 'status')) as { instances: { pid: number }[] };
  process.kill(instances[0]!.pid, 'SIGKILL');
  const killedMs = Date.now();
  const report = expectAllStored(await endOf(run), IDS.length, { launched: 1, replaced: 0 });
  for (const shop of shops) await expectSound(fleet, report, shop, INTERVAL_MS);

  const arrivals = (await pages()).toSorted((a, b) => a.wallMs - b.wallMs);
  // One of each shop was under way at most, and each of those is requested once more.
  expect(arrivals.length - IDS.length).toBeLessThanOrEqual(shops.length);
  for (const shop of shops)
    for (const { maxConcurrency } of Object.values((await shop.stats()).addresses)) expect(maxConcurrency).toBe(1);
  // The killed process broke its requests off: the next one may begin within their time.
  const isSameProcess = (a: Arrival, b: Arrival): boolean => a.wallMs < killedMs === b.wallMs < killedMs;
  const besides = arrivals.map((page, at) => {
    const before = arrivals.slice(0, at + 1).filter((other) => other.wallMs > page.wallMs - PAGE_MS);
    return before.filter((other) => isSameProcess(other, page)).length;
  });
  expect(Math.max(...besides)).toBe(shops.length);
});

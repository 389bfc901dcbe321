/** A whole dry run of 300 products: politeness, even shards, time after the last page, memory of an instance. */
import { productIds } from '../../test/support/shop/product.ts';
import { startShop } from '../../test/support/shop/start-shop.ts';
import { makeFleet } from '../../test/system/fleet.ts';
import type { Bench, BenchResult } from '../frame.ts';
import { watchRun } from '../watch-run.ts';

const PRODUCTS = 300;
const INTERVAL_MS = 200;

export const bench: Bench = { title: 'A whole dry run of 300 products', run };

async function run(): Promise<BenchResult> {
  const shop = await startShop({ products: PRODUCTS });
  const fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: shop.productUrl,
    ids: productIds(PRODUCTS),
    config: { run: { deadline: '60s', min_instances: 3 } },
  });
  try {
    const { report, instanceRssBytes } = await watchRun(fleet);
    const { minGapMs } = await shop.stats();
    const lastPageMs = Math.max(...(await shop.log()).map((a) => a.wallMs));
    const sizes = report.shards.map((s) => s.assigned);
    const overheadMs = Date.parse(report.finishedAt!) - lastPageMs;
    const spread = Math.max(...sizes) - Math.min(...sizes);
    const chunk = Math.ceil(PRODUCTS / sizes.length / 20);
    return {
      about: `${PRODUCTS} products, ${sizes.length} instances as processes, ${INTERVAL_MS} ms between requests of one address, SQLite. Gaps are measured by the shop.`,
      rows: [
        {
          name: 'run',
          figures: {
            smallestGapMs: minGapMs ?? 0,
            overheadMs,
            shardSpread: spread,
            instanceMaxRssMb: instanceRssBytes / 1e6,
          },
        },
      ],
      ratios: [
        { name: 'smallest gap / interval', value: (minGapMs ?? 0) / INTERVAL_MS, target: 'at least 1' },
        { name: 'last page to rows published / 2 s', value: overheadMs / 2_000, target: 'below 1' },
        { name: 'spread of shards / chunk', value: spread / chunk, target: 'at most 1' },
        { name: 'RSS of an instance / 110 MB', value: instanceRssBytes / 110e6, target: 'below 1' },
      ],
    };
  } finally {
    await fleet.remove();
    await shop.stop();
  }
}

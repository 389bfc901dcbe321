/**
 * The main server with 100,000 products: planning, dispatching, loading, publishing, verifying. Pages of a few bytes
 * and an interval of a millisecond leave the instances almost no work, and the main server all of it.
 */
import { makeFleet } from '../../test/system/fleet.ts';
import type { Bench, BenchResult } from '../frame.ts';
import { ONE_LINE_PAGE, oneLineSite, startBenchShop } from '../bench-shop.ts';
import { RUN_LIMIT_MS, watchRun } from '../watch-run.ts';

const PRODUCTS = 100_000;
const THOUSANDS = PRODUCTS / 1_000;

export const bench: Bench = { title: 'The main server with 100,000 products', run };

async function run(): Promise<BenchResult> {
  const shop = await startBenchShop(ONE_LINE_PAGE);
  const ids = Array.from({ length: PRODUCTS }, (_, i) => `product-${String(i).padStart(6, '0')}`);
  const fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: shop.productUrl,
    ids,
    config: { site: oneLineSite('1ms'), run: { deadline: '20m', min_instances: 6, max_instances: 20 } },
    timeoutMs: RUN_LIMIT_MS,
  });
  try {
    const { report, wallMs, cpuMs, mainServerRssBytes } = await watchRun(fleet);
    const verifyStartMs = performance.now();
    const { exitCode, stderr } = await fleet.run('verify', '--json');
    if (exitCode !== 0) throw new Error(`verify ended with ${exitCode}: ${stderr}`);
    const verifyMs = performance.now() - verifyStartMs;
    const { dispatchMs, loadMs, publishMs } = report.timings;
    return {
      about: `${PRODUCTS} products stored by ${report.instances.launched} instances as processes on the same two cores, SQLite. CPU and memory are the main server's own.`,
      rows: [
        {
          name: 'whole run',
          figures: {
            wallMsPerThousand: wallMs / THOUSANDS,
            cpuMsPerThousand: cpuMs / THOUSANDS,
            dispatchMs: dispatchMs ?? 0,
            loadMs: loadMs ?? 0,
            publishMs: publishMs ?? 0,
            verifyMs,
            maxRssMb: mainServerRssBytes / 1e6,
          },
        },
      ],
      ratios: [
        { name: 'RSS of the main server / 300 MB', value: mainServerRssBytes / 300e6, target: 'below 1' },
        { name: 'stored / planned', value: report.products.stored / PRODUCTS, target: '1' },
      ],
    };
  } finally {
    await fleet.remove();
    shop.stop();
  }
}

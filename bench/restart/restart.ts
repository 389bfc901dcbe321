/** How long a run is without its main server after kill -9: from the start of `resume` to its first observation. */
import { type RunningCommand, waitFor } from '../../test/support/processes.ts';
import { type Fleet, makeFleet } from '../../test/system/fleet.ts';
import { type Bench, median } from '../frame.ts';
import { ONE_LINE_PAGE, oneLineSite, startBenchShop } from '../bench-shop.ts';
import { RUN_LIMIT_MS } from '../watch-run.ts';

const PRODUCTS = 30_000;
const ROUNDS = 3;
const LIMIT_MS = 5_000;

export const bench: Bench = {
  title: 'A killed main server: time until the next one continues the run',
  async run() {
    const shop = await startBenchShop(ONE_LINE_PAGE);
    const ids = Array.from({ length: PRODUCTS }, (_, i) => `product-${String(i).padStart(6, '0')}`);
    const fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids,
      config: { site: oneLineSite('200ms'), run: { deadline: '2h', min_instances: 3, max_instances: 20 } },
      timeoutMs: RUN_LIMIT_MS,
    });
    try {
      const first = await start(fleet, 'run', '--dry-run', '--yes');
      await kill(first.run);
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const next = await start(fleet, 'resume');
        times.push(next.tookMs);
        if (round < ROUNDS - 1) await kill(next.run);
        else {
          // The first stop request ends the run with the results so far.
          next.run.kill('SIGINT');
          await next.run.finished;
        }
      }
      return {
        about: `A dry run of ${PRODUCTS} products is killed with SIGKILL while it crawls; \`orchestrator resume\` from the start of its process to the first line of progress, median of ${ROUNDS}. SQLite, everything on the same two cores.`,
        rows: [{ name: 'resume', figures: { medianMs: median(times), slowestMs: Math.max(...times) } }],
        ratios: [{ name: `median / ${LIMIT_MS / 1_000} s`, value: median(times) / LIMIT_MS, target: 'at most 1' }],
      };
    } finally {
      await fleet.remove();
      shop.stop();
    }
  },
};

/** Resolves with the first line of progress of a run that crawls. */
async function start(fleet: Fleet, ...args: string[]): Promise<{ run: RunningCommand; tookMs: number }> {
  const startMs = performance.now();
  const run = fleet.start(...args);
  await waitFor(() => /^crawling\b/m.test(run.stderr()), { what: 'the crawl', timeoutMs: 300_000, everyMs: 5 });
  return { run, tookMs: performance.now() - startMs };
}

async function kill(run: RunningCommand): Promise<void> {
  run.kill('SIGKILL');
  await run.finished;
}

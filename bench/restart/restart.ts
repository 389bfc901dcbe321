/** How long a run is without its main server after kill -9: from the start of `resume` to its first observation. */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type CrawlFolder, makeCrawlFolder } from '../crawl-folder.ts';
import { startOneLineShop } from '../one-line-shop.ts';
import { type Bench, median } from '../frame.ts';

const PRODUCTS = 30_000;
const ROUNDS = 3;
const LIMIT_MS = 5_000;

export const bench: Bench = {
  title: 'A main server that is killed: time until the next one drives the run',
  async run() {
    const shop = await startOneLineShop('200ms');
    const ids = Array.from({ length: PRODUCTS }, (_, i) => `product-${String(i).padStart(6, '0')}`);
    const folder = makeCrawlFolder(ids, {
      site: shop.site,
      run: { deadline: '2h', min_instances: 3, max_instances: 20 },
    });
    try {
      const first = await start(folder, 'run', '--dry-run', '--yes');
      await kill(first.child);
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const next = await start(folder, 'resume');
        times.push(next.tookMs);
        if (round < ROUNDS - 1) await kill(next.child);
        else {
          // The first stop request ends the run with the results so far.
          next.child.kill('SIGINT');
          await once(next.child, 'exit');
        }
      }
      return {
        about: `A dry run of ${PRODUCTS} products is killed with SIGKILL while it crawls; \`orchestrator resume\` from the start of its process to the first line of progress, median of ${ROUNDS}. SQLite, everything on the same two cores.`,
        rows: [{ name: 'resume', figures: { medianMs: median(times), slowestMs: Math.max(...times) } }],
        ratios: [{ name: `median / ${LIMIT_MS / 1_000} s`, value: median(times) / LIMIT_MS, target: 'at most 1' }],
      };
    } finally {
      folder.remove();
      shop.stop();
    }
  },
};

/** Resolves with the first line of progress of a run that crawls. */
async function start(folder: CrawlFolder, ...args: string[]) {
  const startMs = performance.now();
  const child = folder.start(...args);
  child.stdout.resume();
  let said = '';
  for await (const line of createInterface(child.stderr)) {
    said += `${line}\n`;
    if (/^crawling\b/.test(line)) break;
  }
  child.stderr.resume();
  if (!/^crawling\b/m.test(said))
    throw new Error(`orchestrator ${args[0]} did not start crawling:\n${said.slice(-2_000)}`);
  return { child, tookMs: performance.now() - startMs };
}

async function kill(child: ReturnType<CrawlFolder['start']>): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

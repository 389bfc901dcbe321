/**
 * The page of `orchestrator serve` beside a run of 126 instances and 1,000,000 products whose numbers change every
 * second: how long it takes to appear, what an update costs the browser, and what the server takes.
 */
import Database from 'better-sqlite3';
import { chromium } from 'playwright';
import { readProcess, type RunningCommand, waitFor } from '../../test/support/processes.ts';
import { makeFleet } from '../../test/system/fleet.ts';
import { findTestBrowser } from '../../test/support/chromium/find-browser.ts';
import { NO_PROGRESS, type Progress } from '../../shared/wire/callbacks.ts';
import { type Bench, type BenchResult, median } from '../frame.ts';
import { ONE_LINE_PAGE, oneLineSite, startBenchShop } from '../bench-shop.ts';
import { RUN_LIMIT_MS } from '../watch-run.ts';

const PRODUCTS = 1_000_000;
const INSTANCES = 126;
const SAMPLES = 240;
const UPDATES = 20;
const RUN = '20261123-000000-bnch';

export const bench: Bench = { title: 'The page beside a run of 126 instances and 1,000,000 products', run };

async function run(): Promise<BenchResult> {
  const shop = await startBenchShop(ONE_LINE_PAGE);
  const fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: shop.productUrl,
    ids: ['p1', 'p2'],
    config: { site: oneLineSite('1ms'), run: { deadline: '20m', min_instances: 1 } },
    timeoutMs: RUN_LIMIT_MS,
  });
  let serve: RunningCommand | null = null;
  try {
    // The row of a real run, whose settings and plan the large one copies.
    await fleet.dryRun();
    const database = new Database(fleet.databaseUrl.slice('sqlite:'.length));
    fill(database);
    const server = fleet.start('serve', '--listen', '127.0.0.1:0');
    serve = server;
    const url = await waitFor(() => /http:\S+/.exec(server.stdout())?.[0], { what: 'the page' });
    const figures = await measure(`${url}runs/${RUN}`, database, server.pid);
    database.close();
    const { firstPaintMs, updateMs, rssBytes, cpuShare } = figures;
    return {
      about: `A run in SQLite with ${PRODUCTS} products and ${INSTANCES} instances whose progress changes every second; one page is open in Chromium on the same two cores. Median of ${UPDATES} updates; CPU and memory are the server's own.`,
      rows: [
        { name: 'page', figures: { firstPaintMs, updateMs } },
        { name: 'server', figures: { rssMb: rssBytes / 1e6, cpuShare } },
      ],
      ratios: [
        { name: 'first paint / 1 s', value: firstPaintMs / 1_000, target: 'below 1' },
        { name: 'main thread for an update / 50 ms', value: updateMs / 50, target: 'below 1' },
        { name: 'RSS of the server / 150 MB', value: rssBytes / 150e6, target: 'below 1' },
        { name: 'CPU of the server / 5 % of a core', value: cpuShare / 0.05, target: 'below 1' },
      ],
    };
  } finally {
    serve?.kill('SIGTERM');
    await serve?.finished;
    await fleet.remove();
    shop.stop();
  }
}

const progressAt = (second: number): Progress => ({
  ...NO_PROGRESS,
  assigned: 7_937,
  pending: 7_937 - second,
  stored: second,
  requests: second,
  minGapMs: 10_001 + (second % 7),
  pageMs: 120,
  replies: { 200: second },
});

function fill(database: Database.Database): void {
  const now = Date.now();
  const copy = (table: string, where: string, changes: Record<string, unknown>): void => {
    const [row] = database.prepare(`select * from ${table} ${where} limit 1`).all() as Record<string, unknown>[];
    const values = { ...row, ...changes };
    const names = Object.keys(values);
    const sql = `insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`;
    database.prepare(sql).run(...Object.values(values));
  };
  database.transaction(() => {
    copy('crawlfleet_runs', '', {
      id: RUN,
      phase: 'crawling',
      planned: PRODUCTS,
      started_at: now,
      deadline_at: now + 4 * 3_600_000,
      finished_at: null,
      exit_code: null,
      reason: null,
      report: null,
    });
    for (let slot = 0; slot < INSTANCES; slot++) {
      copy('crawlfleet_launches', '', { run_id: RUN, slot, token: `token-${slot}` });
      copy('crawlfleet_instances', '', {
        run_id: RUN,
        slot,
        phase: 'crawling',
        instance_id: `i-${slot}`,
        address: `10.0.0.${slot}`,
        progress: JSON.stringify(progressAt(1)),
      });
    }
    const item = database.prepare('insert into crawlfleet_items (run_id, n, product_id) values (?, ?, ?)');
    for (let n = 1; n <= PRODUCTS; n++) item.run(RUN, n, `product-${n}`);
    const event = database.prepare(
      'insert into crawlfleet_events (run_id, at, kind, slot, epoch, to_state) values (?, ?, ?, ?, 1, ?)',
    );
    for (let slot = 0; slot < INSTANCES; slot++)
      for (const state of ['claimed', 'pending', 'booting', 'ready', 'crawling'])
        event.run(RUN, now, 'instance', slot, state);
    const sample = database.prepare('insert into crawlfleet_samples (run_id, at, sample) values (?, ?, ?)');
    for (let i = 0; i < SAMPLES; i++) {
      const atMs = now - (SAMPLES - i) * 60_000;
      const values = {
        atMs,
        stored: i * 4_000,
        gone: i,
        failed: i,
        requests: i * 4_002,
        replies: { 200: i * 4_000, 404: i, 503: i },
      };
      const rest = { minGapMs: 10_001, crawling: INSTANCES, banned: 0, endP50Ms: null, endP95Ms: null, usd: i / 200 };
      sample.run(RUN, atMs, JSON.stringify({ ...values, ...rest }));
    }
  })();
}

async function measure(url: string, database: Database.Database, pid: number) {
  const executablePath = await findTestBrowser();
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage({ viewport: { width: 1600, height: 1200 } });
    await page.goto(url);
    await page
      .locator('.cell')
      .nth(INSTANCES - 1)
      .waitFor();
    const firstPaintMs = await page.evaluate<number>(
      `performance.getEntriesByName('first-contentful-paint')[0].startTime`,
    );
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    const taskMs = async (): Promise<number> => {
      const { metrics } = await session.send('Performance.getMetrics');
      return metrics.find(({ name }) => name === 'TaskDuration')!.value * 1_000;
    };
    const update = database.prepare('update crawlfleet_instances set progress = ? where run_id = ?');
    const done = page.locator('.fact dd').first();
    const before = readProcess(pid).cpuMs;
    const startMs = performance.now();
    const costs: number[] = [];
    for (let second = 2; second < 2 + UPDATES; second++) {
      const taskBefore = await taskMs();
      update.run(JSON.stringify(progressAt(second)), RUN);
      await done.filter({ hasText: (second * INSTANCES).toLocaleString('en') }).waitFor();
      costs.push((await taskMs()) - taskBefore);
      await page.waitForTimeout(1_000 - ((performance.now() - startMs) % 1_000));
    }
    const cpuShare = (readProcess(pid).cpuMs - before) / (performance.now() - startMs);
    return { firstPaintMs, updateMs: median(costs), rssBytes: readProcess(pid).peakRssBytes, cpuShare };
  } finally {
    await browser.close();
  }
}

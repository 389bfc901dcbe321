/** The page of `orchestrator serve` in the machine's Chromium, beside the real command line on a shop. */
import { type Browser, chromium, type Page } from 'playwright';
import { inject } from 'vitest';
import type { RunDocument } from '../../orchestrator/core/read/run-documents.ts';
import { type RunningCommand, waitFor } from '../support/processes.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { productIds } from '../support/shop/product.ts';
import { type Fleet, makeFleet } from '../system/fleet.ts';

export const TOKEN = 'an-operator-token-for-tests';

export class DashboardStage {
  readonly shop: Shop;
  readonly fleet: Fleet;
  readonly browser: Browser;
  readonly url: string;
  readonly #serve: RunningCommand;

  private constructor(parts: { shop: Shop; fleet: Fleet; browser: Browser; url: string; serve: RunningCommand }) {
    [this.shop, this.fleet, this.browser, this.url] = [parts.shop, parts.fleet, parts.browser, parts.url];
    this.#serve = parts.serve;
  }

  static async open(products: number, server: Record<string, unknown> = {}): Promise<DashboardStage> {
    const shop = await startShop({ products });
    const fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids: productIds(products),
      // `serve` serves all tests of a file.
      timeoutMs: 900_000,
      config: { server, run: { deadline: '60s', grace: '15s', min_instances: 2 } },
    });
    const serve = fleet.start('serve', '--listen', '127.0.0.1:0');
    const url = await waitFor(() => /page: (http:\S+)\//.exec(serve.stdout())?.[1], { what: 'the page to be served' });
    const executablePath = inject('chromiumPath');
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
    return new DashboardStage({ shop, fleet, browser, url, serve });
  }

  /** Opens the page at this path; `faults` collects its errors and refused requests. */
  async page(path: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<{ page: Page; faults: string[] }> {
    const page = await this.browser.newPage(options);
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('dialog', (dialog) => {
      faults.push(`dialog ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    await page.goto(`${this.url}${path}`);
    return { page, faults };
  }

  async status(run: string): Promise<RunDocument> {
    const { stdout } = await this.fleet.run('status', run, '--json');
    return JSON.parse(stdout) as RunDocument;
  }

  /** The name of the newest run, once it is stored. */
  newestRun(except?: string): Promise<string> {
    return waitFor(
      async () => {
        const rows = await this.fleet
          .query('select id from crawlfleet_runs order by started_at desc limit 1')
          .catch(() => []);
        const id = rows[0]?.id as string | undefined;
        return id === except ? undefined : id;
      },
      { what: 'the run to be stored', everyMs: 100, timeoutMs: 120_000 },
    );
  }

  /** Gives a run this many instances, all like its first. */
  async widen(run: string, instances: number): Promise<void> {
    for (const table of ['crawlfleet_launches', 'crawlfleet_instances']) {
      const rows = await this.fleet.query(`select * from ${table} where run_id = '${run}' order by slot`);
      for (let slot = rows.length; slot < instances; slot++) {
        const row = { ...rows[0], slot, ...(table === 'crawlfleet_launches' ? { token: `token-${slot}` } : {}) };
        const values = Object.values(row).map((value) =>
          typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value),
        );
        await this.fleet.query(`insert into ${table} (${Object.keys(row).join(', ')}) values (${values.join(', ')})`);
      }
    }
  }

  /** Calls the API without the page. */
  call(path: string, options: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, options);
  }

  async close(): Promise<void> {
    await this.browser.close();
    this.#serve.kill('SIGTERM');
    await this.#serve.finished;
    await this.fleet.remove();
    await this.shop.stop();
  }
}

/** `npm run screenshots`: the pictures of the docs, from real dry runs against the demo shop, in both themes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright';
import { makeDemoFolder } from '../../examples/demo/demo-folder.ts';
import { findTestBrowser } from '../../test/support/chromium/find-browser.ts';
import type { BehaviourInput } from '../../test/support/shop/behaviour-schema.ts';
import { productIds } from '../../test/support/shop/product.ts';
import { startShop } from '../../test/support/shop/start-shop.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/orchestrator.js', import.meta.url));
const PRODUCTS = 900;
/** Nights before the one that is shown, each of another size. */
const NIGHTS = [0.9, 1, 0.95, 1, 0.6];

const parent = mkdtempSync(join(tmpdir(), 'crawlfleet-screenshots-'));
const shop = await startShop({ products: PRODUCTS });
const { configFile } = makeDemoFolder(parent, shop.productUrl, PRODUCTS, 50);
const orchestrator = (args: readonly string[], settings: Record<string, string> = {}) =>
  spawn(process.execPath, [LAUNCHER, ...args, '--config', configFile], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...settings },
  });
const NIGHT = ['run', '--deadline', '60s', '--dry-run', '--yes', '--quiet'];
const night = (...args: string[]) => orchestrator([...NIGHT, ...args]);

const serve = orchestrator(['serve', '--listen', '127.0.0.1:0']);
const executablePath = await findTestBrowser();
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const [said] = (await once(serve.stdout, 'data')) as [Buffer];
  const url = /http:\S+/.exec(said.toString())![0];
  for (const share of NIGHTS) await once(night('--limit', String(Math.round((PRODUCTS / 3) * share))), 'exit');
  await shop.setRules([{ prefix: 'P0001', times: 3, do: { type: 'status', status: 500 } }]);
  const live = night();
  const pages = await Promise.all(
    (['light', 'dark'] as const).map(async (colorScheme) => {
      const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 900 } });
      await page.goto(url);
      await page.getByText('crawling').first().waitFor();
      await page.locator('tbody a').first().click();
      return page;
    }),
  );
  await pages[0]!.locator('.fact', { hasText: 'Done' }).filter({ hasText: /[3-9]\d\s%/ }).waitFor();
  await save(pages, 'run');
  await once(live, 'exit');
  for (const page of pages) await page.goto(url);
  await save(pages, 'nights');
  await badNight();
  for (const page of pages) {
    await page.goto(url);
    await page.locator('tbody a').first().click();
  }
  await save(pages, 'bad-night');
} finally {
  await browser.close();
  serve.kill('SIGTERM');
  await once(serve, 'exit');
  await shop.stop();
  rmSync(parent, { recursive: true, force: true });
}

/** 147 pages that scripts build, 27 that the shop cannot make, and a ban that no other address may make up for. */
async function badNight(): Promise<void> {
  const ids = productIds(PRODUCTS);
  const every = (n: number, from: number): string[] => ids.filter((_, i) => i % n === from);
  const rules = (some: readonly string[], answer: BehaviourInput) => some.map((id) => ({ id, do: answer }));
  await shop.setRules([
    ...rules(every(6, 0).slice(0, 147), { type: 'script-built' }),
    ...rules(every(30, 1).slice(0, 27), { type: 'status', status: 500 }),
  ]);
  const answer = { type: 'status', status: 429, retryAfter: 'tomorrow' } as const;
  await shop.setBanPolicies([{ when: { request: 30 }, atMost: 1, answer }]);
  const settings = { FLEET_SITE_INTERVAL: '120ms', FLEET_RUN_MIN_INSTANCES: '3', FLEET_RUN_MAX_INSTANCES: '3' };
  await once(orchestrator(NIGHT, settings), 'exit');
}

async function save(pages: readonly Page[], name: string): Promise<void> {
  for (const [i, page] of pages.entries()) {
    await page.locator('h1').waitFor();
    await page.locator('canvas, .multiples svg').first().waitFor();
    const path = fileURLToPath(new URL(`${name}-${i === 0 ? 'light' : 'dark'}.png`, import.meta.url));
    await page.screenshot({ path });
    process.stdout.write(`wrote ${path}\n`);
  }
}

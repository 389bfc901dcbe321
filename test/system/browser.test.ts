/**
 * F23, F24 and F32 with a real Chromium: pages that scripts build, and pages that attack their renderer.
 *
 * @module-tag nightly
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { LURE_NAMES } from '../support/shop/behaviours/outward.ts';
import { waitFor } from '../support/processes.ts';
import type { CanaryServer } from '../support/shop/canary.ts';
import { startCanary } from '../support/shop/canary.ts';
import { productIds } from '../support/shop/product.ts';
import type { Shop } from '../support/shop/start-shop.ts';
import { startShop } from '../support/shop/start-shop.ts';
import type { Fleet } from './fleet.ts';
import { makeFleet, readReport } from './fleet.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 13;
const INTERVAL_MS = 500;

describe('a crawl with a browser', () => {
  let shop: Shop;
  let canary: CanaryServer;
  let fleet: Fleet;

  beforeAll(async () => {
    shop = await startShop({ seed: SEED, products: 100 });
    canary = await startCanary('127.0.0.78');
    await shop.setCanary(canary.url);
  });
  afterAll(async () => {
    await shop.stop();
    await canary.stop();
  });
  beforeEach(() => shop.reset());
  afterEach(() => fleet.remove());

  /** One instance: two cores can run only one browser. */
  async function prepare(ids: readonly string[], site: Record<string, unknown> = {}, deadline = '100s') {
    fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids,
      config: {
        site: { render: 'browser', interval: `${INTERVAL_MS}ms`, timeout: '5s', ...site },
        run: { deadline, min_instances: 1, max_instances: 1, max_failed: '100%' },
      },
    });
  }

  async function failures(): Promise<Record<string, string>> {
    const rows = await fleet.query("select product_id, reason from crawlfleet_items where outcome = 'failed'");
    return Object.fromEntries(rows.map((row) => [String(row.product_id), String(row.reason)]));
  }

  const chromiums = () => fleet.leftovers().filter(({ command }) => command.includes('--type='));

  it('stores what scripts build, requests nothing it does not need, and leaves no process behind', async () => {
    expect(inject('chromiumPath')).not.toBe('');
    const ids = ['js-1', 'jsfetch-1', 'assets-1', 'neverloaded-1', '404-1', ...productIds(5)];
    await prepare(ids);
    const { report, stderr } = await fleet.dryRun();
    const stored = ids.filter((id) => id !== '404-1');
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      products: { stored: stored.length, gone: 1, failed: 0 },
    });
    expect(report.rendered).toBeGreaterThanOrEqual(stored.length);
    await expectTrueRows(fleet, SEED, stored);
    const stats = await shop.stats();
    expect(stats.assets).toEqual({});
    expect(stats.minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
    expect(Object.keys(stats.addresses)).toEqual([report.shards[0]?.address]);
    expect(fleet.leftovers()).toEqual([]);
  });

  it('auto: uses the browser only where the page without scripts lacks the fields', async () => {
    const plain = productIds(8);
    const ids = [...plain, 'js-1', 'js-2'];
    await prepare(ids, { render: 'auto' });
    const { report, stderr } = await fleet.dryRun();
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      exitCode: 0,
      products: { stored: ids.length },
      rendered: 2,
    });
    await expectTrueRows(fleet, SEED, ids);
    expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
  });

  it('F23: pages that never end, spin, eat memory or cannot be left cost their own product only', async () => {
    const bad = ['blocked-1', 'hang-1', 'spin-1', 'untitled-1'];
    const nasty = ['popups-1', 'unleavable-1', 'spinlate-1', 'download-1'];
    const good = productIds(6);
    await prepare([...good, ...nasty, ...bad], {}, '150s');
    const { report, stderr } = await fleet.dryRun();
    const failed = await failures();
    expect(Object.keys(failed), stderr).toEqual(expect.arrayContaining(bad));
    for (const id of good) expect(failed).not.toHaveProperty(id);
    expect(failed).toMatchObject({ 'blocked-1': 'timeout', 'hang-1': 'timeout', 'spin-1': 'timeout' });
    expect(report).toMatchObject({ bans: [], instances: { launched: 1, replaced: 0 } });
    expect(fleet.leftovers()).toEqual([]);
    await expectTrueRows(fleet, SEED);
  });

  it('F23: the browser is killed in the middle: it restarts and nothing is lost', async () => {
    const ids = productIds(14);
    await prepare(ids);
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 4, { what: 'the crawl to begin', timeoutMs: 90_000 });
    const renderers = chromiums().filter(({ command }) => command.includes('--type=renderer'));
    expect(renderers.length).toBeGreaterThan(0);
    for (const { pid } of renderers) process.kill(pid, 'SIGKILL');
    await waitFor(async () => (await shop.stats()).requests >= 8, { what: 'the crawl to go on', timeoutMs: 60_000 });
    const browser = fleet
      .leftovers()
      .find(({ command }) => /remote-debugging/.test(command) && !/--type=/.test(command));
    if (browser) process.kill(browser.pid, 'SIGKILL');
    expect(browser).toBeDefined();
    const result = await run.finished;
    expect(readReport(result), result.stderr).toMatchObject({ exitCode: 0, products: { stored: ids.length } });
    expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
    await expectTrueRows(fleet, SEED, ids);
    expect(fleet.leftovers()).toEqual([]);
  });

  it('F32: whatever a page tries, no instance visits the canary', async () => {
    const lures = LURE_NAMES.map((how, i) => ({ how, id: `P0005${i}`.replace(/^P0005(\d\d)$/, 'P000$1') }));
    const ids = [...lures.map(({ id }) => id), 'offsite-1', 'imds-1', 'tofile-1', 'todata-1'];
    await shop.addProducts(ids);
    await shop.setRules(lures.map(({ how, id }) => ({ id, do: { type: 'lure', how } as const })));
    await prepare(ids, { timeout: '4s' }, '150s');
    const { stderr } = await fleet.dryRun();
    expect(canary.visits(), stderr).toEqual([]);
    const failed = await failures();
    for (const id of ['offsite-1', 'imds-1']) expect(failed, stderr).toHaveProperty(id, 'redirect');
    expect(failed).toHaveProperty('tofile-1');
    expect(failed).toHaveProperty('todata-1');
    await expectTrueRows(fleet, SEED);
  });

  it('F28: a browser is banned like any other visitor', async () => {
    await prepare(productIds(20));
    await shop.setBanPolicies([{ when: { request: 4 }, coolDownMs: null, answer: { type: 'one-line-script' } }]);
    const { exitCode, report, stderr } = await fleet.dryRun();
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      state: 'banned',
      products: { stored: 3, gone: 0, failed: 17 },
    });
    expect(exitCode).toBe(18);
    await expectTrueRows(fleet, SEED);
  });
});

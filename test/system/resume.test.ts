/** The main server is killed in mid-run; `resume` ends with the same rows. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ENGINES } from '../support/mariadb/database.ts';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type Fleet, makeFleet, readReport } from './fleet.ts';

const IDS = productIds(150);
/** A crawl that outlasts the refusal of a second main server. */
const MANY_IDS = productIds(270);

for (const engine of ENGINES)
  describe(`resume on ${engine}`, { tags: engine === 'sqlite' ? ['nightly'] : [] }, () => {
    let shop: Shop;
    let fleet: Fleet;

    beforeEach(async () => {
      shop = await startShop({ products: MANY_IDS.length });
      fleet = await makeFleet({ engine, productUrl: shop.productUrl, ids: IDS });
    });
    afterEach(async () => {
      await fleet.remove();
      await shop.stop();
    });

    /** Kills the main server when the shop has received this many requests. */
    async function killAfter(requests: number): Promise<void> {
      const run = fleet.start('run', '--dry-run', '--json');
      await waitFor(async () => (await shop.stats()).requests >= requests, {
        what: `${requests} requests`,
        timeoutMs: 60_000,
      });
      run.kill('SIGKILL');
      expect((await run.finished).signal).toBe('SIGKILL');
    }

    it('F41: resumes a killed run and ends with every row, none twice', async () => {
      await killAfter(30);
      const resumed = await fleet.run('resume', '--json');
      const report = readReport(resumed);
      expect(report, resumed.stderr).toMatchObject({
        state: 'completed',
        exitCode: 0,
        products: { planned: 150, stored: 150, failed: 0 },
      });
      const rows = await fleet.query('select product_id from product_snapshots');
      expect(rows.map((r) => String(r.product_id)).sort()).toEqual([...IDS].sort());
      // Instances continued on their own: the shop received no request twice.
      const asked = (await shop.log()).filter((a) => a.id !== null).map((a) => a.path);
      expect(asked).toHaveLength(new Set(asked).size);
      expect(fleet.leftovers()).toEqual([]);
      expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    });

    it('F41: refuses a second main server while the first one lives', { tags: ['nightly'] }, async () => {
      await fleet.addProducts(MANY_IDS.slice(IDS.length));
      const run = fleet.start('run', '--dry-run', '--json', '--deadline', '90s');
      await waitFor(async () => (await shop.stats()).requests >= 5, { what: 'the crawl to begin', timeoutMs: 60_000 });
      const second = await fleet.run('resume', '--json');
      expect(second.exitCode).toBe(20);
      expect(JSON.parse(second.stdout)).toMatchObject({ error: { code: 'lock-held' } });
      expect((await run.finished).exitCode).toBe(0);
    });

    it('reports when there is nothing to resume', async () => {
      const nothing = await fleet.run('resume', '--json');
      expect(nothing.exitCode).toBe(2);
      expect(JSON.parse(nothing.stdout)).toMatchObject({ error: { code: 'run-unknown' } });
    });
  });

describe('a main server that has lost its lock', { tags: ['nightly'] }, () => {
  it('leaves the sandbox to the one that resumes the run', async () => {
    const shop = await startShop({ products: 60 });
    const fleet = await makeFleet({ engine: 'sqlite', productUrl: shop.productUrl, ids: productIds(60) });
    try {
      const run = fleet.start('run', '--dry-run', '--json');
      await waitFor(async () => (await shop.stats()).requests >= 5, { what: 'the crawl to begin', timeoutMs: 60_000 });
      // As another main server does that finds it frozen.
      await fleet.query('update crawlfleet_locks set fence = fence + 1, owner = null, token = null, expires_at = 0');
      expect((await run.finished).exitCode).toBe(20);
      expect(fleet.leftovers().map(({ command }) => command)).toContainEqual(expect.stringContaining('sandbox/main'));
      const resumed = await fleet.run('resume', '--json');
      expect(readReport(resumed), resumed.stderr).toMatchObject({ exitCode: 0, products: { stored: 60 } });
      expect(resumed.stderr).not.toContain('sandbox of this run is gone');
      expect(fleet.leftovers()).toEqual([]);
    } finally {
      await fleet.remove();
      await shop.stop();
    }
  });
});

describe('Ctrl-C', () => {
  let shop: Shop;
  let fleet: Fleet;

  beforeEach(async () => {
    shop = await startShop({ products: 300 });
    fleet = await makeFleet({ engine: 'sqlite', productUrl: shop.productUrl, ids: productIds(300) });
  });
  afterEach(async () => {
    await fleet.remove();
    await shop.stop();
  });

  it('once stops the run and keeps its results', { tags: ['nightly'] }, async () => {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 30, { what: 'the crawl to begin', timeoutMs: 60_000 });
    run.kill('SIGINT');
    const result = await run.finished;
    const report = readReport(result);
    expect(result.exitCode).toBe(11);
    expect(report).toMatchObject({ state: 'cancelled', reason: 'stopped', products: { planned: 300 } });
    expect(report.products.stored).toBeGreaterThanOrEqual(25);
    expect(report.products.reasons.cancelled).toBe(300 - report.products.stored);
    expect(await fleet.query('select product_id from product_snapshots')).toHaveLength(report.products.stored);
    expect(fleet.leftovers()).toEqual([]);
  });

  it('is what `orchestrator stop` does from another terminal', { tags: ['nightly'] }, async () => {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 10, {
      what: 'the crawl to begin',
      timeoutMs: 60_000,
    });
    const asked = await fleet.run('stop', '--json');
    expect(JSON.parse(asked.stdout)).toMatchObject({ requested: 'stop' });
    const result = await run.finished;
    expect(result.exitCode).toBe(11);
    expect(readReport(result)).toMatchObject({ state: 'cancelled', reason: 'stopped' });
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    expect((await fleet.run('stop', '--json')).exitCode).toBe(2);
  });

  it('with SIGTERM leaves at once, and resume continues the run', { tags: ['nightly'] }, async () => {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 10, { what: 'the crawl to begin', timeoutMs: 60_000 });
    run.kill('SIGTERM');
    expect((await run.finished).exitCode).toBe(11);
    expect(fleet.leftovers().length).toBeGreaterThan(0);
    const resumed = await fleet.run('resume', '--json');
    expect(readReport(resumed).products).toMatchObject({ planned: 300, stored: 300 });
    expect(fleet.leftovers()).toEqual([]);
  });
});

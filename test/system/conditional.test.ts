/** `site.conditional`: nights that read only changed pages, and a shop that answers 304 to everything. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type Fleet, makeFleet } from './fleet.ts';
import { expectSound } from './soundness.ts';

const CHANGED = 'P00011';

eachEngineByDay('conditional requests', (engine) => {
  let shop: Shop;
  let fleet: Fleet;
  let first: RunReport;
  const rows = () =>
    fleet.query(
      'select product_id, title, price, brand, rating, crumbs, url, run_id from product_snapshots order by product_id',
    );
  /** Status of each request for a product since the arrivals were forgotten. */
  const statuses = async (): Promise<number[]> =>
    (await shop.log()).filter(({ kind }) => kind === 'page').map(({ status }) => status!);

  beforeAll(async () => {
    shop = await startShop({ products: 20 });
    fleet = await makeFleet({
      engine,
      productUrl: shop.productUrl,
      ids: productIds(20),
      config: { site: { conditional: true }, run: { deadline: '60s' }, results: { history: 'changes' } },
    });
    ({ report: first } = await fleet.dryRun());
  });
  afterAll(async () => {
    await fleet?.remove();
    await shop?.stop();
  });

  it(
    'keep the rows of unchanged pages, read the changed ones, and report the savings',
    { tags: ['nightly'] },
    async () => {
      expect(first).toMatchObject({ exitCode: 0, products: { stored: 20 } });
      expect(first.unchanged).toBeUndefined();
      const before = await rows();
      await shop.reset();
      await shop.setRules([{ id: CHANGED, do: { type: 'missing-field', fields: ['json-ld'] } }]);
      const { report } = await fleet.dryRun();
      expect(report).toMatchObject({ exitCode: 0, products: { planned: 20, stored: 20 }, unchanged: { products: 19 } });
      const asked = await statuses();
      expect(asked.filter((status) => status === 304)).toHaveLength(19);
      // The changed product, and pages that prove each address.
      expect(asked.filter((status) => status === 200)).toHaveLength(1 + report.politeness.canaries);
      // An address proves itself when it has nothing left to crawl: once, unless another chunk reaches it after that.
      const [chunks] = await fleet.query(`select count(*) as n from crawlfleet_chunks where run_id = '${report.run}'`);
      expect(report.politeness.canaries).toBeLessThanOrEqual(Number(chunks!.n));
      const page = await fetch(shop.productUrl.replace('{id}', 'P00001'));
      const bytes = (await page.arrayBuffer()).byteLength;
      expect(report.unchanged!.savedBytes).toBeGreaterThan(0.9 * 19 * bytes);
      expect(report.unchanged!.savedBytes).toBeLessThan(1.1 * 19 * bytes);
      const after = await rows();
      const expected = before.map((row): Record<string, unknown> => ({ ...row, run_id: report.run }));
      expect(after).toEqual(
        expected.map((row) => (row.product_id === CHANGED ? { ...row, brand: null, rating: null } : row)),
      );
      const changes = await fleet.query('select distinct product_id, run_id from product_snapshots_history');
      expect(changes).toEqual([{ product_id: CHANGED, run_id: report.run }]);
      expect((await fleet.run('report', report.run)).stdout).toMatch(
        /unchanged +19 of the stored \(304\), [\d.]+KB not fetched/,
      );
      const status = JSON.parse((await fleet.run('status', report.run, '--json')).stdout) as Record<string, unknown>;
      expect(status).toMatchObject({ report: { unchanged: report.unchanged } });
      await expectSound(fleet, report, shop);
    },
  );

  it('do not accept 304 from a shop that answers nothing else', { tags: ['nightly'] }, async () => {
    const before = await rows();
    await shop.reset();
    await shop.setRules([{ prefix: '', do: { type: 'not-modified' } }]);
    const { report } = await fleet.dryRun();
    expect(report.products).toMatchObject({ stored: 0, failed: 20, reasons: { 'site-changed': 20 } });
    expect(report.unchanged).toBeUndefined();
    expect(await rows()).toEqual(before);
    await expectSound(fleet, report, shop);
  });
});

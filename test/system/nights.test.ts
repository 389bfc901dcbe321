/** Two nights of the same list: changes are recorded, and old ledgers are removed; on both databases. */
import { beforeAll, expect, it } from 'vitest';
import type { ProductDocument } from '../../orchestrator/core/read/product-document.ts';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { productIds } from '../support/shop/product.ts';
import { useFleet, useStage } from './stage.ts';

eachEngineByDay('products.recrawl', (engine) => {
  const { shop, fleet, open } = useStage({ products: 20 });

  it(
    'crawls what is due, carries over what exceeds the capacity, and launches nothing when nothing is due',
    { tags: ['nightly'] },
    async () => {
      const products = {
        query: `select id, case when id = 'P00011' then 1 else 0 end as popularity from products`,
        recrawl: { base: '30d', score: 'popularity', capacity: 12 },
        min_rows: 20,
      };
      await open(undefined, { run: { deadline: '60s' }, products }, engine);
      const first = await fleet.dryRun();
      expect(first.report.products).toMatchObject({ planned: 12, stored: 12 });
      const { stdout } = await fleet.run('plan', '--dry-run');
      expect(stdout).toMatch(/due +8 of 20 listed, 8 never crawled/);
      expect(stdout).toMatch(/keeping up +takes 1 product a night/);
      expect((await fleet.dryRun()).report.products).toMatchObject({ planned: 8, stored: 8, usual: 20 });
      const third = await fleet.run('run', '--dry-run', '--yes');
      expect([third.exitCode, third.stdout]).toEqual([0, expect.stringContaining('No product is due')]);
      // A product that its owner has changed since, and one whose time has come.
      await fleet.query(`update product_snapshots_crawls set crawled_at = crawled_at - 5 * 86400000`);
      expect((await fleet.dryRun()).report.products).toMatchObject({ planned: 1, stored: 1 });
      expect((await shop.log()).filter(({ path }) => path.startsWith('/item/'))).toHaveLength(21);
    },
  );
});

eachEngineByDay('nights', (engine) => {
  const config = { run: { deadline: '60s' }, results: { history: 'changes' } };
  const { fleet } = useFleet({ products: 20 }, { engine, ids: productIds(20), config });
  let first: RunReport;
  let second: RunReport;

  beforeAll(async () => {
    ({ report: first } = await fleet.dryRun());
    // As if the shop had shown something else.
    await fleet.query(`update product_snapshots set title = 'Old lamp', price = 7 where product_id = 'P00011'`);
    ({ report: second } = await fleet.dryRun());
  });
  it(
    'shows the changes that the second night found in a product, and none in the others',
    { tags: ['nightly'] },
    async () => {
      const read = async (id: string): Promise<ProductDocument> =>
        JSON.parse((await fleet.run('product', id, '--json')).stdout) as ProductDocument;
      const { rows, changes } = await read('P00011');
      const { title, price } = rows[0]!.rows[0]! as { title: string; price: number };
      expect(changes).toMatchObject([
        {
          table: 'product_snapshots',
          changes: [
            { run: second.run, row: null, field: 'price', from: '7', to: String(price) },
            { run: second.run, row: null, field: 'title', from: 'Old lamp', to: title },
          ],
        },
      ]);
      expect((await read('P00012')).changes).toEqual([]);
      expect((await fleet.run('product', 'P00011')).stdout).toContain(`title: Old lamp → ${title}`);
    },
  );

  it('removes old ledgers, and says so when one is requested', { tags: ['nightly'] }, async () => {
    expect((await fleet.run('prune')).stderr).toContain('there is no retention');
    expect((await fleet.run('prune', '--older-than', '1ms')).stderr).toContain('Add --yes');
    const { exitCode, stdout } = await fleet.run('prune', '--older-than', '1ms', '--yes', '--json');
    expect(exitCode).toBe(0);
    expect((JSON.parse(stdout) as { runs: string[] }).runs.toSorted()).toEqual([first.run, second.run].toSorted());
    for (const command of ['verify', 'explain', 'retry']) {
      const asked = await fleet.run(command, first.run, ...(command === 'retry' ? ['--dry-run'] : []));
      expect([asked.exitCode, asked.stderr]).toEqual([2, expect.stringContaining('were removed on')]);
    }
    expect((await fleet.run('report', first.run)).stdout).toContain('20 planned = 20 stored');
    expect((await fleet.run('export', second.run)).stdout.trim().split('\r\n')).toHaveLength(21);
  });
});

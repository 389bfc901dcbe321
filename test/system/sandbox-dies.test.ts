/**
 * The sandbox is killed in mid-run: EC2, the load balancer and every instance are gone at once.
 *
 * @module-tag nightly
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type Fleet, makeFleet, readReport } from './fleet.ts';

const IDS = productIds(120);

describe('when the sandbox dies', () => {
  let shop: Shop;
  let fleet: Fleet;

  beforeEach(async () => {
    shop = await startShop({ products: 120 });
    fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids: IDS,
      config: { run: { deadline: '90s' } },
    });
  });
  afterEach(async () => {
    await fleet.remove();
    await shop.stop();
  });

  function sandboxPid(): number {
    return fleet.leftovers().find(({ command }) => command.includes('sandbox/main'))!.pid;
  }

  async function expectAllStored(): Promise<void> {
    const rows = await fleet.query('select product_id from product_snapshots');
    expect(rows.map((r) => String(r.product_id)).sort()).toEqual([...IDS].sort());
    expect(fleet.leftovers()).toEqual([]);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  }

  it('the live main server starts another one and the run ends with every row', async () => {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 40, { what: 'the crawl to begin', timeoutMs: 60_000 });
    process.kill(sandboxPid(), 'SIGKILL');
    const result = await run.finished;
    expect(readReport(result), result.stderr).toMatchObject({ exitCode: 0, products: { stored: 120 } });
    await expectAllStored();
  });

  it('together with the main server, resume makes everything again and ends with every row', async () => {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 40, { what: 'the crawl to begin', timeoutMs: 60_000 });
    const pid = sandboxPid();
    run.kill('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await run.finished;
    const result = await fleet.run('resume', '--json');
    expect(readReport(result), result.stderr).toMatchObject({ exitCode: 0, products: { stored: 120 } });
    await expectAllStored();
  });
});

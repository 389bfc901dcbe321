/**
 * Faults of instances and launches on real parts: the sandbox injects them.
 *
 * @module-tag nightly
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildBundle } from '../../userdata/bundle.ts';
import { waitFor } from '../support/processes.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox/start-sandbox.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { countSlowBoots, withoutSlowBoots } from '../support/slow-boots.ts';
import { type Fleet, makeFleet, readReport } from './fleet.ts';

const IDS = productIds(120);

interface Status {
  instances: { id: string; state: string; address: string; pid: number | null }[];
}

describe('faulty instances and launches', () => {
  let bundleHash: string;
  let shop: Shop;
  let sandbox: TestSandbox;
  let fleet: Fleet;

  beforeAll(async () => {
    bundleHash = (await buildBundle()).sha256;
    shop = await startShop({ products: 300 });
  });
  afterAll(() => shop.stop());
  beforeEach(async () => {
    await shop.reset();
    sandbox = await startSandbox({ allowBundles: [bundleHash] });
    fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids: IDS,
      config: { aws: { endpoint: sandbox.endpoint } },
    });
  });
  afterEach(async () => {
    await fleet.remove();
    await sandbox.stop();
  });

  const status = async (): Promise<Status> => (await sandbox.control('GET', 'status')) as Status;
  const alive = async (): Promise<number> =>
    (await status()).instances.filter((i) => i.state !== 'terminated' && i.state !== 'shutting-down').length;

  async function expectAllStored(): Promise<void> {
    const rows = await fleet.query('select product_id from product_snapshots');
    expect(rows.map((r) => String(r.product_id)).sort()).toEqual([...IDS].sort());
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    expect(await alive()).toBe(0);
  }

  it('F22: fences an instance that was frozen for longer than allowed, and counts none of its late results twice', async () => {
    const run = fleet.start('run', '--dry-run', '--json', '--deadline', '60s');
    await waitFor(async () => (await shop.stats()).requests >= 20, { what: 'the crawl to begin', timeoutMs: 60_000 });
    const victim = (await status()).instances.find((i) => i.pid !== null)!;
    process.kill(victim.pid!, 'SIGSTOP');
    const terminated = () => status().then((s) => s.instances.find((i) => i.id === victim.id)?.state !== 'running');
    const rows = () =>
      fleet.query(`select reason from crawlfleet_instances where instance_id = '${victim.id}' and reason is not null`);
    await waitFor(async () => (await rows()).length > 0, { what: 'the loss', timeoutMs: 60_000 });
    // A frozen process cannot handle a request to end: it wakes after the run has moved on.
    if (!(await terminated())) process.kill(victim.pid!, 'SIGCONT');
    const result = await run.finished;
    const report = readReport(result);
    expect(report, result.stderr).toMatchObject({ exitCode: 0, products: { planned: 120, stored: 120, failed: 0 } });
    expect(await rows()).toEqual([{ reason: 'heartbeat-lost' }]);
    await expectAllStored();
  });

  it.each(['before EC2 is called', 'after the first launch'])(
    'F3: a run whose main server was killed %s is resumed, and no machine is launched twice',
    async (when) => {
      const run = fleet.start('run', '--dry-run', '--json', '--deadline', '60s');
      if (when === 'after the first launch')
        await waitFor(async () => (await status()).instances.length > 0, { what: 'a machine', timeoutMs: 60_000 });
      else await waitFor(async () => (await claims()) > 0, { what: 'a claim', timeoutMs: 60_000 });
      run.kill('SIGKILL');
      await run.finished;
      const resumed = await fleet.run('resume', '--json');
      const report = readReport(resumed);
      expect(withoutSlowBoots(report), resumed.stderr).toMatchObject({
        exitCode: 0,
        instances: { planned: 3, launched: 3, replaced: 0, terminated: 3 },
        products: { planned: 120, stored: 120 },
      });
      expect((await status()).instances).toHaveLength(3 + countSlowBoots(report));
      await expectAllStored();
    },
  );

  /** Claims in the ledger; 0 while its tables do not exist. */
  const claims = (): Promise<number> =>
    fleet.query('select slot from crawlfleet_launches').then(
      (found) => found.length,
      () => 0,
    );
});

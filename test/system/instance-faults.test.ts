/**
 * Faults of instances and launches on real parts: the sandbox injects them.
 *
 * @module-tag nightly
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TAG } from '../../orchestrator/cloud/compute.ts';
import { buildBundle } from '../../userdata/bundle.ts';
import { createAwsAdapters } from '../../orchestrator/cloud/aws-clients.ts';
import { waitFor } from '../support/processes.ts';
import type { TestSandbox } from '../support/sandbox/start-sandbox.ts';
import { startSandbox } from '../support/sandbox/start-sandbox.ts';
import { productIds } from '../support/shop/product.ts';
import type { Shop } from '../support/shop/start-shop.ts';
import { startShop } from '../support/shop/start-shop.ts';
import { countSlowBoots, withoutSlowBoots } from '../support/slow-boots.ts';
import type { Fleet } from './fleet.ts';
import { makeFleet, readReport } from './fleet.ts';

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
  const misbehave = (...rules: unknown[]) => sandbox.control('POST', 'faults', rules);
  const alive = async (): Promise<number> =>
    (await status()).instances.filter((i) => i.state !== 'terminated' && i.state !== 'shutting-down').length;

  async function expectAllStored(): Promise<void> {
    const rows = await fleet.query('select product_id from product_snapshots');
    expect(rows.map((r) => String(r.product_id)).sort()).toEqual([...IDS].sort());
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    expect(await alive()).toBe(0);
  }

  it('F10: replaces an instance that never sends hello once, and keeps its console output', async () => {
    await misbehave({ what: 'silent-boot', count: 1 });
    const { exitCode, report, stderr } = await fleet.dryRun('--deadline', '60s');
    expect(report, stderr).toMatchObject({
      exitCode: 0,
      instances: { planned: 3, launched: 4, replaced: 1, terminated: 4 },
    });
    expect(exitCode).toBe(0);
    expect(report.notes.join('\n')).toMatch(/was given up: no-hello; its console ends: .+/);
    expect(countSlowBoots(report)).toBe(0);
    await expectAllStored();
  });

  it('F10: fails with the console output when no instance ever sends hello', async () => {
    await misbehave({ what: 'silent-boot', count: 100 });
    const { exitCode, report, stderr } = await fleet.dryRun('--deadline', '60s');
    expect(report, stderr).toMatchObject({
      state: 'failed',
      products: { planned: 120, stored: 0, failed: 120, reasons: { 'lost-instance': 120 } },
      instances: { launched: 6, terminated: 6 },
    });
    expect(exitCode).toBe(12);
    expect(report.notes.join('\n')).toContain('its console ends:');
    expect(await alive()).toBe(0);
  });

  it('F21: continues after kill -9 of the crawl API: nothing lost, one product requested again at most, pace kept', async () => {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 30, { what: 'the crawl to begin', timeoutMs: 60_000 });
    const victim = (await status()).instances.find((i) => i.pid !== null)!;
    process.kill(victim.pid!, 'SIGKILL');
    const report = readReport(await run.finished);
    expect(withoutSlowBoots(report)).toMatchObject({
      exitCode: 0,
      instances: { launched: 3, replaced: 0 },
      products: { stored: 120 },
    });
    const asked = (await shop.log()).filter((a) => a.id !== null).map((a) => a.path);
    expect(asked.length - new Set(asked).size).toBeLessThanOrEqual(1);
    expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(200);
    await expectAllStored();
  });

  it('F19: offers again what a terminated instance had not crawled', async () => {
    const run = fleet.start('run', '--dry-run', '--json', '--deadline', '60s');
    await waitFor(async () => (await shop.stats()).requests >= 30, { what: 'the crawl to begin', timeoutMs: 60_000 });
    const victim = (await status()).instances[0]!;
    const { compute, close } = createAwsAdapters({
      region: sandbox.region,
      endpoint: sandbox.endpoint,
      credentials: { accessKeyId: 'x', secretAccessKey: 'y' },
    });
    await compute.terminate([victim.id]);
    close();
    const result = await run.finished;
    const report = readReport(result);
    expect(report, result.stderr).toMatchObject({ exitCode: 0, products: { planned: 120, stored: 120 } });
    expect(report.notes.join('\n')).toMatch(new RegExp(`${victim.id}\\) was given up: ec2-`));
    await expectAllStored();
  });

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

  it('F1: adopts the instance when the reply of RunInstances is lost, and launches no second one', async () => {
    await misbehave({ what: 'lost-reply', action: 'RunInstances', count: 2 });
    const { report, stderr } = await fleet.dryRun();
    expect(withoutSlowBoots(report), stderr).toMatchObject({ exitCode: 0, instances: { launched: 3, replaced: 0 } });
    const { instances } = await status();
    expect(instances).toHaveLength(3 + countSlowBoots(report));
    await expectAllStored();
  });

  it('F5: uses another pool when one has no capacity', async () => {
    await misbehave({ what: 'error', action: 'RunInstances', code: 'InsufficientInstanceCapacity', count: 2 });
    const { report, stderr } = await fleet.dryRun();
    expect(withoutSlowBoots(report), stderr).toMatchObject({ exitCode: 0, instances: { launched: 3 } });
    await expectAllStored();
  });

  it('F5: ends with exit code 19 when there is no capacity anywhere', async () => {
    await misbehave({ what: 'error', action: 'RunInstances', code: 'InsufficientInstanceCapacity', count: 1_000 });
    const { exitCode, report } = await fleet.dryRun();
    expect(report).toMatchObject({ state: 'failed', instances: { launched: 0 }, products: { failed: 120 } });
    expect(exitCode).toBe(19);
    expect((await status()).instances).toEqual([]);
  });

  it('stops at once, with exit code 4, when AWS does not allow the launch', async () => {
    await misbehave({ what: 'error', action: 'RunInstances', code: 'UnauthorizedOperation', count: 1_000 });
    const { exitCode, report } = await fleet.dryRun();
    expect(exitCode).toBe(4);
    expect(report.notes.join('\n')).toContain('UnauthorizedOperation');
  });

  it('puts every tag into the launch call itself', async () => {
    const { report } = await fleet.dryRun();
    const { compute, close } = createAwsAdapters({
      region: sandbox.region,
      endpoint: sandbox.endpoint,
      credentials: { accessKeyId: 'x', secretAccessKey: 'y' },
    });
    const shown = await compute.list({ key: TAG.run, value: report.run });
    close();
    expect(shown).toHaveLength(3 + countSlowBoots(report));
    for (const { tags } of shown) expect(Object.keys(tags)).toEqual(expect.arrayContaining(Object.values(TAG)));
  });
});

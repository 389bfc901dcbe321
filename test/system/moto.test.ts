/**
 * Whole dry runs at a third-party endpoint: EC2 and S3 are moto's, its mock instances are booted by the
 * sandbox's host, the load balancer is the sandbox's. The rows are real, and nothing is left in moto or on this host.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  findMotoServer,
  type MotoServer,
  sayMotoIsMissing,
  startMotoServer,
} from '../support/endpoints/moto-server.ts';
import { waitFor } from '../support/processes.ts';
import { clientsFor } from '../support/sandbox/clients.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { withoutSlowBoots } from '../support/slow-boots.ts';
import { type Fleet, makeFleet, readReport } from './fleet.ts';

const IDS = productIds(40);
const MOTO = await findMotoServer();
if (MOTO === null) sayMotoIsMissing('whole dry runs at moto');

describe.skipIf(MOTO === null)('a dry run at moto', { timeout: 180_000 }, () => {
  let moto: MotoServer;
  let shop: Shop;
  let fleet: Fleet;

  beforeAll(async () => {
    moto = await startMotoServer(MOTO!);
    shop = await startShop({ products: 100 });
  });
  afterAll(async () => {
    await shop?.stop();
    await moto?.stop();
  });
  beforeEach(async () => {
    await shop.reset();
    fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids: IDS,
      config: { aws: { endpoint: moto.endpoint }, run: { deadline: '60s', grace: '30s', min_instances: 2 } },
    });
  });
  afterEach(() => fleet?.remove());

  /** Of every run so far, in any state but terminated. */
  async function aliveAtMoto(): Promise<string[]> {
    const clients = clientsFor({ endpoint: moto.endpoint, region: 'ap-northeast-1' });
    try {
      const { Reservations } = await clients.ec2.describeInstances({});
      const instances = Reservations!.flatMap((r) => r.Instances!);
      expect(instances.length).toBeGreaterThanOrEqual(2);
      return instances.filter((i) => i.State?.Name !== 'terminated').map((i) => i.InstanceId!);
    } finally {
      clients.destroy();
    }
  }

  async function expectAllStored(): Promise<void> {
    const rows = await fleet.query('select product_id, title from product_snapshots');
    expect(new Set(rows.map((r) => String(r.product_id)))).toEqual(new Set(IDS));
    expect(rows.every((r) => String(r.title).length > 0)).toBe(true);
    expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(200);
    const verified = await fleet.run('verify', '--json');
    expect(verified.exitCode, verified.stdout + verified.stderr).toBe(0);
    expect(await aliveAtMoto()).toEqual([]);
    expect(fleet.leftovers()).toEqual([]);
  }

  it('ends with every row, and reports which service plays which part', async () => {
    const { exitCode, report: told, stderr } = await fleet.dryRun();
    const report = withoutSlowBoots(told);
    expect(report, stderr).toMatchObject({
      exitCode: 0,
      products: { planned: IDS.length, stored: IDS.length },
      instances: { planned: 2, launched: 2, replaced: 0, terminated: 2 },
    });
    expect(exitCode).toBe(0);
    expect(stderr).toContain(`EC2 and S3: moto at ${moto.endpoint}`);
    expect(stderr).toContain("the sandbox's host boots each of them here");
    expect(stderr).toContain("ELBv2: the sandbox's balancer");
    // Each instance crawls from an address of its own, which moto does not know.
    expect(new Set(report.shards.map((s) => s.address)).size).toBe(2);
    await expectAllStored();
  });

  it(
    'boots no machine twice when the stand-in is killed: its instances are replaced',
    { tags: ['nightly'] },
    async () => {
      const run = fleet.start('run', '--dry-run', '--json', '--deadline', '90s');
      await waitFor(async () => (await shop.stats()).requests >= 6, { what: 'the crawl to begin', timeoutMs: 60_000 });
      const standIn = fleet.leftovers().find(({ command }) => command.includes(`--stand-in-for ${moto.endpoint}`));
      process.kill(standIn!.pid, 'SIGKILL');
      const result = await run.finished;
      const report = readReport(result);
      expect(report, result.stderr).toMatchObject({ exitCode: 0, products: { stored: IDS.length } });
      expect(report.instances.launched).toBeGreaterThan(2);
      expect(result.stderr).toContain('another one takes its place');
      await expectAllStored();
    },
  );
});

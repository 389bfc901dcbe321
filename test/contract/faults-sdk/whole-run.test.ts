/**
 * Whole runs on a faulty cloud: the real command, SDK and instances; each ends with every product accounted for.
 *
 * @module-tag nightly
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ConditionsChange } from '../../../sandbox/conditions.ts';
import type { BillLine } from '../../../sandbox/ec2/billing.ts';
import type { FaultRule } from '../../../sandbox/faults.ts';
import { MAX_OFFER_BYTES, offerPath } from '../../../shared/wire/instance-api.ts';
import { envelopeHeaders, importPrivateKey, signMessage } from '../../../shared/wire/signature.ts';
import { buildBundle } from '../../../userdata/bundle.ts';
import { waitFor } from '../../support/processes.ts';
import { clientsFor, type SandboxClients } from '../../support/sandbox/clients.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { productIds } from '../../support/shop/product.ts';
import { type Shop, startShop } from '../../support/shop/start-shop.ts';
import { type Fleet, makeFleet, readReport } from '../../system/fleet.ts';

const IDS = productIds(36);
/** A crawl long enough for a test to act in the middle of it. */
const MANY_IDS = productIds(90);

interface Status {
  instances: { id: string; state: string; address: string; pid: number | null }[];
}

describe('a run', { timeout: 120_000 }, () => {
  let shop: Shop;
  let sandbox: TestSandbox;
  let clients: SandboxClients;
  let fleet: Fleet;

  beforeAll(async () => {
    shop = await startShop({ products: 100 });
  });
  afterAll(() => shop?.stop());
  beforeEach(async () => {
    await shop.reset();
    sandbox = await startSandbox({ allowBundles: [(await buildBundle()).sha256] });
    clients = clientsFor(sandbox);
    const config = { aws: { endpoint: sandbox.endpoint } };
    fleet = await makeFleet({ engine: 'sqlite', productUrl: shop.productUrl, ids: IDS, config });
  });
  afterEach(async () => {
    await fleet?.remove();
    clients?.destroy();
    await sandbox?.stop();
  });

  const be = (conditions: ConditionsChange) => sandbox.control('PATCH', 'conditions', conditions);
  const misbehave = (...rules: FaultRule[]) => sandbox.control('POST', 'faults', rules);
  const status = async (): Promise<Status> => (await sandbox.control('GET', 'status')) as Status;
  const bill = async (): Promise<BillLine[]> => (await sandbox.control('GET', 'billing')) as BillLine[];
  const untilCrawling = (requests = 6) =>
    waitFor(async () => (await shop.stats()).requests >= requests, { what: 'the crawl to begin', timeoutMs: 60_000 });

  /** Every product has its row, `verify` agrees, nothing is left running, and no address was faster than its pace. */
  async function expectAllStored(ids = IDS): Promise<void> {
    const rows = await fleet.query('select product_id from product_snapshots');
    expect(new Set(rows.map((r) => String(r.product_id)))).toEqual(new Set(ids));
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    const alive = (await status()).instances.filter((i) => i.state !== 'terminated' && i.state !== 'shutting-down');
    expect(alive).toEqual([]);
    expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(200);
  }

  it('on the free plan continues with a type that the account may launch', async () => {
    await misbehave({ what: 'free-plan', count: 1_000 });
    const { exitCode, report, stderr } = await fleet.dryRun('--deadline', '60s');
    expect(exitCode, stderr).toBe(0);
    expect((await bill()).map((line) => line.instanceType.split('.')[1])).toEqual(
      Array((await bill()).length).fill('micro'),
    );
    expect(report.notes.join('\n')).toContain('not eligible for Free Tier');
    await expectAllStored();
  });

  it('whose machines all die at launch ends in seconds with the reason of EC2', async () => {
    await misbehave({ what: 'dies-at-launch', count: 1_000 });
    const { exitCode, report, stderr } = await fleet.dryRun('--deadline', '60s');
    expect(exitCode, stderr).toBe(19);
    expect(report.reason).toContain('Client.InvalidKMSKey.InvalidState');
    expect(report.notes.join('\n')).toContain('Client.InvalidKMSKey.InvalidState');
    expect((await fleet.run('explain', report.run)).stdout).toContain('Client.InvalidKMSKey.InvalidState');
    expect(Date.parse(report.finishedAt!)).toBeLessThan(Date.parse(report.deadline) - 20_000);
  });

  it('F16 F17: crawls each product once although the load balancer loses answers and shares out unevenly', async () => {
    await be({ balancerNodes: 3 });
    await misbehave({ what: 'lost-delivery', status: 502, count: 3 }, { what: 'lost-delivery', status: 504, count: 3 });
    const { report, stderr } = await fleet.dryRun();
    expect(report, stderr).toMatchObject({ exitCode: 0, products: { stored: IDS.length } });
    expect(await sandbox.control('GET', 'faults')).toEqual([]);
    const asked = (await shop.log()).flatMap((a) => a.id ?? []);
    expect(asked).toHaveLength(IDS.length);
    await expectAllStored();
  });

  it.each(['retire', 'crash'])('F19: offers again what an instance lost by %s had not crawled', async (what) => {
    await fleet.addProducts(MANY_IDS.slice(IDS.length));
    const run = fleet.start('run', '--dry-run', '--json', '--deadline', '60s');
    await untilCrawling();
    const victim = (await status()).instances.find((i) => i.pid !== null)!;
    await sandbox.control('POST', `instances/${victim.id}`, { do: what });
    const result = await run.finished;
    const report = readReport(result);
    expect(report, result.stderr).toMatchObject({
      exitCode: 0,
      products: { planned: MANY_IDS.length, stored: MANY_IDS.length },
    });
    expect(report.notes.join('\n')).toContain(`${victim.id}) was given up`);
    await expectAllStored(MANY_IDS);
  });

  it('F18: refuses offers that are too large, malformed, unsigned or for another run, and continues', async () => {
    await fleet.addProducts(MANY_IDS.slice(IDS.length));
    const run = fleet.start('run', '--dry-run', '--json');
    await untilCrawling();
    const { LoadBalancers } = await clients.elb.describeLoadBalancers({});
    const url = `http://${LoadBalancers![0]!.DNSName}:8080`;
    const [row] = await fleet.query('select id, private_key from crawlfleet_runs');
    const id = String(row!.id);
    /** As the main server sends an offer, signed by the run for that path. */
    const post = async (body: string, run = id, signed = true): Promise<number> => {
      const envelope = { method: 'POST', path: offerPath(run), run };
      const signature = signMessage(importPrivateKey(String(row!.private_key)), envelope, body);
      const headers = { 'content-type': 'application/json', ...(signed ? envelopeHeaders(envelope, signature) : {}) };
      return (await fetch(url + envelope.path, { method: 'POST', body, headers })).status;
    };
    const offer = JSON.stringify({ chunk: '999-1', share: 9, products: [{ n: 1, id: 'p' }] });
    expect(await post(offer, id, false)).toBe(401);
    expect(await post('{"chunk":')).toBe(400);
    expect(await post(JSON.stringify({ chunk: '999-1' }))).toBe(400);
    // A stranger does not learn whether the run exists.
    expect(await post(offer, 'other-run')).toBe(401);
    expect(await post('x'.repeat(MAX_OFFER_BYTES + 1))).toBe(413);
    expect(readReport(await run.finished)).toMatchObject({ exitCode: 0, products: { stored: MANY_IDS.length } });
    await expectAllStored(MANY_IDS);
  });

  it('F52: launches nothing for an empty list, which is no success', async () => {
    await fleet.query('update products set active = 0');
    expect((await fleet.run('run', '--dry-run', '--json')).exitCode).toBe(13);
    const log = readFileSync(join(sandbox.dataDir, 'sandbox.log'), 'utf8');
    expect(log).not.toContain('"action":"RunInstances"');
  });

  it('F51: refuses, before anything is launched, a result table that lacks a column', async () => {
    await fleet.query('create table product_snapshots (product_id varchar(500) primary key, note integer)');
    const result = await fleet.run('run', '--dry-run', '--json');
    expect(result.exitCode).toBe(4);
    expect((JSON.parse(result.stdout) as { error: { message: string } }).error.message).toContain('product_snapshots');
    expect((await status()).instances).toEqual([]);
  });
});

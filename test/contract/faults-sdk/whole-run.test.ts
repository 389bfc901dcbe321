/**
 * Whole runs on a faulty cloud: the real command, SDK and instances; each ends with every product accounted for.
 *
 * @module-tag nightly
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ConditionsChange } from '../../../sandbox/conditions.ts';
import type { BillLine } from '../../../sandbox/ec2/billing.ts';
import type { FaultRule } from '../../../sandbox/faults.ts';
import { MAX_OFFER_BYTES, offerPath } from '../../../shared/wire/instance-api.ts';
import { envelopeHeaders, importPrivateKey, signMessage } from '../../../shared/wire/signature.ts';
import { clientsFor, type SandboxClients } from '../../support/sandbox/clients.ts';
import { productIds } from '../../support/shop/product.ts';
import { endOf } from '../../system/fleet.ts';
import { expectAllStored } from '../../system/soundness.ts';
import { useStage } from '../../system/stage.ts';
import { expectTrueRows } from '../../system/stored-rows.ts';

const IDS = productIds(36);
/** A crawl long enough for a test to act in the middle of it. */
const MANY_IDS = productIds(90);

describe('a run', { timeout: 120_000 }, () => {
  const { shop, fleet, sandbox, startSandbox, open, crawl } = useStage({ products: 100 });
  let clients: SandboxClients;

  beforeEach(async () => {
    await startSandbox();
    clients = clientsFor(sandbox);
    await open(IDS);
    return () => clients.destroy();
  });

  const be = (conditions: ConditionsChange) => sandbox.control('PATCH', 'conditions', conditions);
  const misbehave = (...rules: FaultRule[]) => sandbox.control('POST', 'faults', rules);
  const bill = async (): Promise<BillLine[]> => (await sandbox.control('GET', 'billing')) as BillLine[];
  /** Every product has its row, `verify` agrees, nothing is left running, and no address was faster than its pace. */
  async function expectProvedAndGone(ids = IDS): Promise<void> {
    await expectTrueRows(fleet, 1, ids);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    const alive = (await sandbox.instances()).filter((i) => i.state !== 'terminated' && i.state !== 'shutting-down');
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
    await expectProvedAndGone();
  });

  it('in an organisation that demands tags needs them in aws.tags, for instances and load balancer', async () => {
    await be({ tagPolicy: ['CostCenter'] });
    const refused = await fleet.dryRun('--deadline', '40s');
    expect(refused.exitCode).not.toBe(0);
    expect(refused.report.notes.join('\n')).toContain('aws.tags');
    expect(await sandbox.instances()).toEqual([]);
    await open(IDS, { aws: { endpoint: sandbox.endpoint, tags: { CostCenter: '4711' } } });
    expectAllStored(await fleet.dryRun(), IDS.length);
    await expectProvedAndGone();
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
    expectAllStored(await fleet.dryRun(), IDS.length);
    expect(await sandbox.control('GET', 'faults')).toEqual([]);
    const asked = (await shop.log()).flatMap((a) => a.id ?? []);
    expect(asked).toHaveLength(IDS.length);
    await expectProvedAndGone();
  });

  it.each(['retire', 'crash'])('F19: offers again what an instance lost by %s had not crawled', async (what) => {
    await fleet.addProducts(MANY_IDS.slice(IDS.length));
    const run = await crawl(6, '--deadline', '60s');
    const victim = (await sandbox.instances()).find((i) => i.pid !== null)!;
    await sandbox.control('POST', `instances/${victim.id}`, { do: what });
    const report = expectAllStored(await endOf(run), MANY_IDS.length);
    expect(report.notes.join('\n')).toContain(`${victim.id}) was given up`);
    await expectProvedAndGone(MANY_IDS);
  });

  it('F18: refuses offers that are too large, malformed, unsigned or for another run, and continues', async () => {
    await fleet.addProducts(MANY_IDS.slice(IDS.length));
    const run = await crawl(6);
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
    expectAllStored(await endOf(run), MANY_IDS.length);
    await expectProvedAndGone(MANY_IDS);
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
    expect(await sandbox.instances()).toEqual([]);
  });
});

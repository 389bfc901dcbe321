/**
 * A run over three regions, one of which fails whole in mid-crawl: its API, its load balancer and its machines.
 *
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectAllStored } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const IDS = productIds(600);
const [WEST, MILAN, PARIS] = ['eu-west-1', 'eu-south-1', 'eu-west-3'];
const REGIONS = [WEST, MILAN, PARIS].map((region) => ({ region, weight: 1 }));

interface Claim {
  slot: number;
  epoch: number;
  request: { region: string };
}

describe('a run over three regions', () => {
  const { shop, fleet, open, crawl } = useStage({ products: IDS.length });

  /** Tells the sandbox of the run, which the run has started itself. */
  async function bringDown(region: string): Promise<void> {
    const [run] = await fleet.query('select settings from crawlfleet_runs');
    const { aws, sandbox } = JSON.parse(String(run!.settings)) as {
      aws: { endpoint: string };
      sandbox: { controlToken: string };
    };
    const reply = await fetch(`${aws.endpoint}/_crawlfleet/conditions`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${sandbox.controlToken}` },
      body: JSON.stringify({ outages: [region] }),
    });
    expect(reply.status).toBe(200);
  }

  const claims = async (): Promise<Claim[]> =>
    (await fleet.query('select slot, epoch, request from crawlfleet_launches order by slot, epoch')).map((row) => ({
      slot: Number(row.slot),
      epoch: Number(row.epoch),
      request: JSON.parse(String(row.request)) as Claim['request'],
    }));

  it('ends complete and proved when one region fails whole in mid-crawl', async () => {
    await open(IDS, { run: { deadline: '2m', min_instances: 6 }, aws: { regions: REGIONS } });
    const plan = await fleet.run('plan', '--dry-run', '--json');
    const { regions } = JSON.parse(plan.stdout) as { regions: { region: string; instances: number }[] };
    expect(regions.map((r) => [r.region, r.instances])).toEqual(REGIONS.map(({ region }) => [region, 2]));
    const run = await crawl(120);
    await waitFor(async () => Object.keys((await shop.stats()).addresses).length === 6, { what: 'six addresses' });
    await bringDown(MILAN);
    const end = await endOf(run);
    expectAllStored(end, IDS.length);
    await expectTrueRows(fleet, 1, IDS);
    const made = await claims();
    const first = made.filter((c) => c.epoch === 1);
    expect(first.map((c) => c.request.region)).toEqual([WEST, WEST, MILAN, MILAN, PARIS, PARIS]);
    const later = made.filter((c) => c.epoch > 1);
    expect(later.map((c) => c.slot)).toEqual(expect.arrayContaining([2, 3]));
    expect(later.map((c) => c.request.region)).not.toContain(MILAN);
    expect(end.stderr).toContain(`AWS does not answer in ${MILAN}`);
    const { addresses } = await shop.stats();
    for (const { minGapMs } of Object.values(addresses)) expect(minGapMs ?? 200).toBeGreaterThanOrEqual(200);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    expect(fleet.leftovers()).toEqual([]);
  });
});

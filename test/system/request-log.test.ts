/**
 * The request logs of a run on real parts, with an instance whose process is killed and one that is lost, against what
 * the shop has seen.
 *
 * @module-tag nightly
 */
import { expect, it } from 'vitest';
import type { Verdict } from '../../orchestrator/core/verify/verify.ts';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';

const IDS = productIds(120);

interface Instance {
  address: string;
  pid: number | null;
  state: string;
}

const { shop, fleet, sandbox, startSandbox, open, crawl } = useStage({ products: 200 });

it('have every request that the shop has seen, but for the last ones of a lost instance', async () => {
  await startSandbox();
  await open(IDS, { run: { deadline: '60s', min_instances: 2, max_instances: 2 } });
  const run = await crawl(30);
  const { instances } = (await sandbox.control('GET', 'status')) as { instances: Instance[] };
  const [killed, lost] = instances.filter(({ pid }) => pid !== null) as [Instance, Instance];
  process.kill(killed.pid!, 'SIGKILL');
  process.kill(lost.pid!, 'SIGSTOP');
  const isLost = async (): Promise<boolean> =>
    (await fleet.query("select slot from crawlfleet_instances where reason = 'heartbeat-lost'")).length > 0;
  await waitFor(isLost, { what: 'the loss', timeoutMs: 60_000 });
  const report = expectAllStored(await endOf(run), IDS.length);
  await expectSound(fleet, report, shop);

  const { requests, notes } = JSON.parse((await fleet.run('verify', '--json')).stdout) as Verdict;
  const { addresses, requests: seen, minGapMs } = await shop.stats();
  expect(requests.logged).toBeGreaterThanOrEqual(seen - addresses[lost.address]!.requests);
  expect(requests.logged).toBeLessThanOrEqual(seen);
  // What the lost instance has counted in a heartbeat is proved, or said not to be.
  expect(notes.some((note) => note.startsWith('not proved'))).toBe(requests.unlogged > 0);
  // The shop measures arrivals, the instances departures.
  expect(requests.smallestGapMs).toBeGreaterThanOrEqual(200);
  expect(requests.smallestGapMs).toBeLessThan(minGapMs! + 200);
  expect(requests.clocksMs).not.toBeNull();
});

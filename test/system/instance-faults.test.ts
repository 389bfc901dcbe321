/**
 * Faults of instances and launches on real parts: the sandbox injects them.
 *
 * @module-tag nightly
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { countSlowBoots } from '../support/slow-boots.ts';
import { endOf } from './fleet.ts';
import { expectAllStored } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const IDS = productIds(120);

interface Status {
  instances: { id: string; state: string; address: string; pid: number | null }[];
}

describe('faulty instances and launches', () => {
  const { fleet, sandbox, startSandbox, open, crawl } = useStage({ products: 300 });

  beforeEach(async () => {
    await startSandbox();
    await open(IDS);
  });

  const status = async (): Promise<Status> => (await sandbox.control('GET', 'status')) as Status;
  const alive = async (): Promise<number> =>
    (await status()).instances.filter((i) => i.state !== 'terminated' && i.state !== 'shutting-down').length;

  async function expectProvedAndGone(): Promise<void> {
    await expectTrueRows(fleet, 1, IDS);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    expect(await alive()).toBe(0);
  }

  it('F22: fences an instance that was frozen for longer than allowed, and counts none of its late results twice', async () => {
    const run = await crawl(20, '--deadline', '60s');
    const victim = (await status()).instances.find((i) => i.pid !== null)!;
    process.kill(victim.pid!, 'SIGSTOP');
    const terminated = () => status().then((s) => s.instances.find((i) => i.id === victim.id)?.state !== 'running');
    const rows = () =>
      fleet.query(`select reason from crawlfleet_instances where instance_id = '${victim.id}' and reason is not null`);
    await waitFor(async () => (await rows()).length > 0, { what: 'the loss', timeoutMs: 60_000 });
    // A frozen process cannot handle a request to end: it wakes after the run has moved on.
    if (!(await terminated())) process.kill(victim.pid!, 'SIGCONT');
    expectAllStored(await endOf(run), IDS.length);
    expect(await rows()).toEqual([{ reason: 'heartbeat-lost' }]);
    await expectProvedAndGone();
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
      const instances = { planned: 3, launched: 3, replaced: 0, terminated: 3 };
      const report = expectAllStored(await endOf(fleet.start('resume', '--json')), IDS.length, instances);
      expect((await status()).instances).toHaveLength(3 + countSlowBoots(report));
      await expectProvedAndGone();
    },
  );

  /** Claims in the ledger; 0 while its tables do not exist. */
  const claims = (): Promise<number> =>
    fleet.query('select slot from crawlfleet_launches').then(
      (found) => found.length,
      () => 0,
    );
});

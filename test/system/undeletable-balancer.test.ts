/**
 * Nights of real runs whose load balancer AWS refuses to delete, until gc may.
 *
 * @module-tag nightly
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { clientsFor, type SandboxClients } from '../support/sandbox/clients.ts';
import { productIds } from '../support/shop/product.ts';
import { useReceiver } from './receiver.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const IDS = productIds(60);
const REFUSED = [
  { action: 'DeleteLoadBalancer', part: 'load balancer', price: String.raw`\$\d+ a month` },
  { action: 'DeleteTargetGroup', part: 'target group', price: 'no cost' },
];

describe('a load balancer that AWS refuses to delete', () => {
  const { fleet, sandbox, startSandbox, open } = useStage({ products: IDS.length });
  const { url, notices } = useReceiver();
  let clients: SandboxClients;

  beforeEach(async () => {
    await startSandbox();
    clients = clientsFor(sandbox);
  });
  afterEach(() => clients.destroy());

  async function remains(): Promise<string[]> {
    const { LoadBalancers = [] } = await clients.elb.describeLoadBalancers({});
    const { TargetGroups = [] } = await clients.elb.describeTargetGroups({});
    return [...LoadBalancers.map((b) => b.LoadBalancerArn!), ...TargetGroups.map((g) => g.TargetGroupArn!)];
  }

  async function night({ action, part, price }: (typeof REFUSED)[number]): Promise<void> {
    const refusal = { what: 'error', action, code: 'AccessDenied', message: `not authorized to perform ${action}` };
    await sandbox.control('POST', 'faults', [{ ...refusal, count: 1_000_000 }]);
    const { exitCode, report, stderr } = await fleet.dryRun();
    await sandbox.control('DELETE', 'faults');
    expect(exitCode, stderr).toBe(4);
    expect(report).toMatchObject({ state: 'completed', products: { planned: IDS.length, stored: IDS.length } });
    expect(report.finishedAt! < report.deadline).toBe(true);
    await expectTrueRows(fleet, 1, IDS);
    const rows = await fleet.query(`select distinct run_id from product_snapshots`);
    expect(rows).toEqual([{ run_id: report.run }]);
    expect((await fleet.run('verify')).exitCode).toBe(0);
    const line = new RegExp(`^the ${part} cf-.*${price}.*${refusal.message}`);
    expect(report.leftBehind).toEqual([expect.stringMatching(line)]);
    expect(report.reason).toMatch(new RegExp(`^left behind: the ${part} cf-\\S+ \\(${price}\\)$`));
    const end = notices('/all').findLast(({ event }) => event === 'ended')!;
    expect(end).toMatchObject({ run: report.run, exitCode: 4 });
    expect(`${end.text} ${end.hint}`).toMatch(new RegExp(`left behind: the ${part}.*${price}`));
    const alarms = await fleet.query(
      `select detail from crawlfleet_events where kind = 'alarm' and run_id = '${report.run}'`,
    );
    expect(alarms.filter(({ detail }) => String(detail).includes(refusal.message))).toHaveLength(1);
  }

  it(
    'F59: ends each run early with 4 and all rows, which says what it leaves, and gc takes all of it',
    { timeout: 400_000 },
    async () => {
      await open(IDS, { notify: [{ webhook: url('/all'), dry_runs: true }] });
      for (const refused of REFUSED) await night(refused);
      // The second run has no load balancer left.
      expect(await remains()).toHaveLength(2);
      // Not before they expire, with the grace of their run, and at its second look.
      const collect = async (): Promise<boolean> => {
        const { exitCode, stdout, stderr } = await fleet.run('gc');
        expect(exitCode, stdout + stderr).toBe(0);
        return (await remains()).length === 0;
      };
      await waitFor(collect, { what: 'gc to take what was left behind', timeoutMs: 240_000, everyMs: 5_000 });
    },
  );
});

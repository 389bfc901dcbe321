/**
 * The sandbox is killed in mid-run: EC2, the load balancer and every instance are gone at once.
 *
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectAllStored } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const IDS = productIds(120);

describe('when the sandbox dies', () => {
  const { fleet, open, crawl } = useStage({ products: IDS.length });

  it.each([
    ['the live main server starts another one', false],
    ['together with the main server, resume makes everything again', true],
  ])('%s and the run ends with every row', async (_, withMain) => {
    await open(IDS, { run: { deadline: '90s' } });
    const run = await crawl(40);
    const sandbox = fleet.leftovers().find(({ command }) => command.includes('sandbox/main'))!;
    if (withMain) run.kill('SIGKILL');
    process.kill(sandbox.pid, 'SIGKILL');
    if (withMain) await run.finished;
    expectAllStored(await endOf(withMain ? fleet.start('resume', '--json') : run), IDS.length);
    await expectTrueRows(fleet, 1, IDS);
    expect(fleet.leftovers()).toEqual([]);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  });
});

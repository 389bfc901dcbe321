/** The main server is killed in mid-run; `resume` ends with the same rows. */
import { beforeEach, describe, expect, it } from 'vitest';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectAllStored } from './soundness.ts';
import { useStage } from './stage.ts';

const IDS = productIds(150);
/** A crawl that outlasts the refusal of a second main server. */
const MANY_IDS = productIds(270);

eachEngineByDay('resume', (engine) => {
  const { shop, fleet, open, crawl } = useStage({ products: MANY_IDS.length });

  beforeEach(() => open(IDS, {}, engine));

  it('F41: resumes a killed run and ends with every row, none twice', async () => {
    const run = await crawl(30);
    run.kill('SIGKILL');
    expect((await run.finished).signal).toBe('SIGKILL');
    const report = expectAllStored(await endOf(fleet.start('resume', '--json')), IDS.length);
    expect(report.state).toBe('completed');
    const rows = await fleet.query('select product_id from product_snapshots');
    expect(rows.map((r) => String(r.product_id)).sort()).toEqual([...IDS].sort());
    // Instances continued on their own: the shop received no request twice.
    const asked = (await shop.log()).filter((a) => a.id !== null).map((a) => a.path);
    expect(asked).toHaveLength(new Set(asked).size);
    expect(fleet.leftovers()).toEqual([]);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  });

  it('F41: refuses a second main server while the first one lives', { tags: ['nightly'] }, async () => {
    await fleet.addProducts(MANY_IDS.slice(IDS.length));
    const run = await crawl(5, '--deadline', '90s');
    const second = await fleet.run('resume', '--json');
    expect(second.exitCode).toBe(20);
    expect(JSON.parse(second.stdout)).toMatchObject({ error: { code: 'lock-held' } });
    expect((await run.finished).exitCode).toBe(0);
  });

  it('reports when there is nothing to resume', async () => {
    const nothing = await fleet.run('resume', '--json');
    expect(nothing.exitCode).toBe(2);
    expect(JSON.parse(nothing.stdout)).toMatchObject({ error: { code: 'run-unknown' } });
  });
});

describe('a main server', { tags: ['nightly'] }, () => {
  const { fleet, open, crawl } = useStage({ products: 300 });

  it('that has lost its lock leaves the sandbox to the one that resumes the run', async () => {
    await open(productIds(60));
    const run = await crawl(5);
    // As another main server does that finds it frozen.
    await fleet.query('update crawlfleet_leases set owner = null, token = null, expires_at = 0');
    await fleet.query('delete from crawlfleet_fences');
    expect((await run.finished).exitCode).toBe(20);
    expect(fleet.leftovers().map(({ command }) => command)).toContainEqual(expect.stringContaining('sandbox/main'));
    const resumed = await endOf(fleet.start('resume', '--json'));
    expectAllStored(resumed, 60);
    expect(resumed.stderr).not.toContain('sandbox of this run is gone');
    expect(fleet.leftovers()).toEqual([]);
  });

  it('stops the run and keeps its results after Ctrl-C', async () => {
    await open();
    const run = await crawl(30);
    run.kill('SIGINT');
    const { exitCode, report } = await endOf(run);
    expect(exitCode).toBe(11);
    expect(report).toMatchObject({ state: 'cancelled', reason: 'stopped', products: { planned: 300 } });
    expect(report.products.stored).toBeGreaterThanOrEqual(25);
    expect(report.products.reasons.cancelled).toBe(300 - report.products.stored);
    expect(await fleet.query('select product_id from product_snapshots')).toHaveLength(report.products.stored);
    expect(fleet.leftovers()).toEqual([]);
  });

  it('does the same after `orchestrator stop` in another terminal', async () => {
    await open();
    const run = await crawl(10);
    const asked = await fleet.run('stop', '--json');
    expect(JSON.parse(asked.stdout)).toMatchObject({ requested: 'stop' });
    expect(await endOf(run)).toMatchObject({ exitCode: 11, report: { state: 'cancelled', reason: 'stopped' } });
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    expect((await fleet.run('stop', '--json')).exitCode).toBe(2);
  });

  it('leaves at once after SIGTERM, and resume continues the run', async () => {
    await open();
    const run = await crawl(10);
    run.kill('SIGTERM');
    expect((await run.finished).exitCode).toBe(11);
    expect(fleet.leftovers().length).toBeGreaterThan(0);
    expectAllStored(await endOf(fleet.start('resume', '--json')), 300);
    expect(fleet.leftovers()).toEqual([]);
  });
});

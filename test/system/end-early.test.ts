/** Runs that are cancelled, stopped without their main server, and watched from another terminal. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type Fleet, makeFleet, readReport } from './fleet.ts';

describe('ending a run early from another terminal', () => {
  let shop: Shop;
  let fleet: Fleet;

  beforeEach(async () => {
    // Far more to crawl than the other commands take to start and to act.
    const ids = productIds(600);
    shop = await startShop({ products: ids.length });
    const config = { run: { deadline: '120s' } };
    fleet = await makeFleet({ engine: 'mysql', productUrl: shop.productUrl, ids, config });
  });
  afterEach(async () => {
    await fleet.remove();
    await shop.stop();
  });

  const begin = async () => {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 20, { what: 'the crawl to begin', timeoutMs: 60_000 });
    const [row] = await fleet.query('select id from crawlfleet_runs');
    return { run, id: String(row!.id) };
  };

  it('F41 cancel ends a live run, publishes nothing, and leaves nothing behind', async () => {
    const { run, id } = await begin();
    const status = await fleet.run('status', '--json');
    expect(JSON.parse(status.stdout)).toMatchObject({ runs: [{ run: id }] });
    const watcher = fleet.start('watch', '--json');
    await waitFor(() => watcher.stderr().includes(' stored'), { what: 'the watcher to show the run' });
    const asked = await fleet.run('cancel', id, '--yes', '--json');
    expect(JSON.parse(asked.stdout), asked.stderr).toMatchObject({ requested: 'cancel' });
    const result = await run.finished;
    expect(result.exitCode).toBe(11);
    expect(readReport(result)).toMatchObject({ state: 'cancelled', reason: 'cancelled' });
    expect(JSON.parse((await watcher.finished).stdout)).toMatchObject({ run: id, state: 'cancelled' });
    expect(await fleet.query('select product_id from product_snapshots')).toEqual([]);
    expect(await fleet.query(`show tables like 'crawlfleet_staging%'`)).toEqual([]);
    expect(fleet.leftovers()).toEqual([]);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    const logs = JSON.parse((await fleet.run('logs', '--json')).stdout) as { run: string; entries: unknown[] };
    expect(logs).toMatchObject({ run: id });
    expect(logs.entries.length).toBeGreaterThan(0);
    const cost = JSON.parse((await fleet.run('cost', id, '--json')).stdout) as { instances: unknown[] };
    expect(cost).toMatchObject({ run: id, final: true, dryRun: true });
    expect(cost.instances).toHaveLength(3);
  });

  it('F42 cancel takes over from a main server that is gone', async () => {
    const { run, id } = await begin();
    run.kill('SIGKILL');
    await run.finished;
    const cancelled = await fleet.run('cancel', id, '--yes', '--json');
    expect(cancelled.stderr).toContain('takes its place');
    expect(readReport(cancelled)).toMatchObject({ run: id, state: 'cancelled', reason: 'cancelled' });
    expect(cancelled.exitCode).toBe(0);
    expect(await fleet.query('select product_id from product_snapshots')).toEqual([]);
    expect(fleet.leftovers()).toEqual([]);
  });

  it(
    'F42 a cancel that is left before the run has ended reports that, and can be repeated',
    { tags: ['nightly'] },
    async () => {
      const { run, id } = await begin();
      run.kill('SIGKILL');
      await run.finished;
      const left = fleet.start('cancel', id, '--yes', '--json');
      await waitFor(() => left.stderr().includes('goes on from'), { what: 'the cancel to take up the run' });
      left.kill('SIGTERM');
      expect((await left.finished).exitCode).toBe(11);
      const again = await fleet.run('cancel', id, '--yes', '--json');
      expect(readReport(again)).toMatchObject({ run: id, state: 'cancelled', reason: 'cancelled' });
      expect(again.exitCode).toBe(0);
      expect(fleet.leftovers()).toEqual([]);
    },
  );

  it('F42 stop takes over from a main server that is gone, and keeps the results', { tags: ['nightly'] }, async () => {
    const { run, id } = await begin();
    run.kill('SIGKILL');
    await run.finished;
    const stopped = await fleet.run('stop', '--json');
    expect(readReport(stopped)).toMatchObject({ run: id, state: 'cancelled', reason: 'stopped' });
    expect(stopped.exitCode).toBe(0);
    expect((await fleet.query('select product_id from product_snapshots')).length).toBeGreaterThan(10);
    expect(fleet.leftovers()).toEqual([]);
  });
});

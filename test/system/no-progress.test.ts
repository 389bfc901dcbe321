/** Runs that stall, on real parts: a dead site, an unreachable load balancer. */
import { describe, expect, it } from 'vitest';
import { startShop } from '../support/shop/start-shop.ts';
import { useStage } from './stage.ts';

const DEADLINE_MS = 80_000;

describe('a run without progress', () => {
  const { shop, fleet, sandbox, startSandbox, open } = useStage({ products: 600 });

  const prepare = (site: Record<string, unknown> = {}, run: Record<string, unknown> = {}) =>
    open(undefined, {
      site: { robots: 'respect', interval: '300ms', ...site },
      run: { deadline: `${DEADLINE_MS / 1_000}s`, grace: '30s', min_instances: 3, ...run },
    });

  it('whose site cannot be reached before the launch ends with 17, without launching a machine', async () => {
    const gone = await startShop({ products: 1 });
    await gone.stop();
    await prepare({ product_url: gone.productUrl }, { site_wait: '2s' });
    const startedMs = performance.now();
    const { exitCode, stdout, stderr } = await fleet.run('run', '--dry-run', '--json');
    expect(exitCode, stdout + stderr).toBe(17);
    expect(stderr).toMatch(/waiting up to 2s for it/);
    expect(stdout + stderr).toContain('ECONNREFUSED');
    expect(performance.now() - startedMs).toBeLessThan(60_000);
    expect(await fleet.query('select count(*) as n from crawlfleet_runs')).toEqual([{ n: 0 }]);
  });

  it('whose load balancer cannot be reached ends early with 4, and names its URL', { tags: ['nightly'] }, async () => {
    await startSandbox();
    await sandbox.control('POST', 'faults', [{ what: 'unreachable-balancer', count: 5 }]);
    await prepare();
    const { exitCode, report, stderr } = await fleet.dryRun();
    expect(exitCode, stderr).toBe(4);
    expect(report.reason).toContain('cannot reach the load balancer');
    expect(report.notes.join('\n')).toMatch(/cannot reach the load balancer at http:\/\/127\.\S+ \(.*ECONNREFUSED/);
    expect(stderr).not.toMatch(/ETA/);
    expect(Date.parse(report.finishedAt!) - Date.parse(report.startedAt)).toBeLessThan(DEADLINE_MS - 10_000);
    expect((await shop.stats()).requests).toBe(0);
  });
});

/** A run with `site.host_key: host`: names of one domain are crawled side by side, each in its own pace. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HostSpec } from '../support/sites/host-spec.ts';
import { type HostStage, openHostStage } from './host-fleet.ts';

const INTERVAL_MS = 1_000;
const NAMES = ['a.platform.test', 'b.platform.test'];
const HOSTS: readonly HostSpec[] = [
  ...NAMES.map((name) => ({ name, pages: 8 })),
  // One page of another name, which has an owner and a robots.txt of its own.
  { name: 'old.platform.test', pages: 1, behaviour: { redirectTo: 'http://a.platform.test:{port}/p/3' } },
];

describe('names of a domain', () => {
  let stage: HostStage | null;

  beforeEach(async () => {
    stage = await openHostStage({
      hosts: HOSTS,
      engine: 'sqlite',
      config: {
        site: { interval: `${INTERVAL_MS}ms`, host_key: 'host' },
        run: { deadline: '60s', min_instances: 2 },
      },
    });
  });
  afterEach(async () => {
    await stage?.close();
  });

  it('are asked side by side, each in its pace, which verify proves', async (context) => {
    if (stage === null) return context.skip('no mount namespace for this user');
    const { world, fleet } = stage;
    const { exitCode, stderr } = await fleet.dryRun();
    expect(exitCode, stderr).toBe(0);
    expect(await fleet.query('select distinct outcome from crawlfleet_items')).toEqual([{ outcome: 'stored' }]);
    const ledger = await world.ledger();
    for (const name of NAMES) {
      const starts = ledger.requestsOf(name).map(({ atMs }) => atMs);
      const gaps = starts.slice(1).map((atMs, i) => atMs - starts[i]!);
      expect(Math.min(...gaps), name).toBeGreaterThanOrEqual(INTERVAL_MS);
    }
    expect(ledger.smallestGapOf('platform.test')).toBeLessThan(INTERVAL_MS);
    const verified = await fleet.run('verify', '--json');
    expect(verified.exitCode, verified.stdout).toBe(0);
    expect(JSON.parse(verified.stdout)).toMatchObject({ holds: true, requests: { hosts: NAMES.length + 1 } });
    const shown = await fleet.run('hosts', 'show', 'a.platform.test');
    expect(shown.stdout).toContain('3 by themselves (site.host_key: host): a.platform.test, b.platform.test');
    expect(shown.stdout).toContain('a.platform.test, by itself in runs with site.host_key: host');
  });
});

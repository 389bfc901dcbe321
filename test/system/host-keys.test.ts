/** A run with `site.host_key: host`: names of one domain are crawled side by side, each in its own pace. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HostSpec } from '../support/sites/host-spec.ts';
import { type HostWorld, openHostWorld } from '../support/sites/host-world.ts';
import { type HostsNamespace, underHostsFile } from '../support/sites/under-hosts-file.ts';
import type { Fleet } from './fleet.ts';
import { makeHostFleet } from './host-fleet.ts';

const INTERVAL_MS = 1_000;
const NAMES = ['a.platform.test', 'b.platform.test'];
const HOSTS: readonly HostSpec[] = [
  ...NAMES.map((name) => ({ name, pages: 8 })),
  // One page of another name, which has an owner and a robots.txt of its own.
  { name: 'old.platform.test', pages: 1, behaviour: { redirectTo: 'http://a.platform.test:{port}/p/3' } },
];

describe('names of a domain', () => {
  let world: HostWorld;
  let namespace: HostsNamespace | null;
  let fleet: Fleet;

  beforeEach(async () => {
    world = await openHostWorld({ hosts: HOSTS });
    namespace = underHostsFile(world.hostsFile(), world.resolvConf());
    fleet = await makeHostFleet({
      world,
      hosts: HOSTS,
      engine: 'sqlite',
      ...(namespace === null ? {} : { prefix: namespace.prefix }),
      config: {
        site: { interval: `${INTERVAL_MS}ms`, host_key: 'host' },
        run: { deadline: '60s', min_instances: 2 },
      },
    });
  });
  afterEach(async () => {
    await fleet?.remove();
    await world?.close();
    namespace?.remove();
  });

  it('are asked side by side, each in its pace, which verify proves', async (context) => {
    if (namespace === null) return context.skip('no mount namespace for this user');
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

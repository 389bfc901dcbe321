/**
 * What a night over many hosts leaves: the next one goes on with it, and `retry` takes what has failed.
 *
 * @module-tag nightly
 */
import { expect, it } from 'vitest';
import type { HostSpec } from '../support/sites/host-spec.ts';
import { openHostWorld } from '../support/sites/host-world.ts';
import { underHostsFile } from '../support/sites/under-hosts-file.ts';
import { endOf } from './fleet.ts';
import { makeHostFleet } from './host-fleet.ts';

const INTERVAL_MS = 500;
/** More than a night of 45 seconds allows. */
const LONG = 120;
const HOSTS: readonly HostSpec[] = [
  { name: 'long.test', pages: LONG },
  { name: 'closed.test', pages: 2, robots: { status: 503 } },
];

it('is continued by the next night, and tried again', async (context) => {
  const world = await openHostWorld({ hosts: HOSTS });
  const namespace = underHostsFile(world.hostsFile(), world.resolvConf());
  if (namespace === null) {
    await world.close();
    return context.skip('no mount namespace for this user');
  }
  const fleet = await makeHostFleet({
    world,
    hosts: HOSTS,
    engine: 'sqlite',
    prefix: namespace.prefix,
    config: {
      site: { interval: `${INTERVAL_MS}ms`, pages_at_once: 4 },
      products: { recrawl: { base: '30d' } },
      run: { deadline: '45s', min_instances: 2 },
    },
  });
  try {
    const stored = async (): Promise<number> => (await fleet.query('select product_id from product_snapshots')).length;

    const first = await fleet.dryRun();
    expect(first.report.products.planned).toBeLessThan(LONG);
    expect(first.report.products.reasons).toMatchObject({ robots: 2 });
    const after = await stored();
    expect(after).toBe(first.report.products.stored);

    await world.change('closed.test', { robots: { text: '' } });
    const again = await endOf(fleet.start('retry', '--reason', 'robots', '--json'));
    expect(again.report.products, again.stderr).toMatchObject({ planned: 2, stored: 2 });
    expect(await stored()).toBe(after + 2);

    const second = await fleet.dryRun();
    expect(await stored()).toBe(after + 2 + second.report.products.stored);
    const ledger = await world.ledger();
    // Each page was asked for once, over all three runs.
    const paths = ledger.pagesOf('long.test').map(({ path }) => path);
    expect(paths).toHaveLength(new Set(paths).size);
    expect(ledger.groupsFasterThan(INTERVAL_MS)).toEqual([]);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  } finally {
    await fleet.remove();
    await world.close();
    namespace.remove();
  }
});

/**
 * What a night over many hosts leaves: the next one goes on with it, and `retry` takes what has failed.
 *
 * @module-tag nightly
 */
import { expect, it } from 'vitest';
import { HOST_MAPPING } from '../support/sites/host-spec.ts';
import { openHostWorld } from '../support/sites/host-world.ts';
import { underHostsFile } from '../support/sites/under-hosts-file.ts';
import { endOf, makeFleet } from './fleet.ts';

const INTERVAL_MS = 500;
/** More than a night of 45 seconds allows. */
const LONG = 120;

it('is continued by the next night, and tried again', async (context) => {
  const world = await openHostWorld({
    hosts: [
      { name: 'long.test', pages: LONG },
      { name: 'closed.test', pages: 2, robots: { status: 503 } },
    ],
  });
  const namespace = underHostsFile(world.hostsFile(), world.resolvConf());
  if (namespace === null) {
    await world.close();
    return context.skip('no mount namespace for this user');
  }
  const fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: '',
    ids: [],
    prefix: namespace.prefix,
    config: {
      site: {
        product_url: undefined,
        hosts: 'any',
        interval: `${INTERVAL_MS}ms`,
        pages_at_once: 4,
        allow_private: true,
        mapping: HOST_MAPPING,
      },
      products: { query: 'select id, url from people order by id', recrawl: { base: '30d' } },
      run: { deadline: '45s', min_instances: 2, max_failed: '100%' },
    },
  });
  try {
    await fleet.query('create table people (id varchar(300) primary key, url varchar(2000))');
    const urlOf = (host: string, i: number): string => `('${host}-${i}', '${world.url(host, `/p/${i}`)}')`;
    const rows = [
      ...Array.from({ length: LONG }, (_, i) => urlOf('long.test', i + 1)),
      urlOf('closed.test', 1),
      urlOf('closed.test', 2),
    ];
    await fleet.query(`insert into people (id, url) values ${rows.join(', ')}`);
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

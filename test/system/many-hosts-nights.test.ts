/**
 * What a night over many hosts leaves: the next one goes on with it, `retry` takes what has failed, and the bucket has
 * all of it.
 *
 * @module-tag nightly
 */
import { afterEach, expect, it } from 'vitest';
import type { HostSpec } from '../support/sites/host-spec.ts';
import { type Config, endOf } from './fleet.ts';
import { type HostStage, type HostStageOptions, openHostStage } from './host-fleet.ts';

const INTERVAL_MS = 500;
/** More than a night of 45 seconds allows. */
const LONG = 120;

let stage: HostStage | null = null;

afterEach(async () => {
  await stage?.close();
  stage = null;
});

/** Null where this user may not have names of its own. */
const open = (
  options: Pick<HostStageOptions, 'hosts' | 'unlisted'>,
  { deadline, products = {} }: { deadline: string; products?: Config },
): Promise<HostStage | null> =>
  openHostStage({
    ...options,
    engine: 'sqlite',
    config: {
      site: { interval: `${INTERVAL_MS}ms`, pages_at_once: 4 },
      products,
      run: { deadline, min_instances: 2 },
    },
  });

it('is continued by the next night, and tried again', async (context) => {
  const hosts: HostSpec[] = [
    { name: 'long.test', pages: LONG },
    { name: 'closed.test', pages: 2, robots: { status: 503 } },
  ];
  stage = await open({ hosts }, { deadline: '45s', products: { recrawl: { base: '30d' } } });
  if (stage === null) return context.skip('no mount namespace for this user');
  const { world, fleet } = stage;
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
});

it('is loaded from the bucket when the database has lost it, with the records that have moved', async (context) => {
  const moved = (name: string, to: string): HostSpec => ({
    name,
    pages: 4,
    robots: { redirectTo: `http://${to}:{port}/robots.txt` },
    behaviour: { redirectTo: `http://${to}:{port}{path}` },
  });
  stage = await open(
    {
      hosts: [{ name: 'here.test', pages: 5 }, moved('old.test', 'newer.test')],
      unlisted: [moved('newer.test', 'newest.test'), { name: 'newest.test', pages: 4 }],
    },
    { deadline: '90s' },
  );
  if (stage === null) return context.skip('no mount namespace for this user');
  const { fleet } = stage;
  const rows = (): Promise<unknown> =>
    fleet.query('select product_id, title, price, url from product_snapshots order by product_id');

  const { report, stderr } = await fleet.dryRun();
  expect(report.products, stderr).toMatchObject({ planned: 9, stored: 9 });
  const before = await rows();
  const tables = await fleet.query("select name from sqlite_master where type = 'table' and name like 'crawlfleet%'");
  for (const { name } of tables) await fleet.query(`drop table ${String(name)}`);
  await fleet.query('drop table product_snapshots');

  const loaded = await fleet.run('load', report.run, '--json');
  expect(JSON.parse(loaded.stdout), loaded.stderr).toMatchObject({ state: 'completed', products: { stored: 9 } });
  expect(await rows()).toEqual(before);
  const verified = await fleet.run('verify', report.run, '--json');
  expect(verified.exitCode, verified.stdout).toBe(0);
});

/** The main job on real parts: sandbox, instances as processes, a shop, a database. Once on each engine. */
import { beforeAll, expect, it } from 'vitest';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { STRANGE_IDS, expectedRow, productIds } from '../support/shop/product.ts';
import { withoutSlowBoots } from '../support/slow-boots.ts';
import { useFleet } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 7;
const GOOD = productIds(120);
/** The canary page. Without a fixed one it may be any product; whether one is fetched depends on who gets bad pages. */
const KNOWN = GOOD[0]!;
const BAD = ['404-a', '410-b', '500-c', 'once-500-d', 'hang-e', 'reset-f', 'untitled-g'];

eachEngineByDay('a dry run', (engine) => {
  const { shop, fleet } = useFleet(
    { seed: SEED, products: 120 },
    {
      engine,
      ids: [...GOOD, ...STRANGE_IDS, ...BAD, GOOD[0]!, GOOD[1]!],
      config: { site: { canaries: [{ id: KNOWN, fields: { title: expectedRow(SEED, KNOWN).title } }] } },
    },
  );
  let exitCode: number | null;
  let report: RunReport;
  let stderr: string;

  beforeAll(async () => {
    await shop.addProducts(BAD);
    ({ exitCode, report, stderr } = await fleet.dryRun());
    report = withoutSlowBoots(report);
  });
  it('ends complete, on time, with every product accounted for', () => {
    const planned = GOOD.length + STRANGE_IDS.length + BAD.length;
    expect(report, stderr).toMatchObject({
      state: 'completed',
      exitCode: 0,
      onTime: true,
      products: {
        planned,
        duplicates: 2,
        stored: GOOD.length + STRANGE_IDS.length + 1,
        gone: 2,
        failed: 4,
        reasons: { 'http-status': 1, timeout: 1, network: 1, parse: 1 },
      },
      instances: { planned: 3, launched: 3, replaced: 0, terminated: 3 },
    });
    expect(exitCode).toBe(0);
  });

  it('says why products have no row, with an example of each that can be opened', () => {
    const rows = report.reasons!.map(({ reason, sign, products, waiting }) => ({ reason, sign, products, waiting }));
    const one = { products: 1, waiting: 0 };
    expect(rows).toEqual(
      expect.arrayContaining([
        { reason: 'http-status', sign: '500', ...one },
        { reason: 'timeout', sign: null, ...one },
        { reason: 'network', sign: null, ...one },
        { reason: 'parse', sign: 'field-missing title', ...one },
      ]),
    );
    expect(rows).toHaveLength(4);
    for (const { url, todo } of report.reasons!) {
      expect(BAD.some((id) => url!.endsWith(`/item/${id}`))).toBe(true);
      expect(todo).not.toBe('');
    }
  });

  it('stores the exact values of the pages in the result table, one row per product', async () => {
    await expectTrueRows(fleet, SEED, [...GOOD, ...STRANGE_IDS, 'once-500-d']);
    for (const { product_id: id, url, run_id } of await fleet.query('select * from product_snapshots')) {
      expect(run_id).toBe(report.run);
      expect(decodeURIComponent(new URL(String(url)).pathname)).toBe(`/item/${String(id)}`);
    }
  });

  it('never comes closer to the shop than the interval, as the shop itself measures', async () => {
    const { addresses } = await shop.stats();
    const gaps = Object.values(addresses).flatMap((a) => (a.minGapMs === null ? [] : [a.minGapMs]));
    expect(gaps).toHaveLength(3);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(200);
  });

  it('gives every instance an address of its own and crawls from it', async () => {
    const { addresses } = await shop.stats();
    const crawled = Object.keys(addresses).sort();
    expect(crawled).toEqual(report.shards.map((s) => String(s.address)).sort());
    expect(new Set(crawled).size).toBe(3);
  });

  it('keeps shards even to within one chunk', async () => {
    const sizes = report.shards.map((s) => s.assigned);
    const [run] = await fleet.query('select plan from crawlfleet_runs');
    const { chunkSize } = JSON.parse(String(run!.plan)) as { chunkSize: number };
    expect(sizes.reduce((a, b) => a + b)).toBe(report.products.planned);
    expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(chunkSize);
  });

  it('retries what failed for a transient reason once, and nothing else', async () => {
    const asked = new Map<string, number>();
    for (const { path } of await shop.log()) asked.set(path, (asked.get(path) ?? 0) + 1);
    for (const id of ['500-c', 'once-500-d', 'hang-e', 'untitled-g']) expect(asked.get(`/item/${id}`), id).toBe(2);
    // A try on a connection that had served a page is repeated on a new one.
    const resets = asked.get('/item/reset-f');
    expect(resets).toBeGreaterThanOrEqual(2);
    expect(resets).toBeLessThanOrEqual(4);
    const once = [...GOOD, '404-a', '410-b'].filter((id) => id !== KNOWN);
    for (const id of once) expect(asked.get(`/item/${id}`), id).toBe(1);
    expect(asked.get(`/item/${KNOWN}`)).toBeGreaterThanOrEqual(1);
  });

  it('has each object of an instance in the folder of its role session, where the policy of the role binds it', async () => {
    const instances = await fleet.query(
      'select slot, epoch, instance_id, manifest_key from crawlfleet_instances where run_id = ?'.replace(
        '?',
        `'${report.run}'`,
      ),
    );
    const parts = await fleet.query(
      `select slot, epoch, object_key from crawlfleet_parts where run_id = '${report.run}'`,
    );
    expect(instances).toHaveLength(3);
    expect(parts.length).toBeGreaterThanOrEqual(3);
    for (const { slot, epoch, instance_id: id, manifest_key: manifest } of instances) {
      const folder = `runs/${report.run}/${String(slot)}/${String(epoch)}/AROASANDBOX0000000001:${String(id)}/`;
      expect(manifest).toBe(`${folder}manifest.json`);
      for (const part of parts.filter((p) => p.slot === slot && p.epoch === epoch))
        expect(String(part.object_key).startsWith(folder), String(part.object_key)).toBe(true);
    }
  });

  it('passes verify', async () => {
    const verified = await fleet.run('verify', '--json');
    expect(JSON.parse(verified.stdout)).toMatchObject({ holds: true, run: report.run, differences: [] });
    expect(verified.exitCode).toBe(0);
  });

  it('detects tampered rows', async () => {
    await fleet.query(`delete from product_snapshots where product_id = '${GOOD[5]}'`);
    const verified = await fleet.run('verify', report.run, '--json');
    expect(verified.exitCode).toBe(13);
    expect(verified.stdout).toContain(GOOD[5]);
  });

  it('shows the run in status', async () => {
    const status = await fleet.run('status', '--json');
    expect(JSON.parse(status.stdout)).toMatchObject({ runs: [{ run: report.run, state: 'completed', exitCode: 0 }] });
  });

  it('prints the timeline of the run, and what the next one would need', async () => {
    const told = await fleet.run('explain', report.run);
    expect(told.stdout).toMatch(/plan: \d+ products by \d+ x /);
    expect(told.stdout).toMatch(/slots? [\d, -]+ said hello/);
    expect(told.stdout).toContain('the rows are published');
    const document = JSON.parse((await fleet.run('explain', report.run, '--json')).stdout) as Record<string, unknown>;
    expect(document).toMatchObject({ run: report.run, state: 'completed', notCrawled: 0 });
    expect(document.nextTime).not.toEqual([]);
  });

  it('leaves no process behind', () => {
    expect(fleet.leftovers()).toEqual([]);
  });
});

/** `site.hosts`: products with URLs of their own on two hosts, some of whose rows have none that may be requested. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { runCommand, waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { slugPath } from '../support/shop/slugs.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { endOf, type Fleet, LAUNCHER, makeFleet, readReport } from './fleet.ts';
import { expectSound } from './soundness.ts';

const IDS = productIds(80);
const INTERVAL_MS = 300;
/** Every fourth product is on the second host. */
const hostOf = (i: number): number => (i % 4 === 3 ? 1 : 0);
/** Answers 500 in the first run. */
const BROKEN = IDS[9]!;

eachEngineByDay('products with URLs of their own', (engine) => {
  let shops: Shop[];
  let fleet: Fleet;
  let urls: Map<string, string>;

  beforeEach(async () => {
    shops = [await startShop({ products: 80 }), await startShop({ products: 80, address: '127.0.7.1' })];
    urls = new Map(IDS.map((id, i) => [id, `${shops[hostOf(i)]!.url}${slugPath(id)}?from=list`]));
    fleet = await makeFleet({
      engine,
      productUrl: '',
      ids: [],
      config: {
        site: { product_url: undefined, hosts: shops.map(({ url }) => url), interval: `${INTERVAL_MS}ms` },
        products: { query: 'select id, url from listed order by place' },
        run: { deadline: '90s', min_instances: 2, max_instances: 2 },
      },
    });
    await fleet.query('create table listed (place integer primary key, id varchar(100) not null, url varchar(3000))');
    const rows = [...urls].map(([id, url]): [string, string | null] => [id, `${url}#top`]);
    rows.splice(2, 0, ['none', null]);
    rows.splice(6, 0, ['elsewhere', 'http://127.0.9.1/amber'], ['typo', 'htp:/shop/amber'], [IDS[0]!, null]);
    rows.push(['twin', urls.get(IDS[1]!)!]);
    const quoted = (text: string | null): string => (text === null ? 'null' : `'${text}'`);
    const values = rows.map(([id, url], place) => `(${place}, ${quoted(id)}, ${quoted(url)})`);
    await fleet.query(`insert into listed (place, id, url) values ${values.join(', ')}`);
  });
  afterEach(async () => {
    await fleet?.remove();
    for (const shop of shops) await shop.stop();
  });

  it('are crawled at their URLs, each host at its pace, through a killed main server, a retry and a proof', async () => {
    const plan = await fleet.run('plan', '--dry-run', '--json');
    expect(plan.exitCode, plan.stderr).toBe(0);
    const { hosts, warnings } = JSON.parse(plan.stdout) as { hosts: unknown; warnings: string[] };
    expect(hosts).toEqual([
      { origin: shops[0]!.url, products: 61 },
      { origin: shops[1]!.url, products: 20 },
    ]);
    expect(warnings).toContainEqual(
      '3 of 84 products have no URL to request, and will end as failed(redirect) without a request: ' +
        'row 3 (none): it has no URL; row 7 (elsewhere): 127.0.9.1 is none of site.hosts; ' +
        'row 8 (typo): its URL is no http or https URL',
    );
    expect(warnings).toContainEqual(
      `1 product has the URL of another one, for example ${IDS[1]} and twin (${urls.get(IDS[1]!)}): it is requested for each of them`,
    );
    expect(warnings).toContainEqual('1 ID is listed more than once; each product is crawled once');

    for (const shop of shops) await shop.setRules([{ id: BROKEN, do: { type: 'status', status: 500 } }]);
    const first = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shops[0]!.stats()).requests >= 20, { what: '20 requests', timeoutMs: 60_000 });
    first.kill('SIGKILL');
    expect((await first.finished).signal).toBe('SIGKILL');
    const { report } = await endOf(fleet.start('resume', '--json'));
    expect(report.products).toMatchObject({ planned: 84, stored: 80, failed: 4, reasons: { redirect: 3 } });
    for (const shop of shops) await expectSound(fleet, report, shop, INTERVAL_MS);

    // By each shop's own ledger: what it was asked for, and the pace of each address there.
    for (const [domain, shop] of shops.entries()) {
      const log = await shop.log();
      const own = IDS.filter((_id, i) => hostOf(i) === domain);
      const asked = new Set(log.filter(({ kind }) => kind === 'page').map(({ path }) => path));
      expect([...asked].toSorted()).toEqual(own.map((id) => `${slugPath(id)}?from=list`).toSorted());
      expect(log.some(({ kind }) => kind === 'robots')).toBe(true);
      expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
    }
    const stored = await fleet.query('select product_id, url from product_snapshots');
    const expected = new Map([...urls, ['twin', urls.get(IDS[1]!)!]]);
    expected.delete(BROKEN);
    expect(new Map(stored.map(({ product_id: id, url }) => [String(id), String(url)]))).toEqual(expected);

    const failed = JSON.parse((await fleet.run('status', report.run, '--failed', '--json')).stdout) as {
      failed: { id: string; reason: string; detail: string; url: string }[];
    };
    expect(failed.failed.map(({ id, reason }) => [id, reason])).toEqual([
      ['none', 'redirect'],
      ['elsewhere', 'redirect'],
      ['typo', 'redirect'],
      [BROKEN, 'http-status'],
    ]);
    expect(failed.failed.at(-1)!.url).toBe(urls.get(BROKEN));
    const product = JSON.parse((await fleet.run('product', urls.get(IDS[5]!)!, '--json')).stdout) as object;
    expect(product).toMatchObject({ id: IDS[5], nights: [{ url: urls.get(IDS[5]!), outcome: 'stored' }] });

    for (const shop of shops) await shop.setRules([]);
    const retried = await endOf(fleet.start('retry', '--json'));
    expect(retried.stderr).toContain('3 products without a URL to request are left out');
    expect(retried.stderr).toContain('Trying 1 product again');
    expect(retried.report).toMatchObject({ exitCode: 0, products: { planned: 1, stored: 1 } });
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  });

  it(
    'are asked for conditionally at the same URL only, by a file, and in a simulation',
    { tags: ['nightly'] },
    async () => {
      await fleet.query("delete from listed where url is null or id not like 'P%' or id > 'P00012'");
      const [moved, to] = [IDS[0]!, IDS[40]!];
      const file = join(fleet.dir, 'fleet.yaml');
      const config = parse(readFileSync(file, 'utf8')) as { site: object };
      const results = { history: 'changes' };
      writeFileSync(file, stringify({ ...config, site: { ...config.site, conditional: true }, results }));
      const first = await fleet.dryRun();
      expect(first.report, first.stderr).toMatchObject({ exitCode: 0, products: { planned: 12, stored: 12 } });

      await fleet.query(`update listed set url = '${urls.get(to)}' where id = '${moved}'`);
      for (const shop of shops) await shop.reset();
      const second = await fleet.dryRun();
      expect(second.report).toMatchObject({ exitCode: 0, products: { stored: 12 }, unchanged: { products: 11 } });
      const log = (await Promise.all(shops.map((shop) => shop.log()))).flat();
      expect(log.filter(({ id, status }) => id === to && status === 200)).not.toEqual([]);
      expect(log.some(({ id }) => id === moved)).toBe(false);
      const [row] = await fleet.query(`select url from product_snapshots where product_id = '${moved}'`);
      expect(row!.url).toBe(urls.get(to));
      const changes = await fleet.query('select distinct product_id from product_snapshots_history');
      expect(changes).toEqual([{ product_id: moved }]);

      const simulated = await fleet.run('simulate', '--deadline', '10m', '--json');
      expect(simulated.exitCode, simulated.stderr).toBe(0);

      const ids = join(fleet.dir, 'ids.txt');
      writeFileSync(ids, `new\t${urls.get(IDS[20]!)}\n${moved}\t${urls.get(moved)}\n`);
      const third = await fleet.dryRun('--ids', ids);
      expect(third.report, third.stderr).toMatchObject({ exitCode: 0, products: { planned: 2, stored: 2 } });
      const rows = await fleet.query(`select url from product_snapshots where product_id in ('new', '${moved}')`);
      expect(new Set(rows.map(({ url }) => url))).toEqual(new Set([urls.get(IDS[20]!), urls.get(moved)]));
      expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    },
  );

  it('are proposed by init, from a page of each host, and crawled', async () => {
    const target = join(fleet.dir, 'proposed');
    const given = [urls.get(IDS[4]!)!, urls.get(IDS[3]!)!];
    const made = await runCommand(process.execPath, [LAUNCHER, 'init', target, '--url', ...given, '--json']);
    expect(made.exitCode, made.stderr).toBe(0);
    const hosts = shops.map(({ url }) => url);
    expect(JSON.parse(made.stdout)).toMatchObject({
      productUrl: null,
      hosts,
      urls: given,
      ids: ['amber-fern', 'amber-ember'],
    });
    const config = ['--config', join(target, 'fleet.yaml')];
    const run = await runCommand(process.execPath, [
      LAUNCHER,
      'run',
      ...config,
      '--deadline',
      '1m',
      '--dry-run',
      '--json',
    ]);
    expect(readReport(run)).toMatchObject({ exitCode: 0, products: { planned: 2, stored: 2 } });
    for (const shop of shops) expect((await shop.log()).at(-1)).toMatchObject({ kind: 'page', status: 200 });
  });

  it('are what a probe asks for', { tags: ['nightly'] }, async () => {
    const limits = ['--intervals', '300ms', '--requests', '6', '--budget', '8', '--max-ban', '70s'];
    const probed = await fleet.run('probe', '--dry-run', '--i-have-permission', '--json', ...limits);
    expect(probed.exitCode, probed.stderr).toBe(0);
    const asked = (await shops[0]!.log()).filter(({ kind }) => kind === 'page').map(({ path }) => path);
    expect(asked).not.toEqual([]);
    for (const path of asked) expect(path).toMatch(/^\/amber-amber-amber\/.*\?from=list$/);
  });

  it('may be IDs with slashes, none of which leaves the template', { tags: ['nightly'] }, async () => {
    const slugs = IDS.slice(0, 6).map((id) => slugPath(id).slice(1));
    const file = join(fleet.dir, 'fleet.yaml');
    const config = parse(readFileSync(file, 'utf8')) as { site: object };
    const productUrl = `${shops[0]!.url}/{path}?by=path`;
    const run = { deadline: '90s', max_failed: '20%' };
    writeFileSync(file, stringify({ ...config, site: { ...config.site, hosts: null, product_url: productUrl }, run }));
    await fleet.query('delete from listed');
    const values = [...slugs, 'amber/../x'].map((id, place) => `(${place}, '${id}', 'https://unread.example/')`);
    await fleet.query(`insert into listed (place, id, url) values ${values.join(', ')}`);
    const plan = JSON.parse((await fleet.run('plan', '--dry-run', '--json')).stdout) as { warnings: string[] };
    expect(plan.warnings).toContainEqual(expect.stringContaining('a column url, which is ignored'));
    expect(plan.warnings).toContainEqual(
      '1 of 7 products has no URL to request, and will end as failed(redirect) without a request: row 7 (amber/../x): its ID has a dot segment',
    );
    const { report } = await fleet.dryRun();
    expect(report.products).toMatchObject({ planned: 7, stored: 6, failed: 1, reasons: { redirect: 1 } });
    const asked = (await shops[0]!.log()).filter(({ kind }) => kind === 'page').map(({ path }) => path);
    expect(asked.toSorted()).toEqual(slugs.map((slug) => `/${slug}?by=path`).toSorted());
    const found = await fleet.run('product', `${shops[0]!.url}/${slugs[2]}?by=path`, '--json');
    expect(JSON.parse(found.stdout)).toMatchObject({ id: slugs[2], nights: [{ outcome: 'stored' }] });
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  });

  it('end the command before a launch when too many of them have none', { tags: ['nightly'] }, async () => {
    await fleet.query("update listed set url = null where id < 'P00009'");
    const { exitCode, stderr, stdout } = await fleet.run('run', '--dry-run', '--json');
    expect(exitCode, stderr).toBe(4);
    expect(stdout).toContain('more than run.max_failed allows: row 1 (P00001): it has no URL');
    for (const shop of shops) expect((await shop.stats()).requests).toBe(0);
  });
});

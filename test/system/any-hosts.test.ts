/** `site.hosts: any`: records at many hosts, as `plan` and `simulate` see them; `many-hosts.test.ts` crawls some. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { type Fleet, makeFleet } from './fleet.ts';

/** More than an hour allows at a minute for each. */
const AT_BIG = 100;

eachEngineByDay('records at any hosts', (engine) => {
  let fleet: Fleet;

  beforeEach(async () => {
    fleet = await makeFleet({
      engine,
      productUrl: '',
      ids: [],
      config: {
        site: { product_url: undefined, hosts: 'any', interval: '60s', pages_at_once: 8 },
        products: { query: 'select id, url from people order by id' },
        run: { deadline: '1h' },
      },
    });
    await fleet.query('create table people (id integer primary key, url varchar(3000))');
    const urls = [
      ...Array.from({ length: AT_BIG }, (_, i) => `https://${i % 2 ? 'www.' : ''}big.example.co.uk/${i}`),
      ...Array.from({ length: 30 }, (_, i) => `http://small${i}.example.org.uk:8080/`),
      'ftp://old.example/',
      '',
    ];
    const values = urls.map((url, i) => `(${i + 1}, '${url}')`);
    await fleet.query(`insert into people (id, url) values ${values.join(', ')}`);
  });
  afterEach(() => fleet?.remove());

  it('are planned by what each registrable domain allows in the night', async () => {
    const plan = await fleet.run('plan', '--dry-run', '--json');
    expect(plan.exitCode, plan.stderr).toBe(0);
    const { manyHosts, products, warnings } = JSON.parse(plan.stdout) as {
      manyHosts: Record<string, unknown>;
      products: number;
      warnings: string[];
    };
    const fullest = [
      { host: 'example.co.uk', records: AT_BIG, delayMs: 0 },
      { host: 'example.org.uk', records: 30, delayMs: 0 },
    ];
    expect(manyHosts).toMatchObject({
      hosts: 2,
      listed: 130,
      cutHosts: 1,
      nights: 3,
      fullest,
      each: { requestsEach: 1.3, isMeasured: false },
    });
    expect(products).toBe(manyHosts['records']);
    expect(products).toBeGreaterThan(30);
    expect(products).toBeLessThan(130);
    expect(warnings).toContainEqual(expect.stringContaining('2 of 132 products have no URL to request'));
    const text = await fleet.run('plan', '--dry-run');
    expect(text.stdout).toMatch(/^fullest +example\.co\.uk 100, example\.org\.uk 30$/m);
  });

  it('are simulated as they are listed', async () => {
    const { stdout, stderr } = await fleet.run('simulate', '--dry-run', '--runs', '1', '--json');
    const { hosts } = JSON.parse(stdout) as { hosts: { listed: number; minGapMs: number; twoOwners: number } };
    expect(hosts, stderr).toMatchObject({ listed: 2, twoOwners: 0 });
    expect(hosts.minGapMs).toBeGreaterThanOrEqual(60_000);
  });

  it('are not crawled by a run that does not say who it is, a dry run neither', async () => {
    const config = readFileSync(fleet.configPath, 'utf8');
    writeFileSync(fleet.configPath, config.replace(/user_agent: .*/, 'user_agent: anonymous/1.0'));
    const run = await fleet.run('run', '--dry-run', '--yes');
    expect(run.exitCode).toBe(4);
    expect(run.stderr).toContain('a run over any hosts needs a site.user_agent with a link');
  });

  it('are crawled by a run on AWS that has what any such run needs', async () => {
    const config = readFileSync(fleet.configPath, 'utf8');
    writeFileSync(fleet.configPath, config.replace(/user_agent: .*/, 'user_agent: anonymous/1.0'));
    const run = await fleet.run('run', '--yes');
    expect(run.exitCode).toBe(4);
    expect(run.stderr).toMatch(/a run on AWS needs aws\.[^]* a site\.user_agent with a link/);
  });
});

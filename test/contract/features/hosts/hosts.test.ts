/** `orchestrator hosts` on a database with runs. */
import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { statusCommand } from '../../../../orchestrator/cli/commands/status.ts';
import type { Output } from '../../../../orchestrator/cli/output.ts';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { storeHostRequests } from '../../../../orchestrator/core/db/host-requests.ts';
import { versionOf } from '../../../../orchestrator/core/db/migrate.ts';
import { lockNamesOfRun } from '../../../../orchestrator/core/lookup/run-lock.ts';
import { hostsCommand } from '../../../../orchestrator/features/hosts/command.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/mariadb/database.ts';
import { expectFault } from '../../../support/expect-fault.ts';
import { features } from '../../../support/features.ts';
import { tempDir } from '../../../support/temp-dir.ts';
import {
  at,
  type Bench,
  bound,
  createInstance,
  createRun,
  keepingGrants,
  load,
  NOW,
  openBench,
  stored,
} from '../../core/db/harness.ts';

const HOST = 'shop.example';
const URLS = [1, 2, 3, 4].map((n) => `https://www.${HOST}/${n}`);

let folder: ReturnType<typeof tempDir>;
let test: TestDatabase;
let bench: Bench;
let lines: string[];
let documents: unknown[];

const output: Output = {
  json: true,
  line: (text = '') => void lines.push(text),
  document: (value) => void documents.push(value),
};

function configure(site: string): void {
  writeFileSync(
    folder.file('fleet.yaml'),
    `site: { ${site}, mapping: { fields: { title: h1 } } }
products: { query: "select id, url from products" }
results: { table: snapshots }
database: { url: "${test.url}" }`,
  );
}

async function hosts(action: string, ...words: string[]): Promise<number> {
  [lines, documents] = [[], []];
  const place = { configPath: folder.file('fleet.yaml'), environment: {}, features };
  const undo = words.at(-1) === '--undo';
  return hostsCommand({ ...place, action, words: undo ? words.slice(0, -1) : words, undo }, output);
}

/** A run that crawls the host on slot 0, with one record stored and one failed. */
async function aRun(hostKey?: 'host'): Promise<string> {
  const own = keepingGrants('snapshots');
  const settings = {
    ...own,
    site: { productUrl: [], intervalMs: 15_000, ...(hostKey && { hostKey }) },
    aws: { region: 'x', bucket: 'fleet-bucket' },
  };
  const chunks = [{ index: 1, first: 1, last: 4, hosts: { sliceOf: null, leftMs: 5_000 } }];
  const urls = new Map(URLS.map((url, i) => [`p${i + 1}`, i === 3 && hostKey ? `https://a.${HOST}/4` : url]));
  const { id } = await createRun(bench, 4, { settings: settings as never, urls, chunks });
  await createInstance(bench, id, 0);
  await bound(bench, id).fleet.patch(at(0), { address: '192.0.2.7' });
  await bound(bench, id).work.grant(at(0), ['1-1'], 9);
  await bound(bench, id).work.noteHosts(at(0), [{ host: HOST, delayMs: 20_000, notBeforeMs: NOW + 60_000 }]);
  const failure = { outcome: 'failed', reason: 'robots', detail: 'robots.txt forbids it' };
  await load(bench, id, [stored(1, URLS[0]), { ...stored(2, URLS[1]), ...failure } as never]);
  return id;
}

beforeEach(async () => {
  folder = tempDir('crawlfleet-hosts-command-');
  test = await createTestDatabase('sqlite');
  bench = await openBench(test);
  configure('hosts: any, interval: 15s');
});
afterEach(async () => {
  await bench.db.close();
  await test.drop();
  folder.remove();
});

describe('hosts deny and pace', () => {
  it('store what is asked of the whole domain, say so, and take it back', async () => {
    expect(await hosts('deny', 'https://www.Shop.example:8443/item/1')).toBe(0);
    expect(documents).toEqual([{ host: HOST, denied: true, paceMs: null, mainServer: null }]);
    expect(lines.join('\n')).toMatch(/^shop\.example: no request any more.*\nIt holds for all names and ports of shop/);
    expect(await hosts('pace', HOST, '60s')).toBe(0);
    expect(documents).toEqual([{ host: HOST, denied: true, paceMs: 60_000, mainServer: null }]);
    expect(await hosts('deny', HOST, '--undo')).toBe(0);
    expect(await bench.stores.runs.hostRow(HOST)).toMatchObject({ denied: null, paceMs: 60_000 });
    expect(lines[0]).toContain('1m at least between two requests');
    expect(await hosts('pace', HOST, '--undo')).toBe(0);
    expect(await bench.stores.runs.hostRow(HOST)).toMatchObject({ denied: null, paceMs: null });
    expect(lines[0]).toBe('shop.example: asked in the pace of each run.');
  });

  it('say which run hears of it, and which does not', async () => {
    const id = await aRun();
    const { runs } = bench.stores;
    await runs.releaseLock(bench.fence);
    const names = lockNamesOfRun((await runs.get(id))!);
    const lock = await runs.acquireLock({ owner: 'tests', names, nowMs: Date.now(), leaseMs: 60_000 });
    const { fence } = lock as { fence: number };
    await runs.renewLock(fence, Date.now(), 60_000, id);
    await hosts('deny', HOST);
    expect(documents).toMatchObject([{ mainServer: 'tests' }]);
    expect(lines.join('\n')).toContain(`Run ${id} keeps to it from the next heartbeat`);
    await runs.releaseLock(fence);
    await hosts('deny', HOST);
    expect(lines.join('\n')).toContain(`! No main server is at work on run ${id}`);
  });

  it('warn where the configuration is of one site', async () => {
    configure('product_url: "http://shop.example/{id}"');
    expect(await hosts('deny', HOST)).toBe(0);
    expect(lines.join('\n')).toContain('! Only runs with site.hosts: any keep to it');
  });

  it.each([
    ['forget', HOST],
    ['show'],
    ['show', HOST, '--undo'],
    ['show', HOST, 'b.example'],
    ['deny', 'abuse@shop.example'],
    ['deny', HOST, '60s'],
    ['pace', HOST],
    ['pace', HOST, '100ms'],
    ['pace', HOST, '60s', '--undo'],
    ['pace', HOST, '60s', '70s'],
  ])('refuse %s %s %s', async (action, ...words) => {
    await expectFault(hosts(action, ...words), 'usage');
    expect(await bench.stores.runs.hostRow(HOST)).toBeNull();
  });
});

describe('hosts before the first run', () => {
  beforeEach(async () => {
    await bench.db.close();
    await test.drop();
    test = await createTestDatabase('sqlite');
    configure('hosts: any, interval: 15s');
  });

  it('shows that nothing is there, and makes no tables', async () => {
    expect(await hosts('show', HOST)).toBe(0);
    expect(documents).toMatchObject([{ host: HOST, isKnown: false, last: null }]);
    bench = { ...bench, db: await openDatabase(test.url) };
    expect(await versionOf(bench.db)).toBe(0);
  });

  it('stores what is asked of all runs to come, and says where', async () => {
    expect(await hosts('deny', HOST)).toBe(0);
    expect(documents).toEqual([{ host: HOST, denied: true, paceMs: null, mainServer: null }]);
    expect(lines.join('\n')).toContain('! There has been no run in sqlite:');
    expect(await hosts('pace', HOST, '60s')).toBe(0);
    expect(lines.join('\n')).not.toContain('There has been no run');
    expect(await hosts('show', HOST)).toBe(0);
    expect(documents).toMatchObject([{ isKnown: true, denied: true, paceMs: 60_000, last: null }]);
    expect(lines.join('\n')).toContain('no run had a record there');
    bench = await openBench(test);
  });
});

describe('hosts show', () => {
  it('says plainly that nothing is there', async () => {
    expect(await hosts('show', HOST)).toBe(0);
    expect(documents).toMatchObject([{ host: HOST, isKnown: false, denied: false, last: null }]);
    expect(lines.join('\n')).toContain('nothing is stored');
  });

  it('names the last run and instance, the records, and where each request is logged', async () => {
    const id = await aRun();
    await hosts('pace', HOST, '60s');
    expect(await hosts('show', `http://www.${HOST}/1`)).toBe(0);
    expect(documents).toMatchObject([
      {
        host: HOST,
        isKnown: true,
        denied: false,
        paceMs: 60_000,
        wishedAt: expect.stringMatching(/Z$/),
        crawlDelayMs: 20_000,
        notBefore: new Date(NOW + 60_000).toISOString(),
        last: {
          run: id,
          slot: 0,
          epoch: 1,
          instance: { id: 'i-0-1', address: '192.0.2.7' },
          state: 'planned',
          dryRun: true,
          records: { records: 4, stored: 1, gone: 0, failed: { robots: 1 }, open: 2 },
          requestLogs: { bucket: 'fleet-bucket', run: `runs/${id}/`, instance: `runs/${id}/0/1/` },
        },
      },
    ]);
    const text = lines.join('\n');
    expect(text).toContain(`shop.example, to which http://www.${HOST}/1 belongs`);
    expect(text).toContain('4: 1 stored, 0 gone, 1 failed (robots 1), 2 open');
    expect(text).toContain('slot 0.1: i-0-1, 192.0.2.7');
    expect(text).toContain(`orchestrator verify ${id}`);
  });

  it('tells each night of a year, whether or not anything else is known of its run', async () => {
    const asked = { host: HOST, slot: 0, epoch: 1, address: '192.0.2.7', requests: 40, intervalMs: 60_000 };
    for (let night = 1; night <= 40; night++) {
      const firstMs = NOW + night * 86_400_000;
      await storeHostRequests(bench.db, `night-${night}`, [{ ...asked, firstMs, lastMs: firstMs + 3_600_000 }]);
    }
    await hosts('show', HOST);
    const [{ nights }] = documents as [{ nights: unknown[] }];
    expect(documents).toMatchObject([{ isKnown: true, last: null }]);
    expect(nights.length).toBe(40);
    expect(nights[0]).toEqual({
      run: 'night-40',
      slot: 0,
      epoch: 1,
      address: '192.0.2.7',
      first: '2026-12-31T02:15:00.000Z',
      last: '2026-12-31T03:15:00.000Z',
      requests: 40,
      intervalMs: 60_000,
    });
    const text = lines.join('\n');
    expect(text).toMatch(/night-40 +0\.1 +192\.0\.2\.7 +2026-12-31T02:15:00\.000Z +2026-12-31T03:15:00\.000Z +40 +1m/);
    expect(text).not.toContain('night-9 ');
    expect(text).toContain('and 9 earlier ones, which --json has');
  });

  it('has the names of a domain that were asked by themselves, and what is known of each', async () => {
    const id = await aRun('host');
    const name = `a.${HOST}`;
    const asked = { host: name, slot: 0, epoch: 1, address: '192.0.2.7', requests: 4, intervalMs: 15_000 };
    await storeHostRequests(bench.db, id, [{ ...asked, firstMs: NOW, lastMs: NOW + 60_000 }]);
    await bound(bench, id).work.noteHosts(at(0), [{ host: name, delayMs: 30_000 }]);
    await hosts('show', HOST);
    expect(documents).toMatchObject([{ names: [{ host: name, runId: id }], nights: [] }]);
    expect(lines.join('\n')).toContain(`1 by themselves (site.host_key: host): ${name}; hosts show has each`);
    await hosts('show', `https://www.${name}/x`);
    const own = { host: name, crawlDelayMs: 30_000, last: { run: id, records: { records: 1 } }, nights: [{ run: id }] };
    expect(documents).toMatchObject([{ host: HOST, own }]);
    expect(lines.join('\n')).toMatch(
      /\na\.shop\.example, by itself in runs with site\.host_key: host\n {2}Crawl-delay {2}30s/,
    );
    await hosts('deny', name);
    expect(documents).toMatchObject([{ host: HOST, denied: true }]);
    expect(lines.join('\n')).toContain(`! No main server is at work on run ${id}`);
  });

  it('goes without what retention has removed, and without the run', async () => {
    const id = await aRun();
    const { knex } = bench.db;
    await knex('crawlfleet_runs').where({ id }).update({ pruned_at: NOW });
    await hosts('show', HOST);
    expect(documents).toMatchObject([{ last: { run: id, records: null } }]);
    expect(lines.join('\n')).toContain('removed by retention');
    await knex('crawlfleet_runs').where({ id }).del();
    await hosts('show', HOST);
    expect(documents).toMatchObject([{ crawlDelayMs: 20_000, last: { run: id, state: null, requestLogs: null } }]);
    expect(lines.join('\n')).toContain('of which this database has nothing else');
  });
});

describe('status --hosts', () => {
  const status = (given: { runId?: string; failed?: boolean }): Promise<number> => {
    [lines, documents] = [[], []];
    const place = { configPath: folder.file('fleet.yaml'), environment: {}, features };
    return statusCommand({ ...place, runId: undefined, ...given, hosts: true }, output);
  };

  it('counts the hosts of a run, and says which take longest and until when', async () => {
    const id = await aRun();
    const restsUntilMs = Date.now() + 3_600_000;
    await bound(bench, id).work.noteHosts(at(0), [{ host: HOST, notBeforeMs: restsUntilMs }]);
    expect(await status({ runId: id })).toBe(0);
    const until = new Date(restsUntilMs).toISOString();
    expect(documents).toMatchObject([
      {
        run: id,
        state: 'planned',
        hostCounts: { done: 0, givenUp: {}, open: 1 },
        resting: { hosts: 1, until },
        // The Crawl-delay of 20 s, with a margin.
        longest: [{ host: HOST, open: 2, gapMs: 20_200, until: new Date(restsUntilMs + 20_200).toISOString() }],
      },
    ]);
    const text = lines.join('\n');
    expect(text).toContain('hosts    1 = 0 done + 0 given up + 1 open');
    expect(text).toContain(`resting  1, the last until ${until}`);
    expect(text).toMatch(/shop\.example +2 +20\.2s +.*, after the deadline/);
    await bound(bench, id).work.failRest('deadline');
    await status({ runId: id });
    expect(lines.join('\n')).toBe(`Run ${id}: planned\n  hosts    1 = 1 done + 0 given up`);
  });

  it('takes the newest run of many hosts, and no other', async () => {
    await expectFault(status({}), 'run-unknown', 'there is no run of this site');
    const { id } = await createRun(bench, 1, { settings: keepingGrants('snapshots') });
    await expectFault(status({ runId: id }), 'usage');
    await expectFault(status({ failed: true }), 'usage');
    await expectFault(status({}), 'run-unknown', 'no run of this site or result table is of many hosts');
    const any = await aRun();
    expect(await status({})).toBe(0);
    expect(documents).toMatchObject([{ run: any }]);
    await bench.db.knex('crawlfleet_runs').where({ id: any }).update({ pruned_at: NOW });
    await expectFault(status({ runId: any }), 'run-unknown');
  });
});

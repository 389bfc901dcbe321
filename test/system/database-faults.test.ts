/**
 * F46 to F51 on real parts: whole runs on a MariaDB of their own that dies, freezes, refuses, and loses connections.
 *
 * @module-tag nightly
 */
import type { Connection } from 'mysql2/promise';
import { createConnection } from 'mysql2/promise';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import type { DatabaseServer } from '../support/mariadb/server.ts';
import { startDatabaseServer } from '../support/mariadb/server.ts';
import type { CommitCutter } from '../contract/db/commit-cutter.ts';
import { startCommitCutter } from '../contract/db/commit-cutter.ts';
import type { TestDatabase } from '../support/mariadb/database.ts';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import type { Shop } from '../support/shop/start-shop.ts';
import { startShop } from '../support/shop/start-shop.ts';
import { withoutSlowBoots } from '../support/slow-boots.ts';
import type { Fleet } from './fleet.ts';
import { makeFleet, readReport } from './fleet.ts';
import { expectSound } from './soundness.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 46;
const IDS = productIds(80);
const RUN = { deadline: '120s', min_instances: 2, max_instances: 2 };

/** Longer than a statement may take: 30 s. */
const FROZEN_MS = 34_000;

let shop: Shop;
let server: DatabaseServer;
let cutter: CommitCutter | null;
let fleet: Fleet;
let made = 0;

beforeAll(async () => {
  [shop, server] = await Promise.all([startShop({ seed: SEED, products: IDS.length }), startDatabaseServer()]);
});
afterAll(async () => {
  await shop.stop();
  await server.stop();
});
beforeEach(async () => {
  await shop.reset();
  cutter = null;
});
afterEach(async () => {
  await fleet.remove();
  await cutter?.close();
});

/** For a user without server-level rights: an administrator would bypass the very limits that are tested. */
async function aDatabase(on: DatabaseServer): Promise<TestDatabase> {
  const schema = `run_${++made}`;
  await on.query('', `create database ${schema} character set utf8mb4`);
  await on.query('', `create user if not exists plain identified by 'plain'`);
  await on.query('', `grant all on ${schema}.* to plain`);
  return {
    url: `mysql://plain:plain@${on.host}/${schema}`,
    drop: async () => void (await on.query('', `drop database ${schema}`)),
  };
}

/** `url`: through which the run reaches it. */
async function prepare(database: TestDatabase, url = database.url): Promise<void> {
  const config = { run: RUN, database: { url } };
  fleet = await makeFleet({ engine: 'mysql', database, productUrl: shop.productUrl, ids: IDS, config });
}

/** A whole run; `fault` is injected in the middle of its crawl, and resolves when it is over. */
async function runThrough(fault: () => Promise<void>): Promise<void> {
  const run = fleet.start('run', '--dry-run', '--json');
  await waitFor(async () => (await shop.stats()).requests >= 12, { what: '12 requests', timeoutMs: 60_000 });
  await fault();
  const result = await run.finished;
  const report = readReport(result);
  expect(withoutSlowBoots(report), `${report.notes?.join('\n')}\n${result.stderr}`).toMatchObject({
    state: 'completed',
    exitCode: 0,
    products: { stored: IDS.length, failed: 0 },
    instances: { replaced: 0 },
  });
  // The shop received no request twice: the instances knew what the database did not.
  expect((await shop.stats()).requests).toBe(IDS.length);
  await expectTrueRows(fleet, SEED, IDS);
  await expectSound(fleet, report, shop);
}

describe('a run whose database', () => {
  it('F46: is killed with kill -9 and comes back', async () => {
    await prepare(await aDatabase(server));
    await runThrough(async () => {
      await server.kill();
      await delay(2_000);
      await server.start();
    });
  });

  it('F48: freezes for longer than a statement may take', async () => {
    await prepare(await aDatabase(server));
    await runThrough(async () => {
      server.signal('SIGSTOP');
      try {
        await delay(FROZEN_MS);
      } finally {
        server.signal('SIGCONT');
      }
    });
  });

  it('F46: is read-only for a while', async () => {
    await prepare(await aDatabase(server));
    await runThrough(async () => {
      await server.query('', 'set global read_only = 1');
      try {
        await delay(4_000);
      } finally {
        await server.query('', 'set global read_only = 0');
      }
    });
  });

  it('F46: has too many connections for a while, and has closed the existing ones', async () => {
    const database = await aDatabase(server);
    await prepare(database);
    await runThrough(async () => {
      await server.query('', 'alter user plain with max_user_connections 1');
      // Our connection takes the only free one as soon as there is one.
      let ours: Connection | null = null;
      while (!ours) {
        const running = `select id from information_schema.processlist where user = 'plain'`;
        for (const { id } of await server.query('', running))
          await server.query('', `kill ${String(id)}`).catch(() => undefined);
        ours = await createConnection({ uri: database.url }).catch(() => null);
      }
      await delay(3_000);
      await ours.end();
      await server.query('', 'alter user plain with max_user_connections 0');
    });
  });

  it('F46: ends every connection that is idle for a second', async () => {
    await server.query('', 'set global wait_timeout = 1');
    try {
      await prepare(await aDatabase(server));
      await runThrough(() => Promise.resolve());
    } finally {
      await server.query('', 'set global wait_timeout = 28800');
    }
  });

  it('F47: loses the connection in every fifth COMMIT, alternately before and after it is executed', async () => {
    const database = await aDatabase(server);
    cutter = await startCommitCutter(database.url);
    let commits = 0;
    cutter.onCommit = () => (++commits % 5 === 0 ? (commits % 10 === 0 ? 'before' : 'after') : null);
    await prepare(database, cutter.url);
    await runThrough(() => Promise.resolve());
    expect(cutter.cuts()).toBeGreaterThan(10);
  });
});

describe('results', () => {
  it('F50: are loaded once by two loaders that start at the same time', async () => {
    const database = await aDatabase(server);
    await prepare(database);
    const { report } = await fleet.dryRun();
    expect(report.exitCode).toBe(0);
    const tables = await fleet.query(`show tables like 'crawlfleet\\_%'`);
    for (const row of tables) await fleet.query(`drop table \`${String(Object.values(row)[0])}\``);
    await fleet.query('drop table product_snapshots');
    const ends = await Promise.all([fleet.run('load', report.run, '--json'), fleet.run('load', report.run, '--json')]);
    // The other one finds nothing left to do, or the first one at work.
    const said = ends.map(({ exitCode, stdout }) => `${exitCode} ${stdout}`).join('\n');
    expect(
      ends.some(({ exitCode }) => exitCode === 0),
      said,
    ).toBe(true);
    expect(
      ends.every(({ exitCode }) => exitCode === 0 || exitCode === 20),
      said,
    ).toBe(true);
    await expectTrueRows(fleet, SEED, IDS);
    const [parts] = await fleet.query(`select count(*) as n, sum(stored) as stored from crawlfleet_parts`);
    expect(Number(parts?.stored)).toBe(IDS.length);
    expect((await fleet.run('verify', report.run, '--json')).exitCode).toBe(0);
  });

  it('F51: of a table that has changed since yesterday are refused before anything is launched', async () => {
    await prepare(await aDatabase(server));
    expect((await fleet.dryRun()).exitCode).toBe(0);
    await fleet.query('delete from product_snapshots');
    const launched = await fleet.query('select * from crawlfleet_launches');
    const { requests } = await shop.stats();
    for (const [change, column] of [
      ['drop column price', 'price'],
      ['add column price bigint, modify title int', 'title'],
      ['modify title text, add column shop_id int not null', 'shop_id'],
    ]) {
      await fleet.query(`alter table product_snapshots ${change}`);
      const today = await fleet.run('run', '--dry-run', '--json');
      expect(today.exitCode, today.stdout).toBe(4);
      const { error } = JSON.parse(today.stdout) as { error: { code: string; message: string; hint: string } };
      expect(error.code).toBe('results-schema');
      expect(`${error.message} ${error.hint}`).toContain(column);
    }
    expect(await fleet.query('select * from crawlfleet_launches')).toEqual(launched);
    expect(await fleet.query('select id from crawlfleet_runs')).toHaveLength(1);
    expect((await shop.stats()).requests).toBe(requests);
    expect(fleet.leftovers()).toEqual([]);
  });
});

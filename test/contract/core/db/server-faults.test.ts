/** F46 and F48: what happens to a load when the whole database server dies, freezes, or refuses it for a while. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Connection, createConnection } from 'mysql2/promise';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import { checkRights } from '../../../../orchestrator/core/db/rights.ts';
import { type DatabaseServer, startDatabaseServer } from '../../../support/mariadb/server.ts';
import { waitFor } from '../../../support/processes.ts';
import { fillDisk, mountSmallDisk } from '../../../support/small-disk.ts';
import { at, type Bench, bound, createRun, manyStored, openBench, partRef, stored } from './harness.ts';
import { expectFault } from '../../../support/expect-fault.ts';
import { features } from '../../../support/features.ts';

const ROWS = 3_000;
const PLACE = { slot: 0, epoch: 1, seq: 0 };

let made = 0;

/** A user without any server-level right: those would bypass the very limits. */
async function openPlain(server: DatabaseServer, statementMs?: number): Promise<Bench> {
  const schema = `faults_${++made}`;
  await server.query('', `create database ${schema} character set utf8mb4`);
  await server.query('', `create user if not exists plain identified by 'plain'`);
  await server.query('', `grant all on ${schema}.* to plain`);
  const url = `mysql://plain:plain@${server.host}/${schema}`;
  return openBench({ url }, { connectMs: 1_000, ...(statementMs === undefined ? {} : { statementMs }) });
}

/** A run of 3,000 products with its part in the ledger. */
async function aPart(bench: Bench): Promise<string> {
  const { id, results } = await createRun(bench, ROWS, { chunkSize: 100 });
  await results.register(at(0), [partRef(id, { ...at(0), seq: 0 }, ROWS)]);
  return id;
}

const RESULTS = manyStored(ROWS);
const loadPart = (bench: Bench, id: string) => bound(bench, id).results.load(PLACE, RESULTS);

async function expectLoaded(bench: Bench, id: string): Promise<void> {
  expect(await bound(bench, id).work.outcomes()).toMatchObject({ stored: ROWS, open: 0 });
  expect(await bound(bench, id).results.totals()).toMatchObject({ stored: ROWS, seen: 1, loaded: 1 });
  const [row] = (await bench.db.knex(`crawlfleet_staging_${id}`).count({ rows: '*' })) as { rows: string }[];
  expect(Number(row?.rows)).toBe(ROWS);
}

describe('a database server that fails in the middle of a load', () => {
  let server: DatabaseServer;
  let bench: Bench;
  const others: Connection[] = [];
  beforeAll(async () => {
    server = await startDatabaseServer();
    bench = await openPlain(server, 4_000);
  });
  afterAll(async () => {
    await bench.db.close();
    await server.stop();
  });
  afterEach(async () => {
    for (const connection of others.splice(0)) connection.destroy();
  });

  /** Starts a load and pauses it half-way, with part of its rows written and not committed. */
  async function halfLoaded(id: string): Promise<{ load: Promise<unknown>; release: () => void }> {
    const other = await createConnection({ uri: server.url(bench.db.schema!) });
    other.on('error', () => undefined);
    others.push(other);
    await other.query('begin');
    // The last batch has to wait for this row of the same key.
    await other.query(
      `insert into \`crawlfleet_staging_${id}\` (product_id, url, crawled_at) values ('p999', '', now())`,
    );
    const load = loadPart(bench, id);
    load.catch(() => undefined);
    await untilWaiting(server);
    return { load, release: () => other.destroy() };
  }

  it('F46: killed with kill -9: what was not committed is loaded again, each row once', async () => {
    const id = await aPart(bench);
    const { load } = await halfLoaded(id);
    await server.kill();
    await server.start();
    expect(await load).toEqual({ stored: ROWS, gone: 0, failed: 0 });
    await expectLoaded(bench, id);
  });

  it('F46: killed while a command opens it: the restart is waited for, which is said once', async () => {
    await server.kill();
    const said: string[] = [];
    let restarted = Promise.resolve();
    const onWait = (text: string): void => {
      said.push(text);
      restarted = server.start();
    };
    const db = await openDatabase(bench.url, { onWait });
    await restarted;
    await db.close();
    expect(said).toEqual([expect.stringMatching(/^cannot reach .* \([A-Z_]+\): waiting up to 30 s for it$/)]);
  });

  it('F48: frozen in the middle of a statement: it times out, and a new connection repeats it after the thaw', async () => {
    const id = await aPart(bench);
    const { load, release } = await halfLoaded(id);
    server.signal('SIGSTOP');
    release();
    const asked = bench.stores.runs.get(id);
    const startedMs = performance.now();
    // A query that gets no answer, only its time-out.
    const raw = bench.db.knex.raw('select 1 as one').then(
      () => null,
      (error: unknown) => error,
    );
    expect(await raw).toMatchObject({ code: expect.stringMatching(/TIMEOUT|TIMEDOUT/) as string });
    expect(performance.now() - startedMs).toBeLessThan(15_000);
    server.signal('SIGCONT');
    expect(await asked).toMatchObject({ id });
    expect(await load).toEqual({ stored: ROWS, gone: 0, failed: 0 });
    await expectLoaded(bench, id);
  });

  it('F46: read-only for a while: the load waits until it ends; before a run it is refused by name', async () => {
    const id = await aPart(bench);
    await server.query('', 'set global read_only = 1');
    try {
      await expectFault(checkRights(bench.db), 'database-failed', /accepts no writes.*read-only/);
      const refused = refusals(bench);
      const load = loadPart(bench, id);
      await waitFor(async () => refused.count > 0, { what: 'a write to be refused' });
      await server.query('', 'set global read_only = 0');
      expect(await load).toEqual({ stored: ROWS, gone: 0, failed: 0 });
    } finally {
      await server.query('', 'set global read_only = 0');
    }
    await expectLoaded(bench, id);
  });

  it('F46: out of connections: the load waits for one; before a run it is refused by name', async () => {
    const id = await aPart(bench);
    const plain = new URL(bench.url);
    await server.query('', 'set global max_connections = 10');
    try {
      // All idle connections of the pool are dropped first, or it would need no new ones.
      for (const { id: idle } of await server.query(
        '',
        `select id from information_schema.processlist where user = 'plain'`,
      ))
        await server.query('', `kill ${String(idle)}`).catch(() => undefined);
      for (let full = false; !full;) {
        const other = await createConnection({ uri: plain.href }).catch(() => null);
        other?.on('error', () => undefined);
        if (other) others.push(other);
        full = other === null;
      }
      await expectFault(openDatabase(bench.url), 'database-unreachable', 'accepts no more connections');
      const refused = refusals(bench);
      const load = loadPart(bench, id);
      await waitFor(async () => refused.count > 0, { what: 'a connection to be refused' });
      for (const connection of others.splice(0)) connection.destroy();
      expect(await load).toEqual({ stored: ROWS, gone: 0, failed: 0 });
    } finally {
      await server.query('', 'set global max_connections = 151');
    }
    await expectLoaded(bench, id);
  });

  it('F46: connections that the server has closed for idleness are not taken for live ones', async () => {
    const id = await aPart(bench);
    await server.query('', 'set global wait_timeout = 1');
    // The session value is read when a connection is made.
    const late = await openDatabase(bench.url);
    try {
      const stores = createStores(late, features);
      const answers = (await Promise.all(
        Array.from({ length: 6 }, () => late.knex.raw('select connection_id() as id, sleep(0.05)')),
      )) as [[{ id: string }]][];
      const ids = new Set(answers.map(([[row]]) => row.id));
      expect(ids.size).toBeGreaterThan(1);
      const living = async () =>
        (await server.query('', 'show processlist')).filter((row) => ids.has(String(row.Id))).length;
      await waitFor(async () => (await living()) === 0, {
        what: 'the server to end idle connections',
        timeoutMs: 20_000,
      });
      expect(await stores.runs.get(id)).toMatchObject({ id });
      expect(await bound({ ...bench, stores }, id).results.load(PLACE, RESULTS)).toMatchObject({ stored: ROWS });
    } finally {
      await server.query('', 'set global wait_timeout = 28800');
      await late.close();
    }
    await expectLoaded(bench, id);
  });
});

describe('a database server whose disk is full', () => {
  it('F46: the load waits until there is room, and is then complete', async (context) => {
    const disk = mountSmallDisk('220m');
    if (!disk) return context.skip('this user may not mount a small disk');
    const server = await startDatabaseServer({ dataIn: disk.path });
    try {
      const bench = await openPlain(server);
      try {
        const id = await aPart(bench);
        const empty = fillDisk(disk.path);
        const refused = refusals(bench);
        // More than the server's existing files have room for.
        const big = RESULTS.map((result) => stored(result.n, result.id, { title: 'x'.repeat(5_000) }));
        const load = bound(bench, id).results.load(PLACE, big);
        load.catch(() => undefined);
        await waitFor(async () => refused.count > 0, { what: 'a write to be refused' });
        empty();
        expect(await load).toEqual({ stored: ROWS, gone: 0, failed: 0 });
        await expectLoaded(bench, id);
      } finally {
        await bench.db.close();
      }
    } finally {
      await server.stop();
      disk.unmount();
    }
  });
});

/** Counts how often a transaction had to be restarted: the pauses between tries use the database's own clock. */
function refusals(bench: Bench): { count: number } {
  const seen = { count: 0 };
  const { clock } = bench.db;
  bench.db.clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep(ms, signal) {
      seen.count++;
      return clock.sleep(ms, signal);
    },
  };
  return seen;
}

/** Until some transaction waits for a row lock. */
async function untilWaiting(server: DatabaseServer): Promise<void> {
  const waiting = `select count(*) as n from information_schema.innodb_trx where trx_state = 'LOCK WAIT'`;
  // The server caches its answer until there was no query for 100 ms.
  const options = { what: 'the load to be half-way', everyMs: 150 };
  await waitFor(async () => Number((await server.query('', waiting))[0]?.n) > 0, options);
}

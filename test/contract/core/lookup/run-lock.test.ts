/** The lock between real processes: who gets it when the other one lives, dies, freezes or loses its connection. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import { takeLock } from '../../../../orchestrator/core/lookup/run-lock.ts';
import { type Database, openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { toAppError } from '../../../../orchestrator/core/db/database-errors.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import { lockName } from '../../../../orchestrator/core/db/connection-lock.ts';
import { createLockGuard } from '../../../../orchestrator/core/db/locks.ts';
import { migrate } from '../../../../orchestrator/core/db/migrate.ts';
import { administer, createTestDatabase, ENGINES, type TestDatabase } from '../../../support/mariadb/database.ts';
import { type RunningCommand, startCommand, waitFor } from '../../../support/processes.ts';
import { LOCK_NAMES } from '../../../support/lock-request.ts';
import { features } from '../../../support/features.ts';

const HOLDER = fileURLToPath(new URL('lock-holder.ts', import.meta.url));
/** The production times, shortened; a holder that gets no CPU for some seconds still renews its lease in time. */
const TIMES = { leaseMs: 4_500, renewMs: 600, watchMs: 2_400, settleMs: 100, giveUpMs: 2_000 };
const HOUR = 3_600_000;

let test: TestDatabase;
let db: Database;
const started: RunningCommand[] = [];

async function open(engine: (typeof ENGINES)[number]): Promise<void> {
  test = await createTestDatabase(engine);
  db = await openDatabase(test.url);
  await migrate(db);
}

afterEach(async () => {
  for (const holder of started.splice(0)) {
    holder.kill('SIGKILL');
    await holder.finished;
  }
  await db.close();
  await test.drop();
});

function startHolder(url: string, aheadMs = 0, mode: '' | 'writing' = ''): RunningCommand {
  const args = [HOLDER, url, JSON.stringify(TIMES), String(aheadMs), mode];
  const holder = startCommand(process.execPath, args, { timeoutMs: 180_000 });
  started.push(holder);
  return holder;
}

const says = (holder: RunningCommand, what: string) =>
  waitFor(() => holder.stdout().includes(what), { what: `"${what}"` }).catch((cause: unknown) => {
    throw new Error(`the holder said only "${holder.stdout()}${holder.stderr()}"`, { cause });
  });

const take = (names = LOCK_NAMES) =>
  takeLock({ runs: createStores(db, features).runs, names, clock: systemClock, times: TIMES });

describe.each(ENGINES)('F41 the lock on %s', (engine) => {
  beforeEach(() => open(engine));
  /** The lease has the same code on both databases. */
  const onMySqlByDay = engine === 'mysql' ? {} : { tags: ['nightly'] };

  it('refuses a second main server while the first one lives, and admits it when the first has left', async () => {
    const first = startHolder(test.url);
    await says(first, 'held');
    const second = startHolder(test.url);
    await says(second, 'refused: another main server');
    first.kill('SIGTERM');
    await says(first, 'released');
    const lock = await take();
    await lock[Symbol.asyncDispose]();
  });

  it('admits a main server of another site that publishes into another table', async () => {
    const first = startHolder(test.url);
    await says(first, 'held');
    const other = await take(['host:shop.example.org', 'table:others']);
    await expect(take(['host:shop.example', 'table:third'])).rejects.toMatchObject({ code: 'lock-held' });
    expect(first.stdout()).not.toContain('lost');
    await other[Symbol.asyncDispose]();
  });

  it('names the lock that is held, and the run as soon as it is known', onMySqlByDay, async () => {
    const lock = await take(['host:b.example', 'table:b']);
    await lock.setRun('run-b');
    await expect(take(['host:a.example', 'table:b'])).rejects.toThrow('is running run-b and has the lock of table b');
    await lock[Symbol.asyncDispose]();
  });

  it('goes to one of two that request the same names in another order', onMySqlByDay, async () => {
    const names = ['host:a.example', 'host:b.example', 'table:a'];
    const asked = await Promise.allSettled([take(names), take(names.toReversed())]);
    const locks = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    expect(locks).toHaveLength(1);
    await locks[0]![Symbol.asyncDispose]();
  });

  it('replaces one that was killed on this host at once', async () => {
    const first = startHolder(test.url);
    await says(first, 'held');
    first.kill('SIGKILL');
    await first.finished;
    const startedMs = performance.now();
    const lock = await take();
    expect(performance.now() - startedMs).toBeLessThan(TIMES.leaseMs);
    await lock[Symbol.asyncDispose]();
  });

  it('takes over from a frozen one when its lease has expired, and fences it when it thaws', onMySqlByDay, async () => {
    const first = startHolder(test.url);
    await says(first, 'held');
    const fence = Number(/held (\d+)/.exec(first.stdout())![1]);
    first.kill('SIGSTOP');
    await expect(take()).rejects.toMatchObject({ code: 'lock-held' });
    const lock = await waitFor(() => take().catch(() => null), { what: 'the lease to run out' });
    expect(lock.fence).toBeGreaterThan(fence);
    first.kill('SIGCONT');
    await says(first, 'lost');
    const { run } = createStores(db, features).bind({ runId: 'any', fence, clock: systemClock });
    await expect(run.setBalancer('any', null)).rejects.toMatchObject({ code: 'lock-held' });
    expect(lock.lost.aborted).toBe(false);
    await lock[Symbol.asyncDispose]();
  });

  it('F57 stays with a frozen one when the other cannot work', onMySqlByDay, async () => {
    const first = startHolder(test.url);
    await says(first, 'held');
    first.kill('SIGSTOP');
    const check = (): Promise<never> => Promise.reject(new Error('its port is taken'));
    const { runs } = createStores(db, features);
    const refused = (): Promise<unknown> =>
      takeLock({ runs, names: LOCK_NAMES, clock: systemClock, times: TIMES, check }).catch(String);
    await waitFor(async () => String(await refused()).includes('its port is taken'), { what: 'the lease to run out' });
    first.kill('SIGCONT');
    await expect(take()).rejects.toMatchObject({ code: 'lock-held' });
    expect(first.stdout()).not.toContain('lost');
  });

  it('F12 a main server whose clock is an hour ahead does not take a live lock', onMySqlByDay, async () => {
    const first = startHolder(test.url);
    await says(first, 'held');
    const ahead = startHolder(test.url, HOUR);
    await says(ahead, 'refused: another main server');
    expect(first.stdout()).not.toContain('lost');
  });
});

describe('F54 a database that refuses every renewal', () => {
  const QUICK = { ...TIMES, renewMs: 20, giveUpMs: 200 };

  /** The lock of a main server whose renewals all fail with this error from then on. */
  async function refused(engine: (typeof ENGINES)[number], driverCode: string) {
    await open(engine);
    const { runs } = createStores(db, features);
    const error = toAppError(Object.assign(new Error('said by the driver'), { code: driverCode }), 'shop');
    let renewals = 0;
    runs.renewLock = () => {
      renewals++;
      return Promise.reject(error);
    };
    const lock = await takeLock({ runs, names: LOCK_NAMES, clock: systemClock, times: QUICK });
    return { lock, renewals: () => renewals };
  }

  it.each(['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'SQLITE_CANTOPEN'])('stops the work on a file: %s', async (code) => {
    const { lock } = await refused('sqlite', code);
    await waitFor(() => lock.lost.aborted, { what: 'the lock to be given up' });
    expect(lock.lost.reason).toMatchObject({
      code: 'platform',
      exitCode: 4,
      message: expect.stringMatching(/^the database could not be written for \d+ms, .*said by the driver/) as string,
    });
    await lock[Symbol.asyncDispose]();
  });

  it.each([
    ['sqlite', 'SQLITE_BUSY'],
    ['mysql', 'ER_DISK_FULL'],
    ['mysql', 'ECONNREFUSED'],
  ] as const)('is waited for where it may recover on its own: %s %s', async (engine, code) => {
    const { lock, renewals } = await refused(engine, code);
    await waitFor(() => renewals() > (3 * QUICK.giveUpMs) / QUICK.renewMs, { what: 'many refusals' });
    expect(lock.lost.aborted).toBe(false);
    await lock[Symbol.asyncDispose]();
  });
});

describe('F46 the lock on MariaDB', () => {
  beforeEach(() => open('mysql'));

  const namedHolder = async (at = db): Promise<string | null> => {
    const name = lockName(at.schema!, LOCK_NAMES[0]!);
    const [rows] = (await at.knex.raw('select is_used_lock(?) as id', [name])) as [{ id: string | null }[]];
    return rows[0]!.id;
  };

  it('is also held by a connection, which is reopened when an administrator or wait_timeout ends it', async () => {
    const lock = await take();
    const id = await namedHolder();
    expect(id).not.toBeNull();
    await administer(`kill ${id}`);
    const again = await waitFor(async () => ((await namedHolder()) === id ? null : namedHolder()), {
      what: 'the named lock on another connection',
    });
    expect(again).not.toBe(id);
    expect(lock.lost.aborted).toBe(false);
    await lock[Symbol.asyncDispose]();
    expect(await namedHolder()).toBeNull();
  });

  it('ends the connection of a frozen holder before it takes over', { tags: ['nightly'] }, async () => {
    const first = startHolder(test.url);
    await says(first, 'held');
    const id = await namedHolder();
    first.kill('SIGSTOP');
    const lock = await waitFor(() => take().catch(() => null), { what: 'the lease to run out' });
    const [rows] = (await db.knex.raw('select count(*) as n from information_schema.processlist where id = ?', [
      id,
    ])) as [{ n: string }[]];
    expect(Number(rows[0]!.n)).toBe(0);
    await lock[Symbol.asyncDispose]();
  });

  it(
    'takes over within a minute from a main server that is frozen in a write',
    { timeout: 180_000, tags: ['nightly'] },
    async () => {
      const other = await createTestDatabase('mysql');
      const otherDb = await openDatabase(other.url);
      const idle = createLockGuard(otherDb).connection!(LOCK_NAMES);
      await idle.acquire();
      const id = await namedHolder(otherDb);
      const first = startHolder(test.url, 0, 'writing');
      await says(first, 'writing');
      first.kill('SIGSTOP');
      const startedMs = performance.now();
      const lock = await waitFor(() => take().catch(() => null), { what: 'the lock', timeoutMs: 120_000 });
      expect(performance.now() - startedMs).toBeLessThan(60_000);
      await lock[Symbol.asyncDispose]();
      // The named lock persists although nothing was sent in all that time: its connection idles on purpose.
      expect(await namedHolder(otherDb)).toBe(id);
      await idle.release();
      await otherDb.close();
      await other.drop();
    },
  );

  it('outlives a database that is down for longer than the lease', { tags: ['nightly'] }, async () => {
    const server = await startCut(test.url);
    const first = startHolder(server.url);
    await says(first, 'held');
    server.cut();
    await new Promise((resolve) => setTimeout(resolve, TIMES.leaseMs + 500));
    const [before] = await leases();
    server.mend();
    await waitFor(async () => Number((await leases())[0]!.expires_at) > Number(before!.expires_at), {
      what: 'the lease to be renewed',
    });
    expect(first.stdout()).not.toContain('lost');
    await expect(take()).rejects.toMatchObject({ code: 'lock-held' });
    await server.stop();
  });

  const leases = () => db.knex('crawlfleet_leases').select('expires_at');
});

/** The database behind a link that can be cut: clients see a server that goes away and returns. */
async function startCut(url: string): Promise<{ url: string; cut(): void; mend(): void; stop(): Promise<void> }> {
  const target = new URL(url);
  const { port, hostname } = target;
  const open = new Set<Socket>();
  let up = true;
  const server = createServer((client) => {
    if (!up) return void client.destroy();
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => {
          open.delete(socket);
          client.destroy();
          upstream.destroy();
        });
    }
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  target.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cut = (): void => {
    up = false;
    for (const socket of open) socket.destroy();
  };
  return {
    url: target.href,
    cut,
    mend: () => (up = true),
    stop: () => {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

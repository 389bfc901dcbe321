/**
 * The main server with 1,000,000 records on 50,000 hosts: listing, cutting, granting, loading, publishing, verifying.
 * Main server, sandbox and database are real processes; its instances are played here.
 */
import { S3ObjectStore } from '../../shared/adapters/s3-object-store.ts';
import { seededRandom } from '../../shared/adapters/random.ts';
import type { Product } from '../../shared/domain/product.ts';
import type { HostNews } from '../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import { parseUserData, USER_DATA_VERSION } from '../../shared/wire/settings.ts';
import { zipfLoads } from '../../orchestrator/core/simulation/many-hosts.ts';
import { createTestDatabase, type TestDatabase, type TestEngine } from '../../test/support/mariadb/database.ts';
import { type DatabaseServer, QUICK, startDatabaseServer } from '../../test/support/mariadb/server.ts';
import { readProcess, type RunningCommand, waitFor } from '../../test/support/processes.ts';
import { clientsFor } from '../../test/support/sandbox/clients.ts';
import { startSandbox, type TestSandbox } from '../../test/support/sandbox/start-sandbox.ts';
import { type Fleet, makeFleet, readReport } from '../../test/system/fleet.ts';
import type { Bench, BenchResult } from '../frame.ts';
import { RUN_LIMIT_MS } from '../watch-run.ts';
import { type CallbackTimes, playInstance } from './played-instance.ts';

const RECORDS = 1_000_000;
const HOSTS = 50_000;
/** The longest host has 25,000 records, the shortest one. */
const ZIPF = 0.8;
const INSTANCES = 8;
const INTERVAL_MS = 4;
const PAGE_MS = 80;
const PLACES = 32;
const MEMORY_BYTES = 350e6;

export const bench: Bench = {
  title: `The main server with ${RECORDS.toLocaleString('en')} records on ${HOSTS.toLocaleString('en')} hosts`,
  async run() {
    const server = await startDatabaseServer({ options: QUICK });
    try {
      const result: BenchResult = {
        about:
          `${INSTANCES} played instances take offers, ask for grants, report hosts, and store parts and request logs as real ones do; they request no page. ` +
          `The records fall on the hosts by Zipf's law (exponent ${ZIPF}), ${INTERVAL_MS} ms apart at each host. ` +
          '`plan` lists and cuts; `run` does so again and goes on to the published rows; `verify` proves them and every gap. Grants and heartbeats are timed at the instances. Everything on the same two cores.',
        rows: [],
        ratios: [],
      };
      for (const engine of ['mysql', 'sqlite'] as const) {
        const name = engine === 'sqlite' ? 'SQLite' : 'MariaDB';
        const figures = await measure(engine, await databaseOf(engine, server));
        result.rows.push({ name, figures });
        for (const command of ['plan', 'run', 'verify'] as const) {
          const value = (figures[`${command}MaxRssMb`]! * 1e6) / MEMORY_BYTES;
          result.ratios.push({ name: `${name}: RSS of ${command} / 350 MB`, value, target: 'below 1' });
        }
        result.ratios.push({ name: `${name}: settled / listed`, value: figures.settled! / RECORDS, target: '1' });
      }
      return result;
    } finally {
      await server.stop();
    }
  },
};

async function databaseOf(engine: TestEngine, server: DatabaseServer): Promise<TestDatabase> {
  if (engine === 'sqlite') return createTestDatabase(engine);
  await server.query('', 'create database bench_hosts character set utf8mb4');
  return { url: server.url('bench_hosts'), drop: () => Promise.resolve() };
}

async function measure(engine: TestEngine, database: TestDatabase): Promise<Record<string, number>> {
  const sandbox = await startSandbox();
  const fleet = await makeFleet({
    engine,
    database,
    productUrl: '',
    ids: [],
    config: {
      aws: { endpoint: sandbox.endpoint },
      site: {
        product_url: undefined,
        hosts: 'any',
        interval: `${INTERVAL_MS}ms`,
        pages_at_once: PLACES,
        mapping: {
          fields: { name: { css: 'h1', required: true }, mail: '.mail', employees: { css: '.n', integer: true } },
        },
      },
      products: { query: 'select id, url from people order by id' },
      run: { deadline: '25m', min_instances: INSTANCES, max_instances: INSTANCES, max_failed: '100%' },
    },
    timeoutMs: RUN_LIMIT_MS,
  });
  const played = playFleet(sandbox);
  try {
    await insertPeople(fleet);
    const plan = await watch(fleet.start('plan', '--dry-run', '--json'));
    const startMs = performance.now();
    const command = fleet.start('run', '--dry-run', '--json');
    const begun = waitFor(() => /^Run \S+ has begun/m.test(command.stderr()), {
      what: 'the run to begin',
      timeoutMs: RUN_LIMIT_MS,
    });
    const [run, begunMs] = await Promise.all([watch(command), begun.then(() => performance.now() - startMs)]);
    const { timings, products } = readReport(await command.finished);
    await played.stop();
    const verify = await watch(fleet.start('verify', '--json'));
    const seconds = (ms: number | null | undefined): number => (ms ?? 0) / 1_000;
    return {
      planMaxRssMb: plan.maxRssMb,
      runMaxRssMb: run.maxRssMb,
      verifyMaxRssMb: verify.maxRssMb,
      planS: plan.wallS,
      begunS: seconds(begunMs),
      crawlS: seconds(timings.crawlMs),
      loadS: seconds(timings.loadMs),
      publishS: seconds(timings.publishMs),
      runS: run.wallS,
      runCpuS: run.cpuS,
      verifyS: verify.wallS,
      ...percentilesOf('grant', played.times.grants),
      ...percentilesOf('heartbeat', played.times.others),
      settled: products.stored + products.gone + products.failed,
    };
  } finally {
    await played.stop();
    await fleet.remove();
    await sandbox.stop();
  }
}

function percentilesOf(name: string, times: readonly number[]): Record<string, number> {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.floor((sorted.length - 1) * part)] ?? Infinity;
  return { [`${name}s`]: sorted.length, [`${name}P50Ms`]: at(0.5), [`${name}P99Ms`]: at(0.99) };
}

/** A command measured from outside until its end; throws when it fails. */
async function watch(command: RunningCommand): Promise<{ wallS: number; cpuS: number; maxRssMb: number }> {
  let last = { cpuMs: 0, peakRssBytes: 0 };
  const timer = setInterval(() => {
    const now = readProcess(command.pid);
    // Of a process that ends now it shows no memory.
    if (now.peakRssBytes > 0) last = now;
  }, 50);
  const { exitCode, stderr, wallMs } = await command.finished.finally(() => clearInterval(timer));
  if (exitCode !== 0) throw new Error(`a command ended with ${exitCode}: ${stderr.slice(-2_000)}`);
  return { wallS: wallMs / 1_000, cpuS: last.cpuMs / 1_000, maxRssMb: last.peakRssBytes / 1e6 };
}

/** Rows of one statement. */
const ROWS = 20_000;

/** The records of the hosts are mixed, as in a table that has grown over years. */
async function insertPeople(fleet: Fleet): Promise<void> {
  await fleet.query('create table people (id varchar(40) primary key, url varchar(500) not null)');
  const loads = zipfLoads(HOSTS, RECORDS, ZIPF);
  const hosts = loads.flatMap(({ records }, host) => Array.from({ length: records }, () => host));
  const random = seededRandom(1);
  for (let i = hosts.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [hosts[i], hosts[j]] = [hosts[j]!, hosts[i]!];
  }
  for (let at = 0; at < hosts.length; at += ROWS) {
    const values = hosts.slice(at, at + ROWS).map((host, i) => {
      const n = String(at + i).padStart(7, '0');
      return `('person-${n}', 'https://www.host-${host}.example/people/${n}-first-last')`;
    });
    await fleet.query(`insert into people (id, url) values ${values.join(', ')}`);
  }
}

/** Plays each instance that the sandbox launches: it boots none itself, because it was allowed no bundle. */
function playFleet(sandbox: TestSandbox): { times: CallbackTimes; stop: () => Promise<void> } {
  const times: CallbackTimes = { grants: [], others: [] };
  const stop = new AbortController();
  const clients = clientsFor(sandbox);
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const sites = { intervalMs: INTERVAL_MS, pageMs: PAGE_MS, places: PLACES, resultOf, newsOf };
  const playing = new Map<string, Promise<void>>();
  const failures: unknown[] = [];
  const play = async (instanceId: string, address: string): Promise<void> => {
    const asked = { InstanceId: instanceId, Attribute: 'userData' } as const;
    const { UserData } = await clients.ec2.describeInstanceAttribute(asked);
    const userData = parseUserData(Buffer.from(UserData?.Value ?? '', 'base64').toString());
    if (userData.version !== USER_DATA_VERSION) throw new Error('the user data is of an earlier version');
    const { region, bucket, endpoint } = userData.s3;
    const objects = new S3ObjectStore({ region, bucket, endpoint, credentials });
    await playInstance({ instanceId, address, userData, objects, sites, times }, stop.signal);
  };
  const look = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      for (const { id, state, address } of await sandbox.instances())
        if (state === 'running' && !playing.has(id))
          playing.set(
            id,
            play(id, address).catch((error: unknown) => void failures.push(error)),
          );
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  };
  const looking = look();
  return {
    times,
    async stop() {
      stop.abort();
      await looking;
      await Promise.all(playing.values());
      clients.destroy();
      if (failures.length > 0) throw failures[0];
    },
  };
}

/** The longest hosts say nothing; of the others some ask for a longer gap, and some refuse once. */
function newsOf(host: string): HostNews | null {
  const number = Number(/\d+/.exec(host)?.[0] ?? 0);
  if (number < 1_000) return null;
  if (number % 50 === 0) return { host, delayMs: 5 * INTERVAL_MS };
  return number % 50 === 1 ? { host, waitMs: 1_000, refusals: 1 } : null;
}

function resultOf({ n, id }: Product, atMs: number): ItemResult {
  const common = { n, id, url: id, at: new Date(atMs).toISOString(), attempts: 1 };
  if (n % 20 === 7) return { ...common, outcome: 'failed', reason: 'network', detail: 'connect ECONNREFUSED' };
  if (n % 40 === 3) return { ...common, outcome: 'gone', status: 404 };
  const row = { name: `First Last of ${n}`, mail: `first.last.${n}@${n % HOSTS}.example`, employees: n % 5_000 };
  return { ...common, outcome: 'stored', rows: [{ key: null, row }] };
}

/**
 * A fleet of 126 instances on pages of 30 records, all of it on the same two cores: instances as processes, MariaDB,
 * sandbox, main server, shop.
 */
import { fileURLToPath } from 'node:url';
import { QUICK, startDatabaseServer } from '../../test/support/mariadb/server.ts';
import { makeFleet } from '../../test/system/fleet.ts';
import { type Bench, type BenchResult, median, startProgram } from '../frame.ts';
import { RECORD_MAPPING, RECORDS, TIMES_PATH } from './record-page.ts';
import { type CpuSample, RUN_LIMIT_MS, watchRun } from '../watch-run.ts';

const INSTANCES = 126;
const PAGES_EACH = 100;
const INTERVAL_MS = 1_000;
const PAGES = INSTANCES * PAGES_EACH;
const ROWS = PAGES * RECORDS;
/** What the pace allows. */
const MOST_ROWS_PER_SECOND = (INSTANCES * RECORDS * 1_000) / INTERVAL_MS;

export const bench: Bench = { title: `${INSTANCES} instances, pages of ${RECORDS} records, MariaDB`, run };

const SHOP = fileURLToPath(new URL('shop-case.ts', import.meta.url));

async function run(): Promise<BenchResult> {
  const server = await startDatabaseServer({ options: QUICK });
  await server.query('', 'create database fleet character set utf8mb4');
  const shop = await startProgram(SHOP, []);
  const fleet = await makeFleet({
    engine: 'mysql',
    database: { url: server.url('fleet'), drop: async () => undefined },
    productUrl: `${shop.line}/{id}`,
    ids: Array.from({ length: PAGES }, (_, i) => `product-${String(i).padStart(6, '0')}`),
    config: {
      site: { interval: `${INTERVAL_MS}ms`, mapping: RECORD_MAPPING },
      // Time limits, heartbeats and parts are scaled to the deadline. This is the one that the README begins with.
      run: { deadline: '4h', min_instances: INSTANCES, max_instances: INSTANCES },
    },
    timeoutMs: RUN_LIMIT_MS,
  });
  try {
    const watched = await watchRun(fleet, 1_000);
    const { report, instanceCpu } = watched;
    const [stored] = await fleet.query('select count(*) as n from product_snapshots');
    const rows = Number(stored!.n);
    const verified = await fleet.run('verify', '--json');
    const addresses = await fleet.query(
      'select instance_id, address from crawlfleet_instances where address is not null',
    );
    const requests = (await (await fetch(shop.line + TIMES_PATH)).json()) as Record<string, number[]>;
    const boots = addresses.flatMap(({ instance_id: id, address }) => {
      const firstMs = requests[String(address)]?.[0];
      return firstMs === undefined ? [] : (bootCpu(instanceCpu.get(String(id)) ?? [], firstMs) ?? []);
    });
    const starts = Object.values(requests);
    const gaps = starts.flatMap((times) => times.slice(1).map((ms, i) => ms - times[i]!));
    const all = starts.flat().sort((a, b) => a - b);
    const crawlS = (all.at(-1)! - all[0]!) / 1_000;
    const bestMinute = (busiest(all, 60_000) / 60) * RECORDS;
    const { launchMs, loadMs, publishMs } = report.timings;
    const figures = {
      rows,
      wallS: watched.wallMs / 1_000,
      launchS: (launchMs ?? 0) / 1_000,
      loadMs: loadMs ?? 0,
      publishMs: publishMs ?? 0,
      rowsPerSecondBestMinute: bestMinute,
      rowsPerSecondOfCrawl: ROWS / crawlS,
      smallestGapMs: Math.min(...gaps),
      replaced: report.instances.replaced,
      bootCpuMs: median(boots),
      instancesCpuS: [...instanceCpu.values()].reduce((all, samples) => all + samples.at(-1)!.cpuMs, 0) / 1_000,
      instancePssMb: watched.instancePssBytes / 1e6,
      instanceMaxRssMb: watched.instanceRssBytes / 1e6,
      mainServerCpuS: watched.cpuMs / 1_000,
      mainServerMaxRssMb: watched.mainServerRssBytes / 1e6,
      verify: verified.exitCode ?? -1,
    };
    return {
      about: `${INSTANCES} instances, ${PAGES} pages of ${RECORDS} records, ${INTERVAL_MS} ms between requests of one address, a deadline of 4 h, so a heartbeat every 15 s; instances, shop, sandbox, main server and MariaDB are processes on the same two cores. bootCpuMs is the processor time of an instance until its first request, instancesCpuS that of all instances.`,
      rows: [{ name: 'run', figures }],
      ratios: [
        { name: 'rows that are right', value: rows / ROWS, target: '1' },
        {
          name: 'rows/s in the best minute / what the pace allows',
          value: bestMinute / MOST_ROWS_PER_SECOND,
          target: 'at least 0.9',
        },
        { name: 'rows/s over the whole run / 2,000', value: ROWS / figures.wallS / 2_000, target: 'at least 1' },
        { name: 'smallest gap / interval', value: figures.smallestGapMs / INTERVAL_MS, target: 'at least 1' },
        { name: 'instances given up', value: report.instances.replaced, target: '0' },
        { name: 'CPU of a boot / 0.5 s', value: figures.bootCpuMs / 500, target: 'at most 1' },
        { name: 'PSS of an instance / 60 MB', value: watched.instancePssBytes / 60e6, target: 'at most 1' },
      ],
    };
  } finally {
    await fleet.remove();
    await shop.stop();
    await server.stop();
  }
}

/** As far as it is known at the first look after the first request. */
const bootCpu = (samples: readonly CpuSample[], firstMs: number): number | undefined =>
  samples.find(({ atMs }) => atMs >= firstMs)?.cpuMs;

/** The largest number of times within any window. */
function busiest(times: readonly number[], windowMs: number): number {
  let [most, from] = [0, 0];
  for (const [to, ms] of times.entries()) {
    while (times[from]! <= ms - windowMs) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

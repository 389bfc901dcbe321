/** A run over 2,000 foreign hosts, 15 % of which never answer, all of it on the same two cores. */
import { readdirSync, readFileSync } from 'node:fs';
import { type HostSpec, pathsOf } from '../../test/support/sites/host-spec.ts';
import { tempDir } from '../../test/support/temp-dir.ts';
import { openHostStage } from '../../test/system/host-fleet.ts';
import { type Bench, type BenchResult } from '../frame.ts';
import { RUN_LIMIT_MS, watchRun } from '../watch-run.ts';

const HOSTS = 2_000;
const INSTANCES = 4;
const PLACES = 32;
const INTERVAL_MS = 15_000;
/** Every n-th host never answers. */
const SILENT = 20 / 3;

export const bench: Bench = { title: `${HOSTS} hosts, ${INSTANCES} instances with ${PLACES} places each`, run };

/** Most have one page or two, a few have many. */
const hostOf = (i: number): HostSpec => {
  const isSilent = Math.floor((i + 1) / SILENT) > Math.floor(i / SILENT);
  const name = `h${i}.test`;
  if (isSilent) return { name, pages: 2, behaviour: 'silent', robots: 'silent' };
  return { name, pages: i % 100 === 0 ? 12 : 1 + (i % 3) };
};

async function run(): Promise<BenchResult> {
  const hosts = Array.from({ length: HOSTS }, (_, i) => hostOf(i));
  const times = tempDir('crawlfleet-journal-');
  const measure = new URL(`journal-times.mjs?folder=${times.path}`, import.meta.url).href;
  const stage = await openHostStage({
    hosts,
    environment: () => ({ CRAWLFLEET_INSTANCE_NODE_OPTIONS: `--import=${measure}` }),
    engine: 'sqlite',
    config: {
      site: { interval: `${INTERVAL_MS}ms`, pages_at_once: PLACES, timeout: '30s' },
      run: { deadline: '20m', min_instances: INSTANCES, max_instances: INSTANCES },
    },
    timeoutMs: RUN_LIMIT_MS,
  });
  if (stage === null) throw new Error('this bench needs a mount namespace of its own');
  const { world, fleet } = stage;
  try {
    const records = hosts.reduce((sum, host) => sum + pathsOf(host).length, 0);
    const watched = await watchRun(fleet, 1_000);
    const ledger = await world.ledger();
    const [stored] = await fleet.query('select count(*) as n from product_snapshots');
    const reachable = hosts.reduce((sum, host) => sum + (host.behaviour === 'silent' ? 0 : pathsOf(host).length), 0);
    const pages = ledger.requests.filter(({ path, status }) => path !== '/robots.txt' && status === 200);
    const all = ledger.requests.filter(({ status }) => status === 200).map(({ atMs }) => atMs);
    const { groups } = { groups: ledger.groups() };
    const gaps = groups.flatMap((group) => ledger.smallestGapOf(group) ?? []);
    const syncs = readdirSync(times.path).flatMap((name) =>
      readFileSync(times.file(name), 'utf8').split('\n').filter(Boolean).map(Number),
    );
    const journalP99Ms = syncs.toSorted((a, b) => a - b)[Math.floor(syncs.length * 0.99)] ?? Infinity;
    const figures = {
      records,
      reachable,
      stored: Number(stored!.n),
      wallS: watched.wallMs / 1_000,
      pagesPerSecondBestMinute: busiest(pages.map(({ atMs }) => atMs)) / 60,
      requestsPerSecondBestMinute: busiest(all) / 60,
      smallestGapMs: gaps.reduce((least, gap) => Math.min(least, gap), Infinity),
      pagesBeforeRobots: ledger.pagesBeforeRobots().length,
      hostsWithTwoSources: groups.filter((group) => new Set(ledger.sourcesOf(group)).size > 1).length,
      mainServerCpuS: watched.cpuMs / 1_000,
      mainServerMaxRssMb: watched.mainServerRssBytes / 1e6,
      instanceMaxRssMb: watched.instanceRssBytes / 1e6,
      journalSyncs: syncs.length,
      journalP99Ms,
      verify: (await fleet.run('verify', '--json')).exitCode ?? -1,
    };
    return {
      about: `${HOSTS} hosts with ${records} records, 15 % of the hosts never answer; ${INSTANCES} instances with ${PLACES} places each, ${INTERVAL_MS / 1_000} s between requests to one host. Instances, world, sandbox, main server and SQLite are processes on the same two cores. Requests count robots.txt, pages do not. The time of a journal's fdatasync is measured within the instances, from the call to its end.`,
      rows: [{ name: 'run', figures }],
      ratios: [
        { name: 'stored / reachable', value: figures.stored / reachable, target: '1' },
        { name: 'pages/s in the best minute / 40', value: figures.pagesPerSecondBestMinute / 40, target: 'at least 1' },
        { name: 'smallest gap / interval', value: figures.smallestGapMs / INTERVAL_MS, target: 'at least 1' },
        { name: 'journal: 99th percentile / 100 ms', value: journalP99Ms / 100, target: 'at most 1' },
        { name: 'RSS of an instance / 200 MB', value: watched.instanceRssBytes / 200e6, target: 'at most 1' },
      ],
    };
  } finally {
    await stage.close();
    times.remove();
  }
}

/** The largest number of times within a minute. */
function busiest(times: readonly number[]): number {
  let [most, from] = [0, 0];
  for (const [to, ms] of times.entries()) {
    while (times[from]! <= ms - 60_000) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

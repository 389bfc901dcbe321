/**
 * Loading a whole run into MariaDB: from the parts in the bucket to published rows and their proof, compared with LOAD
 * DATA.
 */
import { fileURLToPath } from 'node:url';
import { S3ObjectStore } from '../../shared/adapters/s3-object-store.ts';
import { ensureBucket } from '../../orchestrator/cloud/bucket.ts';
import { openDatabase } from '../../orchestrator/db/connect.ts';
import { createStores } from '../../orchestrator/db/create-stores.ts';
import { migrate } from '../../orchestrator/db/migrate.ts';
import { createResultTable } from '../../orchestrator/db/result-table.ts';
import { stagingName } from '../../orchestrator/db/staging.ts';
import { QUICK, startDatabaseServer } from '../../test/support/mariadb/server.ts';
import { startSandbox } from '../../test/support/sandbox/start-sandbox.ts';
import { type Bench, type BenchRow, measureProgram } from '../frame.ts';
import { benchRun, crawlAll, idOf } from './bench-run.ts';
import { insertParts, loadData } from './load-data.ts';

const CASE = fileURLToPath(new URL('loading-case.ts', import.meta.url));
const SIZES = [
  { products: 30_000, slots: 22, limitMs: 3_000 },
  { products: 1_000_000, slots: 100, limitMs: 75_000 },
];
/** Of every so many products the first attempt has failed: 3 %. */
const RETRIED_EVERY = 33;
const BUCKET = 'bench';
const MEMORY_BYTES = 300e6;

export const bench: Bench = {
  title: 'Loading into MariaDB: from the parts to published rows and their proof',
  async run() {
    const server = await startDatabaseServer({ options: QUICK });
    const sandbox = await startSandbox();
    try {
      const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
      const place = { region: sandbox.region, endpoint: sandbox.endpoint, credentials };
      await ensureBucket({ ...place, bucket: BUCKET });
      const objects = new S3ObjectStore({ ...place, bucket: BUCKET });
      const rows: BenchRow[] = [];
      const ratios = [];
      for (const { products, slots, limitMs } of SIZES) {
        const place = { adminUrl: server.url(''), endpoint: sandbox.endpoint, objects };
        const figures = await measure(place, { products, slots });
        rows.push({ name: `${products} products`, figures });
        const name = products.toLocaleString('en');
        ratios.push(
          { name: `${name}: whole / ${limitMs / 1_000} s`, value: figures.totalMs! / limitMs, target: 'below 1' },
          {
            name: `${name}: inserts of parts / LOAD DATA, rows per second`,
            value: figures.loadDataMs! / figures.insertMs!,
            target: 'at least 0.45',
          },
          { name: `${name}: RSS / 300 MB`, value: (figures.maxRssMb! * 1e6) / MEMORY_BYTES, target: 'below 1' },
        );
        if (products < 1_000_000) continue;
        const retried = await measure(place, { products, slots, retriedEvery: RETRIED_EVERY });
        rows.push({ name: `${products} products, 3 % of them tried twice`, figures: retried });
        // Between two without: the server's files grow during the first.
        const again = await measure(place, { products, slots, of: 'again' });
        const loading = ({ loadMs, publishMs }: Record<string, number>): number => loadMs! + publishMs!;
        ratios.push({
          name: `${name}: loading and publishing with failed attempts / without`,
          value: (2 * loading(retried)) / (loading(figures) + loading(again)),
          target: 'at most 1.1',
        });
      }
      return {
        about:
          'One process loads what a fleet has left in S3 (the sandbox, over HTTP): manifests checked, parts fetched and checked by hash, rows and ledger in one ' +
          'transaction a part, one upsert into the result table, then `verify` over ledger, bucket and rows. MariaDB on the same two cores, without syncing to disk. ' +
          'LOAD DATA LOCAL has the same rows in one statement, sorted; `insertMs` is the inserts of our parts alone, into a table of the same shape.',
        rows,
        ratios,
      };
    } finally {
      await sandbox.stop();
      await server.stop();
    }
  },
};

interface Case {
  products: number;
  slots: number;
  retriedEvery?: number;
  /** Tells two of the same apart. */
  of?: string;
}

async function measure(
  { adminUrl, endpoint, objects }: { adminUrl: string; endpoint: string; objects: S3ObjectStore },
  { products, slots, retriedEvery = Infinity, of = '' }: Case,
): Promise<Record<string, number>> {
  const name = `bench_${products}_${retriedEvery}${of}`;
  const admin = await openDatabase(new URL('/mysql', adminUrl).href);
  await admin.knex.raw(`create database ${name} character set utf8mb4`);
  await admin.close();
  const url = new URL(`/${name}`, adminUrl).href;
  const db = await openDatabase(url);
  try {
    await migrate(db);
    const stores = createStores(db);
    const lock = await stores.runs.acquireLock('bench', Date.now(), 86_400_000);
    if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
    const run = benchRun(products, slots, `${retriedEvery}${of}`);
    const { table } = run.settings.results;
    await createResultTable(db, { table }, run.settings.mapping);
    await stores.runs.create(
      run,
      Array.from({ length: products }, (_, i) => idOf(i + 1)),
      lock.fence,
      run.startedAtMs,
    );
    await crawlAll({ run, stores, objects, fence: lock.fence }, { retriedEvery });
    const shape = stagingName(run.id);
    const loadDataMs = await loadData(url, shape, products);
    const insertMs = await insertParts(db, shape, products);
    const { stdout, maxRssBytes } = await measureProgram(CASE, [url, run.id, endpoint, BUCKET, String(lock.fence)]);
    const times = JSON.parse(stdout) as Record<string, number>;
    return { ...times, loadDataMs, insertMs, maxRssMb: maxRssBytes / 1e6 };
  } finally {
    await db.close();
  }
}

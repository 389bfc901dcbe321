/** A MariaDB and a bucket in the sandbox, for the benches that load runs. */
import { fileURLToPath } from 'node:url';
import { S3ObjectStore } from '../../shared/adapters/s3-object-store.ts';
import { ensureBucket } from '../../orchestrator/core/cloud/bucket.ts';
import type { NewRun, WorkReader } from '../../orchestrator/core/model/stores.ts';
import { openDatabase } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { migrate } from '../../orchestrator/core/db/migrate.ts';
import { createResultTable } from '../../orchestrator/core/db/result-table.ts';
import { QUICK, startDatabaseServer } from '../../test/support/mariadb/server.ts';
import { startSandbox } from '../../test/support/sandbox/start-sandbox.ts';
import { measureProgram } from '../frame.ts';
import { crawlAll, idOf, type Pages } from './bench-run.ts';
import { lockRequest } from '../../test/support/lock-request.ts';
import { features } from '../../test/support/features.ts';

const CASE = fileURLToPath(new URL('loading-case.ts', import.meta.url));
const BUCKET = 'bench';

/** Figures taken once a run is stored, before anything of it is crawled. */
export type Before = (work: WorkReader) => Promise<Record<string, number>>;

export type LoadingPlace = Awaited<ReturnType<typeof openLoadingPlace>>;

export async function openLoadingPlace() {
  const server = await startDatabaseServer({ options: QUICK });
  const sandbox = await startSandbox();
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const bucket = { region: sandbox.region, endpoint: sandbox.endpoint, credentials, bucket: BUCKET };
  await ensureBucket(bucket);
  const objects = new S3ObjectStore(bucket);
  return {
    /** An empty database with our tables; the caller closes it. */
    async openDatabase(name: string) {
      await server.query('', `create database ${name} character set utf8mb4`);
      const url = server.url(name);
      const db = await openDatabase(url);
      await migrate(db);
      const stores = createStores(db, features);
      const lock = await stores.runs.acquireLock(lockRequest('bench', Date.now(), 86_400_000));
      if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
      const { fence } = lock;
      return {
        url,
        db,
        /** Stores the run as its instances leave it: everything is uploaded, nothing is loaded. */
        async crawl(run: NewRun, pages: Pages, before?: Before): Promise<Record<string, number>> {
          const ids = Array.from({ length: run.planned }, (_, i) => idOf(i + 1));
          await createResultTable(db, run.settings.results, run.settings.mapping, features);
          await stores.runs.create(run, ids, fence, run.startedAtMs);
          const figures = await before?.(stores.of(run.id).work);
          await crawlAll({ run, stores, objects, fence }, pages);
          return figures ?? {};
        },
        /** Loads, publishes and proves it in a process of its own; its figures. */
        async load(run: NewRun): Promise<Record<string, number>> {
          const args = [url, run.id, sandbox.endpoint, BUCKET, String(fence)];
          const { stdout, maxRssBytes } = await measureProgram(CASE, args);
          return { ...(JSON.parse(stdout) as Record<string, number>), maxRssMb: maxRssBytes / 1e6 };
        },
      };
    },
    async close(): Promise<void> {
      await sandbox.stop();
      await server.stop();
    },
  };
}

/** Nights of one catalogue into one table of MariaDB, each loaded and published by a program of its own. */
import { fileURLToPath } from 'node:url';
import { S3ObjectStore } from '../../shared/adapters/s3-object-store.ts';
import { ensureBucket } from '../../orchestrator/cloud/bucket.ts';
import type { RunSettings } from '../../orchestrator/control/model/run-settings.ts';
import type { WorkReader } from '../../orchestrator/control/model/stores.ts';
import { type Database, openDatabase } from '../../orchestrator/db/connect.ts';
import { createStores } from '../../orchestrator/db/create-stores.ts';
import { migrate } from '../../orchestrator/db/migrate.ts';
import { createResultTable } from '../../orchestrator/db/result-table.ts';
import { QUICK, startDatabaseServer } from '../../test/support/mariadb/server.ts';
import { startSandbox } from '../../test/support/sandbox/start-sandbox.ts';
import { measureProgram } from '../frame.ts';
import { benchRun, crawlAll, idOf, type Pages } from './bench-run.ts';

const CASE = fileURLToPath(new URL('loading-case.ts', import.meta.url));
const SLOTS = 100;
const BUCKET = 'bench';

export interface NightCase {
  name: string;
  results?: Partial<RunSettings['results']>;
  pages?: Pages;
  /** Figures taken once the run is stored, before anything of it is crawled. */
  before?: (work: WorkReader) => Promise<Record<string, number>>;
}

/** @param check looks at the tables after the last night */
export async function measureNights(
  products: number,
  nights: readonly NightCase[],
  check: (db: Database) => Promise<void>,
): Promise<{ name: string; figures: Record<string, number> }[]> {
  const server = await startDatabaseServer({ options: QUICK });
  const sandbox = await startSandbox();
  const url = server.url('mysql');
  const db = await openDatabase(url);
  try {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const place = { region: sandbox.region, endpoint: sandbox.endpoint, credentials };
    await ensureBucket({ ...place, bucket: BUCKET });
    const objects = new S3ObjectStore({ ...place, bucket: BUCKET });
    await migrate(db);
    const stores = createStores(db);
    const lock = await stores.runs.acquireLock('bench', Date.now(), 86_400_000);
    if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
    const ids = Array.from({ length: products }, (_, i) => idOf(i + 1));
    const rows = [];
    for (const [night, { name, results, pages, before }] of nights.entries()) {
      const run = benchRun(products, SLOTS, `n${night}`);
      run.startedAtMs += night;
      Object.assign(run.settings.results, results);
      await createResultTable(db, run.settings.results, run.settings.mapping);
      await stores.runs.create(run, ids, lock.fence, run.startedAtMs);
      const first = await before?.(stores.of(run.id).work);
      await crawlAll({ run, stores, objects, fence: lock.fence }, { night, ...pages });
      const { stdout } = await measureProgram(CASE, [url, run.id, sandbox.endpoint, BUCKET, String(lock.fence)]);
      rows.push({ name, figures: { ...first, ...(JSON.parse(stdout) as Record<string, number>) } });
    }
    await check(db);
    return rows;
  } finally {
    await db.close();
    await sandbox.stop();
    await server.stop();
  }
}

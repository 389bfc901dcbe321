/**
 * `results.history: changes` at a million products of which 3 % have changed: three nights into one table of MariaDB,
 * the third with a history. Publishing alone is compared.
 */
import { fileURLToPath } from 'node:url';
import { S3ObjectStore } from '../../shared/adapters/s3-object-store.ts';
import { ensureBucket } from '../../orchestrator/cloud/bucket.ts';
import { openDatabase } from '../../orchestrator/db/connect.ts';
import { createStores } from '../../orchestrator/db/create-stores.ts';
import { migrate } from '../../orchestrator/db/migrate.ts';
import { createResultTable } from '../../orchestrator/db/result-table.ts';
import { QUICK, startDatabaseServer } from '../../test/support/mariadb/server.ts';
import { startSandbox } from '../../test/support/sandbox/start-sandbox.ts';
import { type Bench, measureProgram } from '../frame.ts';
import { benchRun, crawlAll, idOf } from './bench-run.ts';

const CASE = fileURLToPath(new URL('loading-case.ts', import.meta.url));
const PRODUCTS = 1_000_000;
const SLOTS = 100;
const BUCKET = 'bench';

export const bench: Bench = {
  title: 'Publishing with a history of changes',
  async run() {
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
      const ids = Array.from({ length: PRODUCTS }, (_, i) => idOf(i + 1));
      const rows = [];
      for (const [night, name] of ['first night', 'second night', 'third night, with a history'].entries()) {
        const run = benchRun(PRODUCTS, SLOTS, `n${night}`);
        run.startedAtMs += night;
        if (night === 2) run.settings.results.history = 'changes';
        await createResultTable(db, run.settings.results, run.settings.mapping);
        await stores.runs.create(run, ids, lock.fence, run.startedAtMs);
        await crawlAll({ run, stores, objects, fence: lock.fence }, { night });
        const { stdout } = await measureProgram(CASE, [url, run.id, sandbox.endpoint, BUCKET, String(lock.fence)]);
        rows.push({ name, figures: JSON.parse(stdout) as Record<string, number> });
      }
      const [, second, third] = rows;
      const [counted] = (await db.knex('rows_1000000_history').count({ rows: '*' })) as unknown as [{ rows: string }];
      const changes = Number(counted.rows);
      if (changes !== Math.floor(PRODUCTS / 33)) throw new Error(`the history has ${changes} changes`);
      return {
        about: `${PRODUCTS} products into MariaDB on the same two cores, without syncing to disk; in each night 3 % of the prices are others. The history gets ${changes} rows in the publishing transaction.`,
        rows,
        ratios: [
          {
            name: 'publishing with a history / without',
            value: third!.figures.publishMs! / second!.figures.publishMs!,
            target: 'at most 1.5',
          },
        ],
      };
    } finally {
      await db.close();
      await sandbox.stop();
      await server.stop();
    }
  },
};

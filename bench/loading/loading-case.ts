/**
 * Loading as in the main server, in its own process: `loading-case.ts DATABASE_URL RUN ENDPOINT BUCKET FENCE`. From the
 * manifests in the bucket to published rows and the proof that they are correct. Prints its times.
 */
import '../../orchestrator/cli/heap-limits.ts';
import { S3ObjectStore } from '../../shared/adapters/s3-object-store.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { confirmManifest } from '../../orchestrator/core/act/results/close-epoch.ts';
import { publishRun } from '../../orchestrator/core/act/results/finish.ts';
import { verifyRun } from '../../orchestrator/core/verify/verify.ts';
import { openDatabase } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { readVerifyFacts } from '../../orchestrator/core/db/verify-queries.ts';
import { createCore, memoryCloud } from '../../test/contract/core/run-stage.ts';
import { features } from '../../test/support/features.ts';

const [url, runId, endpoint, bucket, fenceText] = process.argv.slice(2) as [string, string, string, string, string];
const fence = Number(fenceText);
const db = await openDatabase(url);
const stores = createStores(db, features);
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const objects = new S3ObjectStore({ region: 'ap-northeast-1', bucket, endpoint, credentials });
const core = createCore({ stores, fence }, runId, memoryCloud(systemClock), systemClock);
core.objects = objects;
const run = (await core.run.get())!;

const startMs = performance.now();
const instances = await core.fleet.instances();
for (const { slot, epoch } of instances) await confirmManifest(core, run, { slot, epoch });
const loadedMs = performance.now();
for (const { slot, epoch } of instances) {
  await core.fleet.move({ slot, epoch }, 'done', 'terminating');
  await core.fleet.move({ slot, epoch }, 'terminating', 'terminated');
}
await core.run.move('crawling', 'releasing');
await core.run.move('releasing', 'loading');
await publishRun(core);
const publishedMs = performance.now();
const verdict = await verifyRun({
  run: (await core.run.get())!,
  facts: await readVerifyFacts(db, runId),
  instances: await core.fleet.instances(),
  parts: await core.results.parts(),
  objects,
});
const provenMs = performance.now();
await db.close();
if (!verdict.holds || verdict.resultRows !== run.planned)
  throw new Error(`the rows are not right: ${JSON.stringify(verdict).slice(0, 1_000)}`);
process.stdout.write(
  JSON.stringify({
    loadMs: loadedMs - startMs,
    publishMs: publishedMs - loadedMs,
    verifyMs: provenMs - publishedMs,
    totalMs: provenMs - startMs,
  }),
);

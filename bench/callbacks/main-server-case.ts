/**
 * A main server under callbacks, in its own process: `main-server-case.ts DATABASE_URL INSTANCES`. The real listener
 * (one over HTTP, one over TLS), loop and stores; EC2 and the load balancer are in memory. Prints its address and the
 * launched instances, and ends when stdin closes.
 */
import '../../orchestrator/cli/heap-limits.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { limitsFor } from '../../shared/domain/limits.ts';
import { parseUserData } from '../../shared/wire/settings.ts';
import { Callbacks } from '../../orchestrator/core/callbacks/callbacks.ts';
import { Dispatcher } from '../../orchestrator/core/act/shares/dispatch.ts';
import { ControlLoop } from '../../orchestrator/core/loop.ts';
import { newRunKeys } from '../../orchestrator/core/new-run.ts';
import type { World } from '../../orchestrator/core/model/world.ts';
import { openDatabase } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { migrate } from '../../orchestrator/core/db/migrate.ts';
import { createResultTable } from '../../orchestrator/core/db/result-table.ts';
import { createCallbackApp } from '../../orchestrator/core/server/callback-app.ts';
import { listen } from '../../orchestrator/core/server/listen.ts';
import { createCore, memoryCloud } from '../../test/contract/core/run-stage.ts';
import { aPlan, aRun } from '../../test/unit/core/builders.ts';
import { lockRequest } from '../../test/support/lock-request.ts';
import { makeSelfSigned } from '../../test/support/self-signed.ts';
import { features } from '../../test/support/features.ts';

const [url, instancesText] = process.argv.slice(2) as [string, string];
const instances = Number(instancesText);
const CHUNK = 10;
const DEADLINE_MS = 16 * 60_000;

const db = await openDatabase(url);
await migrate(db);
const stores = createStores(db, features);
const lock = await stores.runs.acquireLock(lockRequest('bench', systemClock.now(), 86_400_000));
if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
const { fence } = lock;
const products = instances * CHUNK;
const template = aRun({ id: '20260101-000000-call', ...newRunKeys() });
const startedAtMs = systemClock.now();
const run = {
  ...template,
  startedAtMs,
  deadlineAtMs: startedAtMs + DEADLINE_MS,
  planned: products,
  plan: aPlan({ products, instances, chunkSize: CHUNK, chunks: instances }),
  settings: { ...template.settings, run: { ...template.settings.run, maxInstances: instances } },
};
await createResultTable(db, run.settings.results, run.settings.mapping, features);
await stores.runs.create(
  run,
  Array.from({ length: products }, (_, i) => `p${i + 1}`),
  fence,
  startedAtMs,
);
const cloud = memoryCloud(systemClock);
const core = createCore({ stores, fence }, run.id, cloud, systemClock);
const dispatcher = new Dispatcher(core);
let world: World | null = null;
const loop = new ControlLoop(core, dispatcher, (seen) => (world = seen));
const callbacks = new Callbacks(core, dispatcher, loop, run.privateKey);
const app = createCallbackApp(callbacks, core.log);
const listener = await listen(app, '127.0.0.1:0', 'server.listen');
const { cert, key } = makeSelfSigned('127.0.0.1');
const tls = { cert: Buffer.from(cert), key: Buffer.from(key) };
const tlsListener = await listen(app, '127.0.0.1:0', 'server.listen', tls);
const stop = new AbortController();
const running = loop.run(stop.signal);

while ((world as World | null)?.fleet.all.filter((i) => i.instanceId !== null).length !== instances)
  await systemClock.sleep(200);
const launched = (await stores.of(run.id).fleet.instances()).map(({ slot, epoch, token, instanceId }) => ({
  slot,
  epoch,
  token,
  instanceId,
}));
const first = await stores.of(run.id).fleet.get({ slot: 0, epoch: 1 });
const { runPublicKey } = parseUserData(first!.request.userData);
process.stdout.write(
  `${JSON.stringify({ port: listener.port, tlsPort: tlsListener.port, cert, run: run.id, runPublicKey, heartbeatMs: limitsFor(DEADLINE_MS).heartbeatMs, launched })}\n`,
);
process.stdin.resume();
await new Promise((resolve) => process.stdin.once('end', resolve));
stop.abort();
await running;
await listener.close();
await tlsListener.close();
await db.close();

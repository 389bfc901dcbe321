/** Loads the results of a run from the bucket into the database, even if the database has lost the run. */
import type { Caller } from '../caller.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { buildReport, publishRun } from '../act/results/finish.ts';
import {
  type BucketEpoch,
  closeRebuilt,
  isOver,
  listEpochs,
  loadEpochs,
  noteUnknownEpochs,
  noteUnproven,
  provenEpochs,
} from '../act/results/recover.ts';
import { readProductList, readRunDescription } from '../act/results/run-description.ts';
import { powerOffAtMs } from '../model/run-deadlines.ts';
import { isRebuilt, rebuiltRun } from '../model/rebuilt-run.ts';
import type { RunRecord } from '../model/stores.ts';
import { createStores } from '../db/create-stores.ts';
import { migrate } from '../db/migrate.ts';
import { createResultTable } from '../db/result-table.ts';
import { carryOut, publishReport } from './carry-out.ts';
import { loadConfig } from '../config/load-config.ts';
import type { ConfigSource } from '../feature.ts';
import { keepHostRequests } from './keep-host-requests.ts';
import type { RunContext } from './run-context.ts';
import { createOfflineCore } from './run-session.ts';
import { withRunBucket, withUnknownBucket } from '../cloud-access/run-bucket.ts';
import { lockNamesOfConfig, lockNamesOfRun, takeLock } from '../lookup/run-lock.ts';
import { resumeRun } from './resume.ts';
import { getRun, openWaiting } from '../lookup/find-run.ts';

export interface LoadOptions extends ConfigSource {
  runId: string;
}

export async function loadRun(options: LoadOptions, caller: Caller): Promise<ExitCode> {
  const { runId, environment, features } = options;
  const { output } = caller;
  const config = loadConfig(options);
  await using database = await openWaiting(config, output);
  await migrate(database);
  const stores = createStores(database, config.features);
  const { runs } = stores;
  const known = await runs.get(runId);
  const names = known ? lockNamesOfRun(known) : lockNamesOfConfig(config);
  await using lock = await takeLock({ runs, names, clock: systemClock });
  await lock.setRun(runId);
  const context = { ...caller, config, environment, features, database, stores, lock };
  const run = await runs.get(runId);
  if (run === null || (isRebuilt(run) && !isFinished(run))) {
    return await withUnknownBucket(config, runId, environment, (...bucket) => rebuild(context, runId, ...bucket));
  }
  if (isFinished(run)) {
    output.line(`Run ${runId} has ended already (${run.phase}): there is nothing to load.`);
    output.document({ run: runId, state: run.phase, loaded: { parts: 0, stored: 0, gone: 0, failed: 0 }, over: true });
    return EXIT.complete;
  }
  return await loadKnown(context, run);
}

/** No process has this pid: Linux ends at 2^22. */
const GONE_PID = 2 ** 30;

const isFinished = (run: RunRecord): boolean => isRunEnd(run.phase) && run.report !== null;

/** A run without its main server: loads its results from the bucket; after its deadline the control loop ends it. */
async function loadKnown(context: RunContext, run: RunRecord): Promise<ExitCode> {
  const { output, config } = context;
  const loaded = await withRunBucket(run, async (objects) => {
    const core = { ...createOfflineCore(context, run.id), objects };
    const epochs = await listEpochs(objects, run.id);
    await noteUnknownEpochs(core, run, epochs);
    return loadEpochs(core, epochs);
  });
  output.line(`Loaded ${loaded.parts} parts of run ${run.id}: ${loaded.stored} products stored.`);
  if (systemClock.now() > run.deadlineAtMs) return (await carryOut(context, await resumeRun(context, run))).exitCode;
  output.line(`Its deadline is ahead (${new Date(run.deadlineAtMs).toISOString()}); take it up with:`);
  output.line(`  orchestrator resume ${run.id} --config ${config.file}`);
  output.document({ run: run.id, state: run.phase, loaded, over: false });
  return EXIT.complete;
}

/** A run that only the bucket knows, from its description to its report. Resumes a load that died in the middle. */
async function rebuild(
  context: RunContext,
  runId: string,
  objects: ObjectStore,
  folder: string | null,
): Promise<ExitCode> {
  const { database, stores, lock, output, config } = context;
  const description = await readRunDescription(objects, runId);
  if (!description) {
    throw new AppError('run-unknown', `there is no run ${runId}, neither in this database nor in its bucket`, {
      hint: 'List the runs of the database with: orchestrator status',
    });
  }
  const rebuilt = rebuiltRun(description);
  const others = lockNamesOfRun(rebuilt).filter((name) => !lock.names.includes(name));
  if (others.length > 0)
    throw new AppError(
      'config-invalid',
      `run ${runId} is of another site or result table than ${config.file}: ${others.join(', ')}`,
      {
        hint: 'Name the configuration of that run with --config, with its site.product_url and results.table.',
      },
    );
  // Without the list of what it took nothing can be proved, and links cannot be judged without depths.
  if (rebuilt.settings.discover)
    throw new AppError(
      'run-unknown',
      `run ${runId} was a discovery: which URLs it took, and their depth, was in the lost database alone`,
      {
        hint: `orchestrator discover finds its pages again. The rows it uploaded can be read from runs/${runId}/ in the bucket: docs/discovery.md, "If the database is lost".`,
      },
    );
  // Its own sandbox is gone; `verify` has to find the folder that holds its objects.
  if (folder !== null)
    rebuilt.settings = { ...rebuilt.settings, sandbox: { pid: GONE_PID, controlToken: '', dataDir: folder } };
  const listed = await listEpochs(objects, runId);
  const epochs = await provenEpochs(objects, rebuilt, listed);
  if (!(await isOver(objects, rebuilt, epochs, systemClock.now())))
    throw stillAtWork(runId, powerOffAtMs(rebuilt), epochs);
  if ((await stores.runs.get(runId)) === null) {
    output.line(`Run ${runId} is not in the database: it is rebuilt from the bucket.`);
    await createResultTable(database, rebuilt.settings.results, rebuilt.settings.mapping, config.features);
    const { ids, ...more } = await readProductList(objects, description);
    await stores.runs.create({ ...rebuilt, ...more }, ids, lock.fence, systemClock.now());
  }
  const core = { ...createOfflineCore(context, runId), objects };
  const run = await getRun(stores.runs, runId);
  await noteUnproven(core, listed, epochs);
  const loaded = await loadEpochs(core, epochs);
  output.line(`Loaded ${loaded.parts} parts: ${loaded.stored} products stored.`);
  await closeRebuilt(core, run, epochs);
  await publishRun(core);
  await keepHostRequests(core, { database, run, signal: context.interrupts.leave });
  const report = await buildReport(core);
  await core.run.setReport(report);
  const record = await getRun(stores.runs, runId);
  publishReport(report, record, config, output);
  return record.exitCode ?? EXIT.internal;
}

function stillAtWork(runId: string, powerOffMs: number, epochs: readonly BucketEpoch[]): AppError {
  const closed = epochs.filter((e) => e.manifests.length > 0).length;
  return new AppError(
    'run-unfinished',
    `run ${runId} is not over: ${closed} of the ${epochs.length} instances that have left something in the bucket have ended`,
    {
      hint:
        'Without the database no main server can control its instances; they upload what they have and switch ' +
        `themselves off. Load it again after ${new Date(powerOffMs).toISOString()}`,
    },
  );
}

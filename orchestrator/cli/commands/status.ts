/** `orchestrator status`: the last runs, or one run with its instances. Reads the database only. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { InstanceRecord, RunRecord } from '../../control/stores.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { isMigrated } from '../../db/migrate.ts';
import { loadConfig } from '../config/load-config.ts';
import { getRun } from '../find-run.ts';
import type { Output } from '../output.ts';
import { renderTable } from '../output.ts';

export interface StatusOptions {
  configPath: string;
  runId: string | undefined;
  environment: Readonly<Record<string, string | undefined>>;
}

export async function statusCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  const config = loadConfig(options.configPath, options.environment);
  const database = await openDatabase(config.values.database.url);
  try {
    const stores = createStores(database);
    const migrated = await isMigrated(database);
    if (options.runId === undefined || !migrated) {
      const runs = migrated ? await stores.runs.list(10) : [];
      output.line(runs.length === 0 ? 'No run yet. Start one with: orchestrator run' : renderRuns(runs));
      output.document({ runs: runs.map(summaryOf) });
      return EXIT.complete;
    }
    const run = await getRun(stores.runs, options.runId);
    const instances = await stores.fleet.instances(run.id);
    const totals = await stores.results.totals(run.id);
    output.line(renderRuns([run]));
    if (instances.length > 0) output.line(`\n${renderInstances(instances)}`);
    output.document({ ...summaryOf(run), loaded: totals, instances: instances.map(instanceOf), report: run.report });
    return EXIT.complete;
  } finally {
    await database.close();
  }
}

function summaryOf(run: RunRecord) {
  return {
    run: run.id,
    state: run.phase,
    reason: run.reason,
    exitCode: run.exitCode,
    startedAt: new Date(run.startedAtMs).toISOString(),
    deadline: new Date(run.deadlineAtMs).toISOString(),
    finishedAt: run.finishedAtMs === null ? null : new Date(run.finishedAtMs).toISOString(),
    dryRun: run.dryRun,
    planned: run.planned,
    products: run.report?.products ?? null,
  };
}

function instanceOf(record: InstanceRecord) {
  return {
    slot: record.slot,
    epoch: record.epoch,
    phase: record.phase,
    reason: record.reason,
    instanceId: record.instanceId,
    address: record.address,
    lastHeartbeatAt: record.lastHeartbeatAtMs === null ? null : new Date(record.lastHeartbeatAtMs).toISOString(),
    progress: record.progress,
    problem: record.problem,
  };
}

function renderRuns(runs: readonly RunRecord[]): string {
  return renderTable(
    ['run', 'state', 'exit', 'planned', 'stored', 'gone', 'failed', 'started', 'reason'],
    runs.map((r) => [
      r.id,
      isRunEnd(r.phase) ? r.phase : `${r.phase} (unfinished)`,
      r.exitCode,
      r.planned,
      r.report?.products.stored ?? null,
      r.report?.products.gone ?? null,
      r.report?.products.failed ?? null,
      new Date(r.startedAtMs).toISOString().slice(0, 19),
      r.reason ?? '',
    ]),
  );
}

function renderInstances(instances: readonly InstanceRecord[]): string {
  return renderTable(
    ['slot', 'epoch', 'phase', 'instance', 'address', 'done', 'assigned', 'reason'],
    instances.map((i) => [
      i.slot,
      i.epoch,
      i.phase,
      i.instanceId,
      i.address,
      i.progress ? i.progress.stored + i.progress.gone + i.progress.failed : 0,
      i.progress?.assigned ?? 0,
      i.reason ?? '',
    ]),
  );
}

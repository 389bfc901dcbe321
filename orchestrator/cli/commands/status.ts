/** `orchestrator status`: the last runs, or one run with its instances. Reads the database only. */
import { FleetSnapshot } from '../../control/model/fleet-snapshot.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { FailedProduct, InstanceRecord, RunRecord, WorkReader } from '../../control/model/stores.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { productUrl } from '../../../shared/domain/product.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { openIncident } from '../../control/decide/ban-policy.ts';
import type { EndForecast } from '../../control/model/forecast.ts';
import { forecastEnd } from '../../control/sharing/end-forecast.ts';
import { reportOf } from '../../control/results/report.ts';
import { drainAtMs, limitsOf } from '../../control/model/run-deadlines.ts';
import { createStores } from '../../db/create-stores.ts';
import { isMigrated } from '../../db/migrate.ts';
import type { ConfigPlace } from '../../app/config/load-config.ts';
import { getRun, storesOf, withDatabase } from '../../app/run/find-run.ts';
import { listFailed } from '../../app/run/carry-out.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { Output } from '../output.ts';
import { renderTable } from '../../app/text-table.ts';

export interface StatusOptions extends ConfigPlace {
  runId: string | undefined;
}

export async function statusCommand(options: StatusOptions & { failed?: boolean }, output: Output): Promise<ExitCode> {
  if (options.failed === true && options.runId === undefined)
    throw new AppError('usage', 'status --failed needs the name of a run');
  return withDatabase(options, async (database) => {
    const stores = createStores(database);
    const migrated = await isMigrated(database);
    if (options.runId === undefined) {
      const runs = migrated ? await stores.runs.list(10) : [];
      output.line(runs.length === 0 ? 'No run yet. Start one with: orchestrator run' : renderRuns(runs));
      output.document({ runs: runs.map(summaryOf) });
      return EXIT.complete;
    }
    const run = await getRun((await storesOf(database)).runs, options.runId);
    const { fleet, results, work } = stores.of(run.id);
    if (options.failed === true) return await showFailed(run, work, output);
    const instances = await fleet.instances();
    const totals = await results.totals();
    output.line(renderRuns([run]));
    const end = await projectedEnd(run, instances, work);
    if (end !== null && end.p50Ms !== null) output.line(`\n${renderEnd(end, run)}`);
    if (instances.length > 0) output.line(`\n${renderInstances(instances)}`);
    const projection = end && {
      p50: isoOrNull(end.p50Ms),
      p95: isoOrNull(end.p95Ms),
      instances: end.workers.map((p) => ({
        ...p,
        p50Ms: undefined,
        p95Ms: undefined,
        p50: isoOrNull(p.p50Ms),
        p95: isoOrNull(p.p95Ms),
      })),
    };
    output.document({
      ...summaryOf(run),
      loaded: totals,
      projection,
      instances: instances.map(instanceOf),
      report: reportOf(run),
    });
    return EXIT.complete;
  });
}

/** Forecast end of a running crawl, from the instances' latest heartbeats; null for a run that is not crawling. */
async function projectedEnd(
  run: RunRecord,
  instances: InstanceRecord[],
  work: WorkReader,
): Promise<EndForecast | null> {
  if (run.phase !== 'launching' && run.phase !== 'crawling') return null;
  const counts = await work.counts();
  const world = { nowMs: systemClock.now(), run, fleet: new FleetSnapshot(instances), work: counts, robots: null };
  return forecastEnd({ ...world, limits: limitsOf(run) });
}

const isoOrNull = (ms: number | null): string | null =>
  ms === null || !Number.isFinite(ms) ? null : new Date(ms).toISOString();

function renderEnd({ p50Ms, p95Ms }: EndForecast, run: RunRecord): string {
  const late = p95Ms !== null && p95Ms > drainAtMs(run) ? '  (later than the last moment for crawling)' : '';
  return `crawl ends at ${isoOrNull(p50Ms)?.slice(0, 19)} (p50), ${isoOrNull(p95Ms)?.slice(0, 19)} (p95)${late}`;
}

/** An ID of 2,000 bytes, percent-encoded in its URL, fits. */
const MAX_CHARS = 10_000;

/** Every failed product with its reason: as text one per line, as they are read. */
async function showFailed(run: RunRecord, work: WorkReader, output: Output): Promise<ExitCode> {
  const failed: (Pick<FailedProduct, 'id' | 'reason' | 'detail'> & { url: string })[] = [];
  let count = 0;
  for await (const { id, reason, detail } of listFailed(work)) {
    count++;
    const url = productUrl(run.settings.site.productUrl, id);
    if (output.json) failed.push({ id, reason, detail, url });
    else output.line([id, reason, detail ?? '-', url].map((text) => plain(text, MAX_CHARS)).join('\t'));
  }
  if (count === 0) output.line(`No product of run ${run.id} has failed.`);
  output.document({ ...summaryOf(run), failed });
  return EXIT.complete;
}

function summaryOf(run: RunRecord) {
  return {
    run: run.id,
    state: run.phase,
    reason: run.reason,
    exitCode: run.exitCode,
    startedAt: new Date(run.startedAtMs).toISOString(),
    deadline: new Date(run.deadlineAtMs).toISOString(),
    finishedAt: isoOrNull(run.finishedAtMs),
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
    lastHeartbeatAt: isoOrNull(record.lastHeartbeatAtMs),
    progress: record.progress,
    problem: record.problem,
    incident: record.incident,
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

function incidentText(record: InstanceRecord): string {
  const incident = openIncident(record);
  if (incident === null) return '';
  const until = incident.untilMs === null ? '' : ` until ${new Date(incident.untilMs).toISOString().slice(0, 19)}`;
  return `${incident.verdict} by ${incident.rule}${until}`;
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
      i.reason ?? incidentText(i),
    ]),
  );
}

/** `orchestrator status`: the last runs, or one run with its instances. Reads the database only. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { productUrl } from '../../../shared/domain/product.ts';
import { type Standing, standingInWords } from '../../../shared/domain/standing.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { ConfigSource } from '../../core/feature.ts';
import {
  type InstanceDocument,
  type LiveCounts,
  liveCounts,
  readRun,
  summaryOf,
} from '../../core/read/run-documents.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { listFailed } from '../../core/run/carry-out.ts';
import { renderReasons } from '../../../shared/domain/render-reasons.ts';
import {
  assertKept,
  findRun,
  getRun,
  LISTED,
  NO_RUN_YET,
  runsOfSite,
  storesOf,
  storesToList,
  withDatabase,
} from '../../core/lookup/find-run.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { intervalOf } from '../../core/model/operator-pace.ts';
import { hostsInWords, type RunHosts } from '../../core/model/run-hosts.ts';
import type { FailedProduct, RunRecord, StoreReaders, WorkReader } from '../../core/model/stores.ts';
import type { Output } from '../output.ts';

export interface StatusOptions extends ConfigSource {
  runId: string | undefined;
}

export async function statusCommand(
  options: StatusOptions & { failed?: boolean; hosts?: boolean },
  output: Output,
): Promise<ExitCode> {
  if (options.hosts === true) return await showHosts(options, output);
  if (options.failed === true && options.runId === undefined)
    throw new AppError('usage', 'status --failed needs the name of a run');
  return withDatabase(options, output, async (database, config) => {
    if (options.runId === undefined) {
      const stores = await storesToList(database, output);
      const runs = stores === null ? [] : (await runsOfSite(stores.runs, config)).slice(0, LISTED);
      output.line(runs.length === 0 ? NO_RUN_YET : await renderRuns(runs, stores!));
      output.document({ runs: runs.map(summaryOf) });
      return EXIT.complete;
    }
    const stores = await storesOf(database);
    const run = await getRun(stores.runs, options.runId);
    const reader = stores.of(run.id);
    if (options.failed === true) return await showFailed(run, reader.work, output);
    const document = await readRun(run, reader);
    output.line(await renderRuns([run], stores));
    const { standing, instances, reasons, pace } = document;
    if (reasons.length > 0) output.line(`\n${renderReasons(reasons)}`);
    if (pace !== null && !isRunEnd(run.phase)) output.line(`\nIts operator asks for: ${pace.words}.`);
    if (standing) output.line(`\n${renderEnd(standing, run)}`);
    if (instances.length > 0) output.line(`\n${renderInstances(instances)}`);
    output.document(document);
    return EXIT.complete;
  });
}

function renderEnd(standing: Standing, run: RunRecord): string {
  const time = (iso: string): string => `${iso.slice(0, 19).replace('T', ' ')} UTC`;
  const ends = run.finishedAtMs === null ? 'will probably end' : 'ended';
  const deadline = time(new Date(run.deadlineAtMs).toISOString());
  return `${ends} at ${time(standing.end)}, ${standingInWords(standing)} (deadline ${deadline})`;
}

/** Open hosts that are listed. */
const LONGEST = 20;

/** What has become of the hosts of a run: of those that are open, which take longest. */
async function showHosts(options: StatusOptions & { failed?: boolean }, output: Output): Promise<ExitCode> {
  if (options.failed === true) throw new AppError('usage', 'status takes --failed or --hosts, not both');
  return withDatabase(options, output, async (database, config) => {
    const stores = await storesOf(database);
    const ofHosts = ({ settings }: RunRecord): boolean => isAnyHost(settings.site.productUrl);
    const run = await findRun(stores.runs, { runId: options.runId, config }, 'of many hosts', ofHosts);
    if (!ofHosts(run))
      throw new AppError('usage', `run ${run.id} names its site, and --hosts is for runs with site.hosts: any`, {
        hint: `Look at it with: orchestrator status ${run.id}`,
      });
    assertKept(run);
    const asker = { nowMs: systemClock.now(), intervalMs: intervalOf(run), most: LONGEST };
    const hosts = await stores.of(run.id).work.hosts(asker);
    output.line(renderHosts(run, hosts));
    const { resting, longest, ...hostCounts } = hosts;
    output.document({
      ...summaryOf(run),
      hostCounts,
      resting: resting && { hosts: resting.hosts, until: isoOf(resting.untilMs) },
      longest: longest.map(({ untilMs, ...host }) => ({ ...host, until: isoOf(untilMs) })),
    });
    return EXIT.complete;
  });
}

const isoOf = (ms: number): string => new Date(ms).toISOString();

function renderHosts(run: RunRecord, hosts: RunHosts): string {
  const { resting, longest, open } = hosts;
  const lines = [`Run ${run.id}: ${run.phase}`, `  hosts    ${hostsInWords(hosts)}`];
  if (resting !== null) lines.push(`  resting  ${resting.hosts}, the last until ${isoOf(resting.untilMs)}`);
  if (longest.length === 0) return lines.join('\n');
  const rows = longest.map(({ host, open: records, gapMs, untilMs }) => [
    host,
    records,
    formatDuration(gapMs),
    `${isoOf(untilMs)}${untilMs > run.deadlineAtMs ? ', after the deadline' : ''}`,
  ]);
  lines.push('', renderTable(['host', 'open records', 'pace', 'lasts until'], rows));
  if (open > longest.length) lines.push(`and ${open - longest.length} that take less long`);
  return lines.join('\n');
}

/** An ID of 2,000 bytes, percent-encoded in its URL, fits. */
const MAX_CHARS = 10_000;

/** Every failed product with its reason: as text a head and one line each, separated by tabs, as they are read. */
async function showFailed(run: RunRecord, work: WorkReader, output: Output): Promise<ExitCode> {
  const failed: (Pick<FailedProduct, 'id' | 'reason' | 'detail'> & { url: string })[] = [];
  let count = 0;
  for await (const { id, url: own, reason, detail } of listFailed(work)) {
    count++;
    const url = own ?? productUrl(run.settings.site.productUrl, id);
    if (count === 1) output.line(['id', 'reason', 'detail', 'url'].join('\t'));
    if (output.json) failed.push({ id, reason, detail, url });
    else output.line([id, reason, detail ?? '-', url].map((text) => plain(text, MAX_CHARS)).join('\t'));
  }
  if (count === 0) output.line(`No product of run ${run.id} has failed.`);
  output.document({ ...summaryOf(run), failed });
  return EXIT.complete;
}

/** A run at work shows what its instances have counted; `~` marks it. */
async function renderRuns(runs: readonly RunRecord[], stores: StoreReaders): Promise<string> {
  const rows = runs.map(async (run) => {
    const live = run.report === null ? await liveCountsOf(run, stores) : null;
    const products = run.report?.products ?? live!;
    const sign = run.report === null ? '~' : '';
    const number = (n: number): string => `${sign}${n}`;
    return [
      run.id,
      isRunEnd(run.phase) ? run.phase : `${run.phase} (unfinished)`,
      run.exitCode,
      run.report?.products.planned ?? run.planned,
      number(products.stored),
      number(products.gone),
      number(products.failed),
      live === null ? '' : number(live.waiting),
      `${new Date(run.startedAtMs).toISOString().slice(0, 16)}Z`,
      run.reason ?? '',
    ];
  });
  const head = ['run', 'state', 'exit', 'planned', 'stored', 'gone', 'failed', 'waiting', 'started', 'reason'];
  return renderTable(head, await Promise.all(rows));
}

async function liveCountsOf(run: RunRecord, stores: StoreReaders): Promise<LiveCounts> {
  return liveCounts(run, await stores.of(run.id).fleet.instances(), systemClock.now());
}

function incidentText({ incident }: InstanceDocument): string {
  if (incident === null || incident.overAtMs !== null) return '';
  const until = incident.untilMs === null ? '' : ` until ${new Date(incident.untilMs).toISOString().slice(0, 19)}Z`;
  return `${incident.verdict} by ${incident.rule}${until}`;
}

function renderInstances(instances: readonly InstanceDocument[]): string {
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

/** `orchestrator report`, `verify` and `cost`: what a run has come to, its proof, and its price. */
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
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
import type { Features } from '../../core/feature.ts';
import { renderReport } from '../../core/run/render-report.ts';
import { reportOf } from '../../core/decide/end/report.ts';
import type { Output } from '../output.ts';
import { fileOf, writeLines } from '../output-file.ts';
import type { StatusOptions } from './status.ts';
import { printable } from '../../../shared/domain/terminal-text.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { type Verdict, verifyRun } from '../../core/verify/verify.ts';
import { readVerifyFacts } from '../../core/db/verify-queries.ts';
import { plural } from '../../core/plan/wording.ts';
import { withRunBucket } from '../../core/cloud-access/run-bucket.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { costOfRun, type RunCost } from '../../core/decide/end/cost-of-run.ts';
import type { RunRecord, StoreReaders } from '../../core/model/stores.ts';
import type { CostBreakdown } from '../../core/plan/plan.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';

export async function reportCommand(
  options: StatusOptions & { html?: boolean; to?: string },
  output: Output,
): Promise<ExitCode> {
  const { html } = options;
  const to = fileOf(options.to);
  return withDatabase(options, output, async (database, config) => {
    const stores = await storesOf(database);
    const run = await findRun(
      stores.runs,
      { runId: options.runId, config },
      'over yet',
      ({ report }) => report !== null,
    );
    const report = reportOf(run);
    if (report === null)
      throw new AppError('run-unfinished', `run ${run.id} has no report yet: it is ${run.phase}`, {
        hint: `Look at it with: orchestrator status ${run.id}`,
      });
    const text = html ? await pageOf(run, stores, options.features) : printable(`${renderReport(report)}\n`);
    // With --json stdout is for the document.
    if (to !== undefined || !output.json) await writeLines(to, [text]);
    if (to !== undefined) output.line(`The report of run ${run.id} is in ${options.to}.`);
    output.document(report);
    return EXIT.complete;
  });
}

async function pageOf(run: RunRecord, stores: StoreReaders, features: Features): Promise<string> {
  const page = features.flatMap((feature) => feature.reportPage?.(run, stores) ?? [])[0];
  if (page === undefined) throw new AppError('usage', 'this program makes no pages', { hint: 'Leave --html out.' });
  return await page;
}

export async function verifyCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database, config) => {
    const stores = await storesOf(database);
    const run = await findRun(stores.runs, { runId: options.runId, config }, 'over yet', (r) => isRunEnd(r.phase));
    assertKept(run);
    const [facts, instances, parts] = await Promise.all([
      readVerifyFacts(database, run.id),
      stores.of(run.id).fleet.instances(),
      stores.of(run.id).results.parts(),
    ]);
    const verdict = await withRunBucket(run, (objects) => verifyRun({ run, facts, instances, parts, objects }));
    output.line(renderVerdict(verdict));
    output.document(verdict);
    return verdict.holds ? EXIT.complete : EXIT.held;
  });
}

function renderVerdict(verdict: Verdict): string {
  const { products } = verdict;
  const lines = [
    `Run ${verdict.run}: ${verdict.holds ? 'holds' : 'DOES NOT HOLD'}`,
    `  ${products.planned} planned = ${products.stored} stored + ${products.gone} gone + ${products.failed} failed${products.open > 0 ? ` + ${products.open} open` : ''}`,
    `  ${plural(verdict.resultRows, 'row')} in the result table, ${plural(verdict.parts, 'part')} and ${plural(verdict.manifests, 'manifest')} in the bucket`,
    `  ${renderRequests(verdict.requests)}`,
    ...verdict.differences.flatMap((d) => [
      `  ! ${d.check}: expected ${d.expected}, found ${d.found}`,
      ...d.examples.map((e) => `      ${e}`),
    ]),
    ...verdict.notes.map((n) => `  note: ${n}`),
  ];
  return lines.join('\n');
}

function renderRequests({ logged, logs, hosts, smallestGapMs, clocksMs }: Verdict['requests']): string {
  const [to, whose] = hosts === undefined ? ['', 'an address'] : [` to ${plural(hosts, 'host')}`, 'a host'];
  const gap = smallestGapMs === null ? '' : `; the smallest gap of ${whose} is ${smallestGapMs} ms`;
  const clocks = clocksMs === null ? '' : `, clocks of different processes compared to ${clocksMs} ms`;
  return `${plural(logged, 'request')}${to} in ${plural(logs, 'request log')}${gap}${clocks}`;
}

export async function costCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database, config) => {
    if (options.runId === undefined) {
      const stores = await storesToList(database, output);
      const runs = stores === null ? [] : (await runsOfSite(stores.runs, config)).slice(0, LISTED);
      const costs: RunCost[] = [];
      for (const run of runs) costs.push(await read(stores!, run));
      output.line(costs.length === 0 ? NO_RUN_YET : renderRuns(costs));
      output.document({ runs: costs.map(({ instances, ...cost }) => ({ ...cost, instances: instances.length })) });
      return EXIT.complete;
    }
    const stores = await storesOf(database);
    const cost = await read(stores, await getRun(stores.runs, options.runId));
    output.line(renderCost(cost));
    output.document(cost);
    return EXIT.complete;
  });
}

async function read(stores: StoreReaders, run: RunRecord): Promise<RunCost> {
  const instances = await stores.of(run.id).fleet.instances();
  const stored = run.report?.products.stored ?? (await stores.of(run.id).results.totals()).stored;
  return costOfRun(run, instances, stored, systemClock.now());
}

const usd = (amount: number): string => `$${amount.toFixed(4)}`;

function renderRuns(costs: readonly RunCost[]): string {
  return renderTable(
    ['run', 'state', 'planned $', 'actual $', 'per 1,000 $', 'prices of', ''],
    costs.map((c) => [
      c.run,
      c.state,
      usd(c.estimated.total),
      `${usd(c.actual.total)}${c.final ? '' : ' so far'}`,
      c.per1000 === null ? null : usd(c.per1000),
      c.actual.pricesOf,
      c.dryRun ? 'dry run: nothing was paid' : '',
    ]),
  );
}

const PARTS: [Exclude<keyof CostBreakdown, 'currency' | 'pricesOf'>, string][] = [
  ['instances', 'instances'],
  ['credits', 'CPU credits, at most'],
  ['ipv4', 'IPv4 addresses'],
  ['ebs', 'EBS volumes'],
  ['balancer', 'balancer'],
  ['s3', 'S3 requests'],
  ['total', 'total'],
];

function renderCost(cost: RunCost): string {
  const head = `Run ${cost.run}: ${cost.state}${cost.dryRun ? '; a dry run: nothing was paid, these are AWS prices' : ''}`;
  const parts = renderTable(
    ['', 'planned', cost.final ? 'actual' : 'so far'],
    PARTS.filter(([key]) => cost.actual[key] !== undefined).map(([key, name]) => [
      name,
      usd(cost.estimated[key] ?? 0),
      usd(cost.actual[key] ?? 0),
    ]),
  );
  const machines = renderTable(
    ['slot', 'epoch', 'instance', 'type', 'seconds', '$/h', 'with address', ''],
    cost.instances.map((i) => [
      i.slot,
      i.epoch,
      i.instanceId,
      i.instanceType,
      i.seconds,
      i.usdPerHour.toFixed(4),
      usd(i.usd),
      i.running ? 'still there' : '',
    ]),
  );
  const notes = [
    ...(cost.per1000 === null ? [] : [`${usd(cost.per1000)} per 1,000 products stored`]),
    ...(cost.maxCost === null ? [] : [`cap ${usd(cost.maxCost)} (run.max_cost)`]),
    `list prices of ${cost.actual.pricesOf}; the bill is AWS's`,
  ];
  return [head, '', parts, ...(cost.instances.length > 0 ? ['', machines] : []), '', notes.join('; ')].join('\n');
}

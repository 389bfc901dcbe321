/** Metrics of the newest run of each result table, for Prometheus. From the database, so that they outlive the run. */
import { Gauge, Registry } from 'prom-client';
import { RUN_PHASES } from '../../../shared/domain/states.ts';
import { readRun } from './run-documents.ts';
import type { RunRecord, StoreReaders } from '../model/stores.ts';

/** Newest runs of the database in which each table's newest is sought; an unfinished run may be older. */
const LOOKED_AT = 50;

/** The text of `/metrics`. Names and units follow Prometheus's conventions; docs/metrics.md lists them. */
export async function metricsText(stores: StoreReaders, runId?: string): Promise<{ type: string; text: string }> {
  const registry = new Registry();
  const gauge = <T extends string>(name: string, help: string, labelNames: T[] = []): Gauge<'table' | T> =>
    new Gauge({ name: `crawlfleet_${name}`, help, labelNames: ['table', ...labelNames], registers: [registry] });
  const phase = gauge('run_phase', '1 for the phase that the newest run is in, 0 for the others', ['phase']);
  const started = gauge('run_start_time_seconds', 'When the newest run began, since 1970');
  const deadline = gauge('run_deadline_time_seconds', 'Its deadline, since 1970');
  const finished = gauge('run_end_time_seconds', 'When it ended, since 1970; missing while it works');
  const exitCode = gauge('run_exit_code', 'Its exit code; missing while it works');
  const planned = gauge('run_products_planned', 'Products of the run');
  const products = gauge('run_products', 'Products with an outcome, as the instances count them', ['outcome']);
  const waiting = gauge('run_products_waiting', 'Products that wait after a first try, without an outcome');
  const missed = gauge('run_products_missed', 'Products without a row, by reason and by status or rule', [
    'reason',
    'sign',
    'state',
  ]);
  const unchanged = gauge('run_products_unchanged', 'Stored products whose page was unchanged, of the loaded parts');
  const saved = gauge('run_saved_bytes', 'Bodies of those pages, which were not fetched');
  const requests = gauge('run_requests', 'Requests to the site');
  const gap = gauge('run_min_gap_seconds', 'Smallest time between two requests of one address');
  const interval = gauge('run_interval_seconds', 'The time that is to pass between two requests of one address');
  const instances = gauge('run_instances', 'Instances by phase', ['phase']);
  const incidents = gauge('run_addresses_stopped', 'Addresses that have stopped on their own', ['verdict']);
  const cost = gauge('run_cost_dollars', 'Cost at list prices so far');
  const end = gauge('run_forecast_end_time_seconds', 'When the crawl will probably end, since 1970', ['quantile']);
  const fieldShare = gauge('run_field_share', 'Values of a field, as shares', ['field', 'share']);
  const fieldNumber = gauge('run_field_number', 'Quantiles of the numbers of a field', ['field', 'quantile']);
  const fieldCurrency = gauge('run_field_currency_share', 'Currencies of a field', ['field', 'currency']);
  const seconds = (ms: number): number => ms / 1_000;
  for (const run of await newestOfTables(stores, runId)) {
    const { table } = run.settings.results;
    const document = await readRun(run, stores.of(run.id));
    for (const name of RUN_PHASES) phase.set({ table, phase: name }, run.phase === name ? 1 : 0);
    started.set({ table }, seconds(run.startedAtMs));
    deadline.set({ table }, seconds(run.deadlineAtMs));
    if (run.finishedAtMs !== null) finished.set({ table }, seconds(run.finishedAtMs));
    if (run.exitCode !== null) exitCode.set({ table }, run.exitCode);
    planned.set({ table }, run.planned);
    const { live, usd, projection, loaded } = document;
    for (const outcome of ['stored', 'gone', 'failed'] as const) products.set({ table, outcome }, live[outcome]);
    waiting.set({ table }, live.waiting);
    for (const { reason, sign, ...row } of document.reasons)
      for (const [state, count] of [
        ['ended', row.products],
        ['waiting', row.waiting],
      ] as const)
        missed.set({ table, reason, sign: sign ?? '', state }, count);
    unchanged.set({ table }, loaded.unchanged?.products ?? 0);
    saved.set({ table }, loaded.unchanged?.savedBytes ?? 0);
    requests.set({ table }, live.requests);
    if (live.minGapMs !== null) gap.set({ table }, seconds(live.minGapMs));
    interval.set({ table }, seconds(document.intervalMs));
    for (const { phase } of document.instances) instances.inc({ table, phase });
    for (const verdict of ['banned', 'suspect'] as const) incidents.set({ table, verdict }, live[verdict]);
    cost.set({ table }, usd.soFar);
    for (const [field, values] of Object.entries(document.values?.fields ?? {})) {
      const { filled, empty, top, changed, numbers, currencies = {} } = values;
      for (const [share, value] of Object.entries({ filled, empty, top, changed }))
        if (value !== undefined) fieldShare.set({ table, field, share }, value);
      for (const [quantile, value] of [
        ['0.05', numbers?.low],
        ['0.5', numbers?.median],
        ['0.95', numbers?.high],
      ] as const)
        if (value !== undefined) fieldNumber.set({ table, field, quantile }, value);
      for (const [currency, share] of Object.entries(currencies)) fieldCurrency.set({ table, field, currency }, share);
    }
    for (const [quantile, at] of [
      ['0.5', projection?.p50],
      ['0.95', projection?.p95],
    ] as const)
      if (at) end.set({ table, quantile }, seconds(Date.parse(at)));
  }
  return { type: registry.contentType, text: await registry.metrics() };
}

async function newestOfTables({ runs }: StoreReaders, runId: string | undefined): Promise<RunRecord[]> {
  if (runId !== undefined) return [await runs.get(runId)].filter((run) => run !== null);
  const newest = new Map<string, RunRecord>();
  const [listed, unfinished] = await Promise.all([runs.list(LOOKED_AT), runs.unfinished()]);
  for (const run of [...listed, ...unfinished].sort((a, b) => a.startedAtMs - b.startedAtMs))
    newest.set(run.settings.results.table, run);
  return [...newest.values()];
}

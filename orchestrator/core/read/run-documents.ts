/** The documents of `status --json`, which the web page shows as well. From the database only. */
import type { ReasonRow } from '../../../shared/domain/reason-row.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { OutcomeCounts } from '../../../shared/domain/outcome.ts';
import type { Progress } from '../../../shared/wire/callbacks.ts';
import { type TimelineEntry, timelineOf } from './timeline.ts';
import { openIncident } from '../decide/ban-policy.ts';
import { FleetSnapshot } from '../model/fleet-snapshot.ts';
import { isGivenUp } from '../model/instance-state.ts';
import type { IncidentRecord, InstanceRecord, RunReader, RunRecord } from '../model/stores.ts';
import { operatorPaceInWords } from '../decide/operator-pace.ts';
import { operatorPaceOf } from '../model/operator-pace.ts';
import { costOfRun } from '../decide/end/cost-of-run.ts';
import { retryRefuses } from '../model/try-again.ts';
import { liveReasons, waitingProducts } from '../decide/end/reasons.ts';
import { reportOf } from '../decide/end/report.ts';
import { observedInRows } from '../model/world.ts';
import { hostsOf } from '../plan/host-pace.ts';
import { forecastEnd } from '../decide/shares/end-forecast.ts';
import { standingOf } from '../decide/shares/standing.ts';

export type RunSummary = ReturnType<typeof summaryOf>;
export type InstanceDocument = ReturnType<typeof instanceDocument>;
export type RunDocument = Awaited<ReturnType<typeof readRun>>;

/** Counted by the instances themselves: fresher than the loaded results. */
export interface LiveCounts extends OutcomeCounts {
  done: number;
  /** Products without an outcome that were tried: they wait for their second try, or for a proof. */
  waiting: number;
  requests: number;
  /** Smallest gap of any address; null before a second request. */
  minGapMs: number | null;
  /** The products per second since the first instance was ready; null before. */
  perSecond: number | null;
  /** Addresses with an open ban, and with a suspicion that no canary page has settled. */
  banned: number;
  suspect: number;
}

/** What happened in a run, as `explain` shows it, and each time an address stopped on its own. */
export interface Story {
  story: TimelineEntry[];
  incidents: IncidentRecord[];
}

/** The most events that are read: more than a run of a thousand instances has. */
export const MAX_EVENTS = 20_000;

export async function readStory(run: RunRecord, { run: row, fleet }: RunReader): Promise<Story> {
  const [events, incidents] = await Promise.all([row.events(MAX_EVENTS), fleet.incidents()]);
  return { story: timelineOf(run, events), incidents };
}

export function summaryOf(run: RunRecord) {
  const report = reportOf(run);
  return {
    run: run.id,
    /** The shop's hosts; none: `site.hosts: any`. */
    hosts: hostsOf(run.settings.site.productUrl),
    table: run.settings.results.table,
    state: run.phase,
    reason: run.reason,
    exitCode: run.exitCode,
    startedAt: iso(run.startedAtMs),
    deadline: iso(run.deadlineAtMs),
    finishedAt: isoOrNull(run.finishedAtMs),
    dryRun: run.dryRun,
    planned: run.planned,
    /** The products of the report; null until it is written. */
    products: report?.products ?? null,
    cost: report?.cost ?? null,
    /** How full the rows were; null until they are judged. */
    fill: run.fill ?? null,
    /** What their values looked like; null as above. */
    values: run.values ?? null,
  };
}

/** Everything about one run that changes while it works. */
export async function readRun(run: RunRecord, { fleet, results, work }: RunReader) {
  const [instances, loaded] = await Promise.all([fleet.instances(), results.totals()]);
  const nowMs = systemClock.now();
  const rows = { nowMs, run, fleet: new FleetSnapshot(instances), work: await work.counts(), robots: null };
  // Of a run that is crawling, from the instances' latest heartbeats.
  const isCrawling = run.phase === 'launching' || run.phase === 'crawling';
  const end = isCrawling ? forecastEnd(observedInRows(rows)) : null;
  const cost = costOfRun(run, instances, loaded.stored, nowMs);
  return {
    ...summaryOf(run),
    at: iso(nowMs),
    /** Why it ends early; null while nothing asks for that. */
    request: run.request,
    intervalMs: run.settings.site.intervalMs,
    /** What its operator asks of it (`orchestrator pace`); null: as configured. */
    pace: paceDocument(run),
    live: liveCounts(run, instances, nowMs),
    usd: { soFar: cost.actual.total, planned: cost.estimated.total, cap: cost.maxCost },
    loaded,
    reasons: reasonsOf(run, instances),
    /** False for a discovery, which `retry` refuses. */
    canRetry: !retryRefuses(run.settings),
    /** How the run stands against the deadline; null while there is no basis for an estimate. */
    standing: standingOf(rows),
    /** The forecast of the end; null for a run that is not crawling. */
    projection: end && {
      p50: isoOrNull(end.p50Ms),
      p95: isoOrNull(end.p95Ms),
      instances: end.workers.map(({ slot, epoch, p50Ms, p95Ms }) => ({
        slot,
        epoch,
        p50: isoOrNull(p50Ms),
        p95: isoOrNull(p95Ms),
      })),
    },
    instances: instances.map(instanceDocument),
    report: reportOf(run),
  };
}

function paceDocument(run: RunRecord) {
  const pace = operatorPaceOf(run);
  if (pace === null) return null;
  const { intervalMs, addresses } = pace;
  return { intervalMs, pausedUntil: isoOrNull(pace.pausedUntilMs), addresses, words: operatorPaceInWords(run) };
}

/** Why products have no row: by the report, and until there is one by the instances. */
export const reasonsOf = (run: RunRecord, instances: readonly InstanceRecord[]): readonly ReasonRow[] =>
  run.report === null ? liveReasons(run, instances) : (run.report.reasons ?? []);

/** Sums over the instances' own counters. */
export function liveCounts(
  run: Pick<RunRecord, 'planned' | 'finishedAtMs'>,
  instances: readonly InstanceRecord[],
  nowMs: number,
): LiveCounts {
  const sum = { stored: 0, gone: 0, failed: 0, requests: 0 };
  let minGapMs: number | null = null;
  let firstMs: number | null = null;
  for (const { progress, claimedAtMs } of instances) {
    if (!progress) continue;
    for (const name of ['stored', 'gone', 'failed', 'requests'] as const) sum[name] += progress[name];
    if (progress.minGapMs !== null) minGapMs = Math.min(minGapMs ?? Infinity, progress.minGapMs);
    if (progress.requests > 0) firstMs = Math.min(firstMs ?? Infinity, claimedAtMs);
  }
  // Products that a lost instance crawled but did not upload are crawled, and counted, again: the sum is capped.
  const done = Math.min(sum.stored + sum.gone + sum.failed, run.planned);
  sum.stored = Math.min(sum.stored, Math.max(0, run.planned - sum.gone - sum.failed));
  const endMs = run.finishedAtMs ?? nowMs;
  const fleet = new FleetSnapshot(instances);
  const open = [...fleet.latest.values()].filter((r) => !isGivenUp(r)).map((r) => openIncident(r)?.verdict);
  return {
    done,
    ...sum,
    waiting: waitingProducts(instances),
    minGapMs,
    perSecond: firstMs !== null && endMs > firstMs ? (done * 1_000) / (endMs - firstMs) : null,
    banned: open.filter((verdict) => verdict === 'banned').length,
    suspect: open.filter((verdict) => verdict === 'suspect').length,
  };
}

function instanceDocument(record: InstanceRecord) {
  const { slot, epoch, phase, reason, instanceId, address, zone, problem, incident } = record;
  // The table of reasons has the sums.
  const progress = record.progress && withoutMisses(record.progress);
  const since = iso(record.phaseAtMs);
  const lastHeartbeatAt = isoOrNull(record.lastHeartbeatAtMs);
  const state = { slot, epoch, phase, reason, instanceId, address, zone, since, lastHeartbeatAt };
  // `incident`: the last one, over or not.
  return { ...state, progress, problem, incident };
}

function withoutMisses(given: Progress): Omit<Progress, 'misses'> {
  const { misses: _, ...progress } = given;
  return progress;
}

const iso = (ms: number): string => new Date(ms).toISOString();
const isoOrNull = (ms: number | null): string | null => (ms === null || !Number.isFinite(ms) ? null : iso(ms));

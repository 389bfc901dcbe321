/** Notifies the targets of the configuration that a run has ended; the main server of the run does it. */
import { hostname } from 'node:os';
import { basename, dirname } from 'node:path';
import { advicesOf, type ReasonRow } from '../../../shared/domain/reason-row.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { EXIT, EXIT_FACTS, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isLate } from '../../../shared/domain/standing.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { BanReport, RunReport } from '../../core/model/report.ts';
import { adviceForDiscovery } from '../../core/model/try-again.ts';
import type { World } from '../../core/model/world.ts';
import { liveReasons } from '../../core/decide/end/reasons.ts';
import { reportOf } from '../../core/decide/end/report.ts';
import { standingAt } from '../../core/decide/shares/standing.ts';
import type { RunRecord, RunStore } from '../../core/model/stores.ts';
import { alarmNotice, type Ban, endedNotice, NO_RESULT, type Notice, type RunResult, type Sender } from './notice.ts';
import { type Delivery, notify, ping, type Target } from './deliver.ts';
import { hostsOf } from '../../core/plan/host-pace.ts';
import { ownerOf } from '../../core/prepare/settings-of.ts';
import type { RaisedAlarm } from './run-alarms.ts';
import { isUnfinished } from '../../core/lookup/find-run.ts';
import type { Config } from '../../core/config/load-config.ts';
import { NOTIFY_SECTION, PING_SECTION } from './section.ts';

/** Receivers that do not answer keep a process no longer than this after its run has ended. */
const ANNOUNCE_WITHIN_MS = 45_000;

/** Two crawls into different tables are different schedules; the record and every notice name theirs. */
export const scheduleNameOf = ({ values: { schedule, results } }: Config): string => schedule.name ?? results.table;

/** Of a run, shop and table are its own, whatever the configuration says by now. */
export function senderOf(config: Config, { dryRun, settings }: Pick<RunRecord, 'dryRun'> & Partial<RunRecord>): Sender {
  const { schedule, site, results, server } = config.values;
  return {
    name: scheduleNameOf(config),
    timezone: schedule.timezone,
    dryRun,
    hosts: hostsOf(settings?.site.productUrl ?? site.product_url),
    table: settings?.results.table ?? results.table,
    owner: ownerOf(config),
    mainServer: hostname(),
    folder: dirname(config.file),
    configName: basename(config.file),
    pageUrl: server.page_url,
  };
}

/** The targets of `notify`. */
export function targetsOf(config: Config): Target[] {
  return NOTIFY_SECTION.of(config).map(({ webhook, secret, slack, email, command, on, dry_runs: dryRuns }): Target => {
    const when = { on, dryRuns };
    if (slack !== undefined) return { kind: 'slack', url: slack, ...when };
    if (command !== undefined) return { kind: 'command', command, ...when };
    if (email !== undefined) return { kind: 'email', ...email, to: [email.to].flat(), ...when };
    return { kind: 'webhook', url: webhook!, secret, ...when };
  });
}

export function endNotice(report: RunReport, run: RunRecord, config: Config): Notice {
  const times = {
    dueAtMs: run.settings.dueAtMs ?? null,
    startedAtMs: run.startedAtMs,
    endedAtMs: run.finishedAtMs,
  };
  return endedNotice(resultOf(report, run), times, senderOf(config, run));
}

/**
 * Announces the end of a run, unless its report is stored already: that is written after the notice, so a run is
 * announced again after a crash between the two rather than never. Returns a line for each target that did not take
 * it. Never rejects.
 */
export async function announceEnd(run: RunRecord, report: RunReport, config: Config): Promise<string[]> {
  if (run.report !== null) return [];
  const notice = endNotice(report, run, config);
  const [faults, pinged] = await Promise.all([
    notify(targetsOf(config), notice, delivery()),
    pingOf(config, run, notice.good ? 'end' : 'fail'),
  ]);
  return [...faults, ...pinged];
}

/** Announces a run that ended before it was stored; as `announceEnd` does. What the user has interrupted is none. */
export async function announceRefusal(
  cause: unknown,
  config: Config,
  run: Pick<RunRecord, 'dryRun'>,
): Promise<string[]> {
  const exitCode = cause instanceof AppError ? cause.exitCode : EXIT.internal;
  if (exitCode === EXIT.interrupted) return [];
  const hint = (cause instanceof AppError ? cause.hint : undefined) ?? hintOf(exitCode, null);
  const result = { ...NO_RESULT, exitCode, reason: describeError(cause), hint };
  const times = { dueAtMs: null, startedAtMs: null, endedAtMs: null };
  const notice = endedNotice(result, times, senderOf(config, run));
  const [faults, pinged] = await Promise.all([
    notify(targetsOf(config), notice, delivery()),
    pingOf(config, run, 'fail'),
  ]);
  return [...faults, ...pinged];
}

/** Pings the dead man's switch of the configuration if it is for such runs; resolves to what failed. Never rejects. */
export async function pingOf(
  config: Config,
  { dryRun }: Pick<RunRecord, 'dryRun'>,
  state: 'start' | 'end' | 'fail',
): Promise<string[]> {
  const target = PING_SECTION.of(config);
  if (target === null || (dryRun && !target.dry_runs)) return [];
  const fault = await ping(target.url, state, delivery());
  return fault === null ? [] : [fault];
}

const delivery = (): Delivery => {
  const signal = AbortSignal.timeout(ANNOUNCE_WITHIN_MS);
  return { clock: systemClock, signal, withinMs: ANNOUNCE_WITHIN_MS };
};

/** Announces what a run at work has run into; as `announceEnd` does. */
export function announceAlarms(world: World, alarms: readonly RaisedAlarm[], config: Config): Promise<string[]> {
  return notify(targetsOf(config), alarmsNotice(world, alarms, config), delivery());
}

export function alarmsNotice(
  { run, fleet }: Pick<World, 'run' | 'fleet'>,
  alarms: readonly RaisedAlarm[],
  config: Config,
): Notice {
  return alarmNotice(run.id, { alarms, ...firstReasons(liveReasons(run, fleet.all)) }, senderOf(config, run));
}

/** How a run has ended; undefined for one that was never stored. */
export async function endOf(runs: Pick<RunStore, 'get'>, runId: string): Promise<RunResult | 'unfinished' | undefined> {
  const run = await runs.get(runId);
  if (run === null) return undefined;
  return isUnfinished(run) ? 'unfinished' : resultOf(reportOf(run)!, run);
}

/** The part of a report that notices and the record of a schedule have. */
function resultOf(
  report: RunReport,
  { deadlineAtMs, finishedAtMs }: Pick<RunRecord, 'deadlineAtMs' | 'finishedAtMs'>,
): RunResult {
  const { run, state, exitCode, reason, onTime, products, cost, bans, notes, leftBehind } = report;
  const standing = finishedAtMs === null ? null : standingAt({ report, deadlineAtMs }, finishedAtMs);
  const { planned, stored, gone, failed } = products;
  const counts = { planned, stored, gone, failed };
  const { reasons = [], moreReasons } = firstReasons(report.reasons ?? []);
  const general = report.discovery ? adviceForDiscovery(hintOf(exitCode, run)) : hintOf(exitCode, run);
  const byReason = BY_REASON.includes(exitCode) && reasons.length > 0 ? advicesOf(reasons) : general;
  const hint = leftBehind === undefined ? byReason : plain(leftBehind.join(' '), 600);
  const result = { run, state, exitCode, reason, onTime, products: counts, cost: cost.actual, hint };
  return {
    ...result,
    ...(reasons.length > 0 && { reasons }),
    ...(moreReasons !== undefined && { moreReasons }),
    ...(standing !== null && isLate(standing) && { lateMs: Math.max(0, standing.lateMs) }),
    ...(standing !== null && standing.uncrawled > 0 && { uncrawled: standing.uncrawled }),
    ...(bans.length > 0 && { bans: { count: bans.length, first: bans.slice(0, MAX_LINES).map(banOf) } }),
    ...(notes.length > 0 && { notes: notes.slice(0, MAX_LINES).map((note) => plain(note, 300)) }),
  };
}

const banOf = ({ address, rule, atMs, overAtMs }: BanReport): Ban => {
  const overAt = overAtMs === null ? null : new Date(overAtMs).toISOString();
  return { address, rule: plain(rule), at: new Date(atMs).toISOString(), overAt };
};

/** In a notice, and in the record of a schedule. */
const MAX_REASONS = 3;
const MAX_LINES = 5;

/** The most frequent reasons, and how many others there are; nothing without one. */
function firstReasons(all: readonly ReasonRow[]): Pick<RunResult, 'reasons' | 'moreReasons'> {
  if (all.length === 0) return {};
  const more = all.length - MAX_REASONS;
  return { reasons: all.slice(0, MAX_REASONS), ...(more > 0 && { moreReasons: more }) };
}

/** Ends whose cause shows in the products: what helps depends on why they have no row. */
const BY_REASON: readonly ExitCode[] = [
  EXIT.failedProducts,
  EXIT.deadline,
  EXIT.budget,
  EXIT.siteDown,
  EXIT.banned,
  EXIT.interrupted,
];

/** What to do about an exit code, from the table that docs/exit-codes.md is generated from. */
export function hintOf(exitCode: ExitCode, runId: string | null): string {
  const cause = (Object.keys(EXIT) as (keyof typeof EXIT)[]).find((name) => EXIT[name] === exitCode);
  return EXIT_FACTS[cause ?? 'internal'].todo.replaceAll('`', '').replaceAll('RUN', runId ?? 'RUN');
}

/** The result of a run, as the last line, notices and the record of a schedule give it. */
import { EXIT, type ExitCode, exitWords, hintOf } from '../../../shared/domain/exit-codes.ts';
import { showLocal } from '../../../shared/domain/local-time.ts';
import { advicesOf, namesOf, type ReasonRow } from '../../../shared/domain/reason-row.ts';
import { isLate, standingInWords } from '../../../shared/domain/standing.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import { standingAt } from '../decide/shares/standing.ts';
import type { BanReport, RunReport } from '../model/report.ts';
import type { RunRecord } from '../model/stores.ts';
import { adviceForDiscovery } from '../model/try-again.ts';

/** How a run ended, or a start that never became a run. */
export interface RunResult {
  /** The run's ID; null when it ended before a run was stored. */
  run: string | null;
  /** Phase of the run; null without one. */
  state: string | null;
  /** The exit code; null when a signal ended the process before a run was stored. */
  exitCode: ExitCode | null;
  reason: string | null;
  onTime: boolean | null;
  products: { planned: number; stored: number; gone: number; failed: number } | null;
  cost: number | null;
  /** Why products have no row, the most frequent reasons; omitted where every product has one. */
  reasons?: readonly ReasonRow[];
  /** How many reasons there are besides; omitted without one. */
  moreReasons?: number;
  /** How long after its deadline it ended, 0 with only `uncrawled`; omitted where it was not late. */
  lateMs?: number;
  /** Products that it has left at its deadline; omitted without one. */
  uncrawled?: number;
  /** How often the site refused an address, and the first times; omitted without one. */
  bans?: { count: number; first: readonly Ban[] };
  /** The first notes of the report; omitted without one. */
  notes?: readonly string[];
  /** What a person should do; empty when there is nothing. */
  hint: string;
}

/** An address that the site refused. */
interface Ban {
  address: string | null;
  rule: string;
  /** ISO times: when it was refused, and served again; null while it is not. */
  at: string;
  overAt: string | null;
}

export const NO_RESULT: RunResult = {
  run: null,
  state: null,
  exitCode: null,
  reason: null,
  onTime: null,
  products: null,
  cost: null,
  hint: '',
};

/** When it was due, began and ended; null where that is unknown. */
export interface Times {
  dueAtMs: number | null;
  startedAtMs: number | null;
  endedAtMs: number | null;
}

/** The part of a report that notices and the record of a schedule have. */
export function resultOf(
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

/** The most reasons in a notice, and in the record of a schedule. */
const MAX_REASONS = 3;
const MAX_LINES = 5;

/** The most frequent reasons, and how many others there are; nothing without one. */
export function firstReasons(all: readonly ReasonRow[]): Pick<RunResult, 'reasons' | 'moreReasons'> {
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

/** Nothing that a person would have to look at. */
export const isGood = ({ exitCode }: Pick<RunResult, 'exitCode'>): boolean => exitCode === EXIT.complete;

export const timesOf = ({ settings, startedAtMs, finishedAtMs }: RunRecord): Times => ({
  dueAtMs: settings.dueAtMs ?? null,
  startedAtMs,
  endedAtMs: finishedAtMs,
});

/** How a run ended, in a sentence. Times are shown in the time zone. */
export function endSentence(result: RunResult, { dueAtMs }: Pick<Times, 'dueAtMs'>, timezone: string): string {
  const {
    run,
    products,
    cost,
    exitCode,
    reason,
    bans,
    reasons = [],
    moreReasons = 0,
    lateMs = 0,
    uncrawled = 0,
  } = result;
  const more = moreReasons > 0 ? `, ${moreReasons} more reasons` : '';
  const because = reasons.length === 0 ? '' : ` (${plain(namesOf(reasons))}${more})`;
  const exit = exitCode === null ? '' : exitWords(exitCode);
  // A reason often begins with these words.
  const words = exit === '' || reason?.startsWith(exit) ? '' : `, ${exit}`;
  const how = isGood(result) ? 'is complete' : `ended with exit code ${exitCode ?? 'unknown'}${words}`;
  const due = dueAtMs === null ? '' : ` of ${showLocal(dueAtMs, timezone)}`;
  const why = reason ? ` (${reason})` : '';
  const rows = products
    ? `; ${products.stored} of ${products.planned} products stored, ${products.failed} failed${because}`
    : '';
  const banned = bans === undefined ? '' : `, ${bans.count} ${bans.count === 1 ? 'ban' : 'bans'}`;
  const standing = { lateMs, uncrawled };
  const late = isLate(standing) ? `, ${standingInWords(standing)}` : result.onTime === false ? ', not on time' : '';
  const price = cost === null ? '' : `, $${cost.toFixed(2)}`;
  return `${run ? `run ${run}` : 'the run'}${due} ${how}${why}${rows}${banned}${late}${price}.`;
}

/** The sentence with whose it is: the name of the schedule. */
export const summaryOf = ({ name, dryRun }: { name: string; dryRun: boolean }, sentence: string): string =>
  `${dryRun ? 'DRY-RUN ' : ''}crawlfleet ${name}: ${sentence}`;

/** What happened and what to do, without where. */
export const headline = ({ summary, hint }: { summary: string; hint: string }): string =>
  [summary, hint].filter(Boolean).join(' ');

/** What targets receive: what a run or a due time has come to, in a sentence and as JSON. docs/notify.md shows the payload. */
import { namesOf, type ReasonRow } from '../../shared/domain/reason-row.ts';
import { EXIT, type ExitCode } from '../../shared/domain/exit-codes.ts';
import { showLocal } from '../../shared/domain/local-time.ts';
import { plain } from '../../shared/domain/terminal-text.ts';

/** What a run at work can raise, each at most once until it is over. */
const ALARM_KINDS = ['banned', 'site-down', 'late', 'cost', 'no-progress'] as const;
export type AlarmKind = (typeof ALARM_KINDS)[number];

/** What a target can choose in `notify[].on`; one notice may be of several kinds. */
export const NOTICE_KINDS = [
  'ended',
  'finished',
  'failed',
  'held',
  'fewer',
  ...ALARM_KINDS,
  'missed',
  'skipped',
  'stuck',
] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** How a run ended, or a start that never became a run. */
export interface RunResult {
  /** Null when it ended before a run was stored. */
  run: string | null;
  /** Phase of the run; null without one. */
  state: string | null;
  /** Null when a signal ended the process before a run was stored. */
  exitCode: ExitCode | null;
  reason: string | null;
  onTime: boolean | null;
  products: { planned: number; stored: number; gone: number; failed: number } | null;
  cost: number | null;
  /** Why products have no row, the most frequent reasons; omitted where every product has one. */
  reasons?: readonly ReasonRow[];
  /** What a person should do; empty when there is nothing. */
  hint: string;
}

/** The body of a webhook. `text` alone is a whole message: chat services show it. */
export interface Notice extends RunResult {
  text: string;
  event: 'ended' | 'alarm' | 'skipped' | 'missed' | 'stuck' | 'test';
  /** A target gets it when it has chosen one of these; a test goes to every target. */
  kinds: readonly NoticeKind[];
  /** Nothing that a person would have to look at. */
  good: boolean;
  schedule: string;
  /** A target gets notices of dry runs only where it has asked for them; their `text` begins with `DRY-RUN`. */
  dryRun: boolean;
  /** ISO times; empty for a run that no due time started, more than one only for `missed`. */
  due: string[];
  startedAt: string | null;
  endedAt: string | null;
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

/** Whom a notice comes from. */
export interface Sender {
  /** Name of the schedule; for a run by hand that of its configuration's. */
  name: string;
  timezone: string;
  dryRun: boolean;
}

/** When it was due, began and ended; null where that is unknown. */
export interface Times {
  dueAtMs: number | null;
  startedAtMs: number | null;
  endedAtMs: number | null;
}

/** What an end is besides: by its exit code, which says why. */
const KINDS_BY_EXIT: Partial<Record<number, NoticeKind>> = {
  [EXIT.banned]: 'banned',
  [EXIT.siteDown]: 'site-down',
  [EXIT.deadline]: 'late',
  [EXIT.budget]: 'cost',
};

function kindsOfEnd({ exitCode, state }: RunResult): NoticeKind[] {
  const by = KINDS_BY_EXIT[exitCode ?? -1];
  return [
    'ended',
    exitCode === EXIT.complete ? 'finished' : 'failed',
    ...(state === 'held' ? (['held', 'fewer'] as const) : exitCode === EXIT.held ? (['fewer'] as const) : []),
    ...(by === undefined ? [] : [by]),
  ];
}

/** A run has ended, or a due time without a run. */
export function endedNotice(result: RunResult, times: Times, sender: Sender): Notice {
  const { products, cost, exitCode, reason, hint, reasons = [] } = result;
  const because = reasons.length === 0 ? '' : ` (${plain(namesOf(reasons))})`;
  const good = exitCode === EXIT.complete;
  const how = good ? 'is complete' : `ended with exit code ${exitCode ?? 'unknown'}`;
  const due = times.dueAtMs === null ? '' : ` of ${showLocal(times.dueAtMs, sender.timezone)}`;
  const why = reason ? ` (${reason})` : '';
  const rows = products
    ? `; ${products.stored} of ${products.planned} products stored, ${products.failed} failed${because}`
    : '';
  const late = result.onTime === false ? ', not on time' : '';
  const price = cost === null ? '' : `, $${cost.toFixed(2)}`;
  const sentence = `${result.run ? `run ${result.run}` : 'the run'}${due} ${how}${why}${rows}${late}${price}.`;
  return { ...notice('ended', sentence, hint, sender), kinds: kindsOfEnd(result), ...result, good, ...isoTimes(times) };
}

/** A due time was skipped, or several were missed: a night of sleep is one message. */
export function unstartedNotice(
  event: 'skipped' | 'missed',
  dueAtMs: readonly number[],
  reason: string | null,
  sender: Sender,
): Notice {
  const shown = dueAtMs.slice(-3).map((ms) => showLocal(ms, sender.timezone));
  const times =
    dueAtMs.length > 3 ? `${dueAtMs.length} due times, the last ones ${shown.join(', ')}` : shown.join(', ');
  const hint = event === 'missed' ? 'Start it by hand if the rows are needed: orchestrator run' : '';
  const why = reason ?? (event === 'missed' ? 'no daemon was running' : 'a run was at work');
  const due = dueAtMs.map((ms) => new Date(ms).toISOString());
  return { ...notice(event, `${event} ${times}: ${why}.`, hint, sender), reason, due };
}

interface Decided extends Times, Pick<RunResult, 'reason'> {
  dueAtMs: number;
  state: string;
  result: RunResult | null;
}

/** Of a due time that is decided, or of several that were missed together. */
export function dueNotice(rows: readonly Decided[], sender: Sender): Notice {
  const { state, result, reason, ...times } = rows.at(-1)!;
  if (state === 'done') return endedNotice(result ?? { ...NO_RESULT, reason }, times, sender);
  const due = rows.map((row) => row.dueAtMs);
  return unstartedNotice(state === 'missed' ? state : 'skipped', due, reason, sender);
}

/** A run that went on after its time and was asked to leave, or that cannot be resumed. */
export interface StuckRun {
  runId: string | null;
  /** Null: no due time has started it. */
  dueAtMs: number | null;
  sentence: string;
  hint: string;
}

export function stuckNotice({ runId, dueAtMs, sentence, hint }: StuckRun, sender: Sender): Notice {
  const due = dueAtMs === null ? [] : [new Date(dueAtMs).toISOString()];
  return { ...notice('stuck', `${sentence}.`, hint, sender), run: runId, reason: 'stuck', due };
}

/** What a run at work has run into: what is new, and what has come again since the last notice. */
export function alarmNotice(run: string, alarms: readonly { kind: AlarmKind; text: string }[], sender: Sender): Notice {
  const sentence = `run ${run}: ${alarms.map(({ text }) => text).join('; ')}.`;
  const hint = `Look at it with: orchestrator explain ${run}`;
  return { ...notice('alarm', sentence, hint, sender), kinds: alarms.map(({ kind }) => kind), run };
}

/** What `orchestrator notify --test` sends. */
export function testNotice(sender: Sender): Notice {
  return { ...notice('test', 'this is a test; nothing has happened.', '', sender), good: true };
}

function notice(event: Notice['event'], sentence: string, hint: string, { name, dryRun }: Sender): Notice {
  const text = [`${dryRun ? 'DRY-RUN ' : ''}crawlfleet ${name}: ${sentence}`, hint].filter(Boolean).join(' ');
  const kinds = event === 'missed' || event === 'skipped' || event === 'stuck' ? [event] : [];
  return {
    text,
    event,
    kinds,
    good: false,
    schedule: name,
    dryRun,
    due: [],
    startedAt: null,
    endedAt: null,
    ...NO_RESULT,
    hint,
  };
}

function isoTimes({ dueAtMs, startedAtMs, endedAtMs }: Times): Pick<Notice, 'due' | 'startedAt' | 'endedAt'> {
  const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  return { due: dueAtMs === null ? [] : [iso(dueAtMs)!], startedAt: iso(startedAtMs), endedAt: iso(endedAtMs) };
}

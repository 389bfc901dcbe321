/** What webhooks receive: how a run or a due time ended, in a sentence and as JSON. docs/schedule.md shows the payload. */
import { EXIT, type ExitCode } from '../../shared/domain/exit-codes.ts';
import { showLocal } from '../../shared/domain/local-time.ts';

/** What a target can choose in `notify[].on`: an ended run is `finished` with exit code 0, else `failed`. */
export const NOTICE_KINDS = ['finished', 'failed', 'skipped', 'missed', 'stuck'] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** How a run ended, or a start that never became a run. */
export interface RunResult {
  /** Null when it ended before a run was stored. */
  run: string | null;
  /** Phase of the run; null without one. */
  state: string | null;
  /** Null when a signal ended the process and no run tells more. */
  exitCode: ExitCode | null;
  reason: string | null;
  onTime: boolean | null;
  products: { planned: number; stored: number; gone: number; failed: number } | null;
  /** USD. */
  cost: number | null;
  /** What a person should do; empty when there is nothing. */
  hint: string;
}

/** The body of a webhook. `text` alone is a whole message: chat services show it. */
export interface Notice extends RunResult {
  text: string;
  event: 'ended' | 'skipped' | 'missed' | 'stuck' | 'test';
  /** Nothing that a person would have to look at. */
  good: boolean;
  schedule: string;
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

export interface Named {
  /** Name of the schedule; for a run by hand that of its configuration's. */
  name: string;
  timezone: string;
}

/** When it was due, began and ended; null where that is unknown. */
export interface Times {
  dueAtMs: number | null;
  startedAtMs: number | null;
  endedAtMs: number | null;
}

/** The kind that a target's `on` is compared with; null for a test, which every target gets. */
export function kindOf({ event, good }: Notice): NoticeKind | null {
  if (event === 'test') return null;
  return event === 'ended' ? (good ? 'finished' : 'failed') : event;
}

/** A run has ended, or a due time without a run. */
export function endedNotice(result: RunResult, times: Times, named: Named): Notice {
  const { products, cost, exitCode, reason, hint } = result;
  const good = exitCode === EXIT.complete;
  const how = good ? 'is complete' : `ended with exit code ${exitCode ?? 'unknown'}`;
  const due = times.dueAtMs === null ? '' : ` of ${showLocal(times.dueAtMs, named.timezone)}`;
  const why = !good && reason ? ` (${reason})` : '';
  const rows = products ? `; ${products.stored} of ${products.planned} products stored, ${products.failed} failed` : '';
  const late = result.onTime === false ? ', not on time' : '';
  const price = cost === null ? '' : `, $${cost.toFixed(2)}`;
  const sentence = `${result.run ? `run ${result.run}` : 'the run'}${due} ${how}${why}${rows}${late}${price}.`;
  return { ...notice('ended', sentence, hint, named), ...result, good, ...isoTimes(times) };
}

/** A due time was skipped, or several were missed: a night of sleep is one message. */
export function unstartedNotice(
  event: 'skipped' | 'missed',
  dueAtMs: readonly number[],
  reason: string | null,
  named: Named,
): Notice {
  const shown = dueAtMs.slice(-3).map((ms) => showLocal(ms, named.timezone));
  const times =
    dueAtMs.length > 3 ? `${dueAtMs.length} due times, the last ones ${shown.join(', ')}` : shown.join(', ');
  const hint = event === 'missed' ? 'Start it by hand if the rows are needed: orchestrator run' : '';
  const why = reason ?? (event === 'missed' ? 'nobody was there' : 'a run was at work');
  const due = dueAtMs.map((ms) => new Date(ms).toISOString());
  return { ...notice(event, `${event} ${times}: ${why}.`, hint, named), reason, due };
}

/** A run went on after its time and was asked to leave. */
export function stuckNotice(what: string, run: string | null, dueAtMs: number | null, named: Named): Notice {
  const hint = 'It is taken up again by itself; look at it with: orchestrator logs';
  const sentence = `${what} is long past its deadline and does not end.`;
  const due = dueAtMs === null ? [] : [new Date(dueAtMs).toISOString()];
  return { ...notice('stuck', sentence, hint, named), run, reason: 'stuck', due };
}

/** What `orchestrator notify --test` sends. */
export function testNotice(named: Named): Notice {
  return { ...notice('test', 'this is a test; nothing has happened.', '', named), good: true };
}

function notice(event: Notice['event'], sentence: string, hint: string, { name }: Named): Notice {
  const text = [`crawlfleet ${name}: ${sentence}`, hint].filter(Boolean).join(' ');
  return { text, event, good: false, schedule: name, due: [], startedAt: null, endedAt: null, ...NO_RESULT, hint };
}

function isoTimes({ dueAtMs, startedAtMs, endedAtMs }: Times): Pick<Notice, 'due' | 'startedAt' | 'endedAt'> {
  const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  return { due: dueAtMs === null ? [] : [iso(dueAtMs)!], startedAt: iso(startedAtMs), endedAt: iso(endedAtMs) };
}

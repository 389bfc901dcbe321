/** What is told to people outside: how a due time ended, in a sentence and as JSON. */
import { EXIT } from '../../shared/domain/exit-codes.ts';
import type { RunResult, Slot } from './slots.ts';
import { showLocal } from './timetable.ts';

const NOTICE_EVENTS = ['ended', 'skipped', 'missed', 'stuck'] as const;
type NoticeEvent = (typeof NOTICE_EVENTS)[number];

/** The body of a webhook. `text` alone is a whole message: chat services show it. */
export interface Notice extends RunResult {
  text: string;
  event: NoticeEvent;
  /** Nothing that a person would have to look at. */
  good: boolean;
  schedule: string;
  /** ISO times; more than one only for `missed`. */
  due: string[];
  startedAt: string | null;
  endedAt: string | null;
}

const NO_RESULT: RunResult = {
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
  /** Name of the schedule. */
  name: string;
  timezone: string;
}

/** Of one due time, or of several that were missed together. */
export function noticeOf(slots: readonly Slot[], { name, timezone }: Named): Notice {
  const last = slots.at(-1)!;
  const result = last.result ?? { ...NO_RESULT, reason: last.reason };
  const event = last.state === 'missed' ? 'missed' : last.state === 'skipped' ? 'skipped' : 'ended';
  const good = event === 'ended' && result.exitCode === EXIT.complete;
  const shown = slots.slice(-3).map((s) => showLocal(s.dueAtMs, timezone));
  const times = slots.length > 3 ? `${slots.length} due times, the last ones ${shown.join(', ')}` : shown.join(', ');
  const hint = event === 'missed' ? MISSED_HINT : result.hint;
  return {
    ...result,
    hint,
    text: [`crawlfleet ${name}: ${sentence(event, times, result)}`, hint].filter(Boolean).join(' '),
    event,
    good,
    schedule: name,
    due: slots.map((s) => new Date(s.dueAtMs).toISOString()),
    startedAt: isoOrNull(last.startedAtMs),
    endedAt: isoOrNull(last.endedAtMs),
  };
}

/** A run that went on after its time and was told to leave. */
export function stuckNotice(what: string, dueAtMs: number | null, run: string | null, { name }: Named): Notice {
  const hint = 'It is taken up again by itself; look at it with: orchestrator logs';
  return {
    ...NO_RESULT,
    run,
    hint,
    reason: 'stuck',
    text: `crawlfleet ${name}: ${what} is long past its deadline and does not end. ${hint}`,
    event: 'stuck',
    good: false,
    schedule: name,
    due: dueAtMs === null ? [] : [new Date(dueAtMs).toISOString()],
    startedAt: null,
    endedAt: null,
  };
}

const MISSED_HINT = 'Start it by hand if the rows are needed: orchestrator run';

function sentence(event: NoticeEvent, times: string, result: RunResult): string {
  const { products, cost, exitCode } = result;
  if (event === 'missed') return `missed ${times}: ${result.reason ?? 'nobody was there'}.`;
  if (event === 'skipped') return `skipped ${times}: ${result.reason ?? 'a run was at work'}.`;
  const how = exitCode === EXIT.complete ? 'is complete' : `ended with exit code ${exitCode ?? 'unknown'}`;
  const why = exitCode !== EXIT.complete && result.reason ? ` (${result.reason})` : '';
  const rows = products ? `; ${products.stored} of ${products.planned} products stored, ${products.failed} failed` : '';
  const late = result.onTime === false ? ', not on time' : '';
  const price = cost === null ? '' : `, $${cost.toFixed(2)}`;
  return `${result.run ? `run ${result.run}` : 'the run'} of ${times} ${how}${why}${rows}${late}${price}.`;
}

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

/**
 * What targets receive: what a run or a due time has come to, in a sentence and as JSON. docs/notify.md shows the
 * payload.
 */
import { EXIT, exitWords } from '../../../shared/domain/exit-codes.ts';
import { showLocal } from '../../../shared/domain/local-time.ts';
import { shellWord } from '../../../shared/domain/shell-word.ts';
import type { DecidedDueTime, StuckRun } from '../../core/run-events.ts';
import {
  endSentence,
  headline,
  isGood,
  NO_RESULT,
  type RunResult,
  summaryOf,
  type Times,
} from '../../core/read/run-result.ts';

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

/** The body of a webhook. `text` alone is a whole message: chat services show it. */
export interface Notice extends RunResult, Omit<Sender, 'name' | 'configName' | 'pageUrl'> {
  text: string;
  /** What happened in a sentence, the first of `text`. */
  summary: string;
  /** The exit code in words; null without one. */
  exit: string | null;
  /** What shows more, to be typed in `folder` on `mainServer`. */
  command: string;
  /** The page of the run, or that of all runs; null without `server.page_url`. */
  link: string | null;
  event: 'ended' | 'alarm' | 'skipped' | 'missed' | 'stuck' | 'test';
  /** A target gets it when it has chosen one of these; a test goes to every target. */
  kinds: readonly NoticeKind[];
  /** Nothing that a person would have to look at. */
  good: boolean;
  schedule: string;
  /** ISO times; empty for a run that no due time started, more than one only for `missed`. */
  due: string[];
  startedAt: string | null;
  endedAt: string | null;
}

/** Whom a notice comes from. */
export interface Sender {
  /** Name of the schedule; for a run by hand that of its configuration's. */
  name: string;
  timezone: string;
  /** A target gets notices of dry runs only where it has asked for them; their `text` begins with `DRY-RUN`. */
  dryRun: boolean;
  /** The hosts of the shop; none: `site.hosts: any`. */
  hosts: readonly string[];
  /** The result table. */
  table: string;
  /** Value of the tag `crawlfleet:owner`. */
  owner: string;
  /** Host name of its machine. */
  mainServer: string;
  /** The folder of the configuration, and the file's name in it. */
  folder: string;
  configName: string;
  /** `server.page_url`. */
  pageUrl: string | null;
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
  const { run, exitCode, hint } = result;
  const sentence = endSentence(result, times, sender.timezone);
  const said = notice('ended', { sentence, hint, run, command: dryOr('doctor', sender) }, sender);
  const exit = (exitCode !== null && exitWords(exitCode)) || null;
  return { ...said, kinds: kindsOfEnd(result), ...result, exit, good: isGood(result), ...isoTimes(times) };
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
  const command = event === 'missed' ? dryOr('run', sender) : 'status';
  const hint = event === 'missed' ? `Start it by hand if the rows are needed: orchestrator ${command}` : '';
  const why = reason ?? (event === 'missed' ? 'no daemon was running' : 'a run was at work');
  const due = dueAtMs.map((ms) => new Date(ms).toISOString());
  const said = { sentence: `${event} ${times}: ${why}.`, hint, run: null, command };
  return { ...notice(event, said, sender), reason, due };
}

/** The notice of a due time that is decided, or of several that were missed together. */
export function dueNotice(rows: readonly DecidedDueTime[], sender: Sender): Notice {
  const { state, result, reason, ...times } = rows.at(-1)!;
  if (state === 'done') return endedNotice(result ?? { ...NO_RESULT, reason }, times, sender);
  const due = rows.map((row) => row.dueAtMs);
  return unstartedNotice(state === 'missed' ? state : 'skipped', due, reason, sender);
}

export function stuckNotice({ runId, dueAtMs, sentence, hint }: StuckRun, sender: Sender): Notice {
  const due = dueAtMs === null ? [] : [new Date(dueAtMs).toISOString()];
  return { ...notice('stuck', { sentence: `${sentence}.`, hint, run: runId }, sender), reason: 'stuck', due };
}

/** Nothing that a dry run says to type may reach the account. */
const dryOr = (command: string, { dryRun }: Sender): string => (dryRun ? `${command} --dry-run` : command);

/** Its reasons are those so far. */
interface Raised extends Pick<RunResult, 'reasons' | 'moreReasons'> {
  alarms: readonly { kind: AlarmKind; text: string }[];
}

/** What a run at work has run into: what is new, and what has come again since the last notice. */
export function alarmNotice(run: string, { alarms, ...reasons }: Raised, sender: Sender): Notice {
  const sentence = `run ${run}: ${alarms.map(({ text }) => text).join('; ')}.`;
  const hint = `Look at it with: orchestrator explain ${run}`;
  const kinds = alarms.map(({ kind }) => kind);
  return { ...notice('alarm', { sentence, hint, run }, sender), kinds, ...reasons };
}

/** What `orchestrator notify --test` sends. */
export function testNotice(sender: Sender): Notice {
  const sentence = 'this is a test; nothing has happened.';
  return { ...notice('test', { sentence, hint: '', run: null }, sender), good: true };
}

interface Said {
  sentence: string;
  hint: string;
  run: string | null;
  /** What shows more where there is no run. */
  command?: string;
}

function notice(event: Notice['event'], said: Said, { name, configName, pageUrl, ...sender }: Sender): Notice {
  const { sentence, hint, run } = said;
  const summary = summaryOf({ name, dryRun: sender.dryRun }, sentence);
  const config = configName === 'fleet.yaml' ? '' : ` --config ${shellWord(configName)}`;
  const command = `orchestrator ${run === null ? (said.command ?? 'status') : `explain ${run}`}${config}`;
  const link = pageUrl && pageUrl.replace(/\/$/, '') + (run === null ? '/' : `/runs/${run}`);
  const what = [...sender.hosts, `table ${sender.table}`, `owner ${sender.owner}`].join(', ');
  const where = `On ${sender.mainServer}: ${shellLine({ ...sender, command })}`;
  return {
    text: [`${headline({ summary, hint })}\n${what}.`, link, where].filter(Boolean).join(' '),
    summary,
    event,
    kinds: event === 'missed' || event === 'skipped' || event === 'stuck' ? [event] : [],
    good: false,
    schedule: name,
    ...sender,
    command,
    link,
    due: [],
    startedAt: null,
    endedAt: null,
    exit: null,
    ...NO_RESULT,
    hint,
    run,
  };
}

/** The command in its folder. */
export const shellLine = ({ folder, command }: Pick<Notice, 'folder' | 'command'>): string =>
  `cd ${shellWord(folder)} && ${command}`;

function isoTimes({ dueAtMs, startedAtMs, endedAtMs }: Times): Pick<Notice, 'due' | 'startedAt' | 'endedAt'> {
  const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  const due = iso(dueAtMs);
  return { due: due === null ? [] : [due], startedAt: iso(startedAtMs), endedAt: iso(endedAtMs) };
}

/** What a daemon does next: a pure function of the record, the processes and the clock. */
import { backoffMs } from '../../../shared/domain/backoff.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { showLocal } from '../../../shared/domain/local-time.ts';
import type { ProcessExit } from '../../cli/processes.ts';
import type { StuckRun } from '../../core/run-events.ts';
import { NO_RESULT, type RunResult } from '../../core/read/run-result.ts';
import { type DueState, type DueTime, isOpen, type StoredDueTime } from './due-times.ts';
import type { Timetable } from '../../core/config/timetable.ts';

const MINUTE_MS = 60_000;
/** An owner that is frozen, or on a host that died, loses a row that it has not written for this long. */
const GONE_MS = 5 * MINUTE_MS;
/** A run that has not begun after this will not: planning takes seconds, ending an old run first takes minutes. */
const PREPARE_MS = 60 * MINUTE_MS;
/** The most missed due times that are written one by one. */
const MAX_MISSED = 100;
/** Starts of a process for one run, or for a due time that has none yet. */
const MAX_STARTS = 8;
const START_PAUSE = { firstMs: 10_000, maxMs: 300_000 };

export interface Settings {
  /** This daemon, as `host:pid:start`. */
  me: string;
  timetable: Timetable;
  ifRunning: 'skip' | 'queue';
  /** A missed due time is made up for when it is no older; 0 never does. */
  catchUpMs: number;
  /** The time after its deadline by which no instance of a run is left. */
  graceMs: number;
  processes: {
    /** The state of a process by its name; `elsewhere`: it is of another host. */
    stateOf: (name: string) => 'alive' | 'dead' | 'elsewhere';
    /** How a process has ended that this daemon started. */
    exitOf: (name: string) => ProcessExit | undefined;
  };
}

/** What a daemon goes by: its settings, the record, and what it sees of processes and the database. */
export interface View extends Settings {
  nowMs: number;
  monotonicMs: number;
  /** Oldest first. */
  rows: readonly StoredDueTime[];
  /** The living main server on the database. */
  busy: { owner: string; runId: string | null } | null;
  /** An unfinished run of this schedule's table that no due time has started. */
  leftRunId: string | null;
  /** How the runs of started rows have ended; undefined for one that was never stored. */
  ends: ReadonlyMap<string, RunResult | 'unfinished' | undefined>;
  /** Starts of processes by this daemon, the last one in monotonic ms; by run, or by due time where there is no run. */
  starts: ReadonlyMap<string | number, { count: number; atMs: number; runner: string }>;
  /** When a process was asked to leave; Infinity once it was killed. */
  askedAtMs: ReadonlyMap<string, number>;
  /** The database did not answer at the last look. */
  wasAway: boolean;
  /** A signal has ended the daemon: it starts nothing any more. */
  isLeaving: boolean;
}

/** `say` is a line of the log, with `!` before what a person should see; `stuck` is for the webhooks. */
export type Action = { say?: string | undefined; stuck?: StuckRun } & (
  | { do: 'write'; dueAtMs: number; seen: StoredDueTime | null; change: Partial<DueTime> }
  | { do: 'stop'; runner: string; signal: 'SIGTERM' | 'SIGKILL' }
  | { do: 'forget'; dueAtMs: number; state: DueState }
  | { do: 'resume'; runId: string }
  | { do: 'give-up'; runId: string }
);

/** What to do next; empty when there is nothing to do; at most one action starts a process. */
export function decide(view: View): Action[] {
  const { rows } = view;
  const adopted = rows.map((row) => adopt(row, view)).find((write) => write !== null);
  if (adopted) return [adopted];
  const expired = expire(view);
  if (expired.length > 0 || view.isLeaving) return expired;
  const upkeep = [...keep(view), ...stopStuck(view), ...lookAhead(view)];
  return upkeep.length > 0 ? upkeep : (resumeLeft(view) ?? [...settle(view), ...dequeue(view)]);
}

/** A write of this daemon to a row that it has seen, or, by its time, to one that is not there yet. */
function write({ me }: View, row: StoredDueTime | number, change: Partial<DueTime>, say?: string): Action {
  const place = typeof row === 'number' ? { dueAtMs: row, seen: null } : { dueAtMs: row.dueAtMs, seen: row };
  return { do: 'write', ...place, change: { owner: me, ...change }, say };
}

/** Says every minute that open rows still have their owner. */
const keep = (view: View): Action[] =>
  view.rows
    .filter((row) => isOpen(row) && row.owner === view.me && row.idleMs >= MINUTE_MS)
    .map((row) => write(view, row, {}));

/** Keeps the row of the next due time, and drops those that a wrong clock or another expression has left. */
function lookAhead(view: View): Action[] {
  const { rows, nowMs, timetable } = view;
  const spec = `${timetable.cron} ${timetable.timezone}`;
  const next = timetable.next(nowMs);
  const isTooEarly = ({ state, dueAtMs }: DueTime): boolean =>
    (state === 'missed' || state === 'skipped') && dueAtMs > nowMs + MINUTE_MS;
  const isThere = rows.some((row) => row.dueAtMs === next && !isTooEarly(row));
  const isStale = ({ state, dueAtMs, reason }: DueTime): boolean =>
    state === 'next' && (reason !== spec || (isThere && dueAtMs > nowMs && dueAtMs !== next));
  const stale = rows.filter((row) => isTooEarly(row) || isStale(row));
  if (stale.length > 0) return stale.map(({ dueAtMs, state }) => ({ do: 'forget', dueAtMs, state }));
  return next === null || isThere ? [] : [write(view, next, { state: 'next', reason: spec })];
}

/** A started row whose process has ended, or that has lost its daemon. */
function adopt(row: StoredDueTime, view: View): Action | null {
  const { dueAtMs, state, owner, runner } = row;
  if (state !== 'started' || isAnothers(row, view)) return null;
  if (isAlive(row, view)) {
    const say = `${iso(dueAtMs)}: its run is still at work (${runner}); it is watched again`;
    return owner === view.me || view.isLeaving ? null : write(view, row, {}, say);
  }
  const end = row.runId === null ? undefined : view.ends.get(row.runId);
  // The main server of the run has announced it.
  if (end !== undefined && end !== 'unfinished') return finish(view, row, end, true);
  const runId = end ? row.runId : null;
  const child = view.starts.get(runId ?? dueAtMs)?.runner;
  if (runner === null && owner === view.me && child) return write(view, row, { runner: child });
  const exit = view.processes.exitOf(runner ?? '');
  if (runId !== null || !exit || exit.code === EXIT.interrupted || typeof exit.code === 'string')
    return startAgain(row, runId, view);
  const { code, hint } = exit;
  // The run lock, or an unfinished run.
  if (code === EXIT.locked) {
    const state = view.ifRunning === 'queue' ? 'queued' : 'skipped';
    return write(view, row, { ...NOT_STARTED, state, reason: exit.reason });
  }
  const reason = exit.reason ?? (code === EXIT.complete ? null : `ended with ${code} before a run began`);
  return finish(view, row, { ...NO_RESULT, exitCode: code, reason, hint });
}

/** Resumes the run of a started row; one without a run waits for another start while it is young. */
function startAgain(row: StoredDueTime, runId: string | null, view: View): Action | null {
  const { dueAtMs, owner, runner } = row;
  // Resumed by hand, or by a process that cannot be seen from here.
  if (view.busy) return null;
  if (startsOf(view, runId ?? dueAtMs).count >= MAX_STARTS) {
    const hint = 'Look at .crawlfleet/schedule beside the configuration.';
    if (runId === null)
      return finish(view, row, { ...NO_RESULT, reason: 'its process was ended again and again', hint });
    const unfinished = { run: runId, exitCode: EXIT.internal, reason: 'unfinished', hint };
    return { ...finish(view, row, { ...NO_RESULT, ...unfinished }), say: `! ${describeGivenUp(runId)}` };
  }
  if (runId !== null) {
    // Handed over to the next daemon.
    if (view.isLeaving) return owner === null ? null : write(view, row, { owner: null });
    return isRested(view, runId) ? write(view, row, start(view), `run ${runId} is unfinished: it is taken up`) : null;
  }
  const reason = runner === null ? 'its process never began' : 'its process died before a run began';
  return write(view, row, { ...NOT_STARTED, owner: null, state: 'queued', reason });
}

/** `told`: the main server of its run has announced the end. */
function finish(view: View, row: StoredDueTime, result: RunResult, told = false): Action {
  const change = { state: 'done', result, reason: result.reason, endedAtMs: view.nowMs, told } as const;
  return write(view, row, change, describeEnd(row, result));
}

/** What goes on long after its deadline is asked to leave, a minute later killed, and taken up again like any other. */
function stopStuck(view: View): Action[] {
  return view.rows.flatMap((row): Action[] => {
    const { dueAtMs, runner, runId, deadlineAtMs } = row;
    if (runner === null || row.owner !== view.me || !isAlive(row, view)) return [];
    const sinceMs = row.startedAtMs ?? view.nowMs;
    const marginMs = Math.min(30 * MINUTE_MS, Math.max(2 * MINUTE_MS, ((deadlineAtMs ?? 0) - sinceMs) / 8));
    // A process that took its run up after the deadline gets the grace and a margin, too.
    const limitMs = deadlineAtMs ? Math.max(deadlineAtMs, sinceMs) + view.graceMs + marginMs : sinceMs + PREPARE_MS;
    const askedMs = view.askedAtMs.get(runner);
    if (view.nowMs <= limitMs || (askedMs !== undefined && view.nowMs - askedMs < MINUTE_MS)) return [];
    const name = runId === null ? `the run of ${iso(dueAtMs)}` : `run ${runId}`;
    if (askedMs !== undefined)
      return [{ do: 'stop', runner, signal: 'SIGKILL', say: `! ${name} has not left within a minute: it is killed` }];
    const sentence = `${name} is long past its deadline and does not end`;
    const hint = 'The schedule resumes it; look at it with: orchestrator logs';
    const stuck = { runId, dueAtMs, sentence, hint };
    return [{ do: 'stop', runner, signal: 'SIGTERM', say: `! ${sentence}: it is asked to leave`, stuck }];
  });
}

/** Resumes the run that no due time has started, or gives it up; null when there is none. */
function resumeLeft(view: View): Action[] | null {
  const { leftRunId: runId, busy, rows } = view;
  if (runId === null || busy || rows.some((row) => isAtWork(row, view)) || !isRested(view, runId)) return null;
  const { count } = startsOf(view, runId);
  if (count < MAX_STARTS) return [{ do: 'resume', runId, say: `run ${runId} is unfinished: it is taken up` }];
  // One that was given up counts one start more.
  if (count > MAX_STARTS) return null;
  const sentence = describeGivenUp(runId);
  const hint = `See why with: orchestrator logs ${runId}; then orchestrator resume ${runId}`;
  return [{ do: 'give-up', runId, say: `! ${sentence}`, stuck: { runId, dueAtMs: null, sentence, hint } }];
}

/** Due times that have come: the newest is queued or skipped; the others, and one that is too old, are missed. */
function settle(view: View): Action[] {
  const { rows, nowMs, timetable } = view;
  const come = rows.filter((row) => row.state === 'next' && row.dueAtMs <= nowMs).map((row) => row.dueAtMs);
  const [first] = come;
  if (first === undefined) return [];
  const rowAt = new Map(rows.map((row) => [row.dueAtMs, row]));
  const times = [...new Set([...come, ...timetable.between(first, nowMs, MAX_MISSED)])]
    .filter((ms) => (rowAt.get(ms)?.state ?? 'next') === 'next')
    .sort((a, b) => a - b);
  // Of several the newest alone: two crawls in a row for one night's delay would ask the site twice.
  const newest = times.at(-1);
  const due = newest !== undefined && isYoung(newest, view) ? newest : null;
  if (due !== null) times.pop();
  const why = view.wasAway ? AWAY : MISSED;
  const alarm = `! missed ${times.length} due times, the last one ${show(times.at(-1) ?? 0, view)}: ${why}`;
  const missed = times.map((ms, i) =>
    write(view, rowAt.get(ms) ?? ms, { state: 'missed', reason: why }, i === times.length - 1 ? alarm : undefined),
  );
  if (due === null) return missed;
  const row = rowAt.get(due) ?? due;
  const obstacle = rows.some(({ state }) => state === 'queued')
    ? { reason: 'another due time waits already', waits: false }
    : obstacleOf(view);
  if (obstacle === null) return [...missed, write(view, row, { state: 'queued', reason: null })];
  const { waits, reason } = obstacle;
  const say = `${show(due, view)} is due and ${waits ? 'waits' : 'is skipped'}: ${reason}`;
  return [...missed, write(view, row, { state: waits ? 'queued' : 'skipped', reason }, say)];
}

/** A queued due time waits as long as the daemon that queued it is there, else only while it is young. */
const expire = (view: View): Action[] =>
  view.rows
    .filter((row) => row.state === 'queued' && row.owner !== view.me && !isAnothers(row, view))
    .filter(({ dueAtMs }) => !isYoung(dueAtMs, view))
    .map((row) => {
      const reason = `${row.reason ?? 'it was not started'}, and it is too old by now`;
      return write(view, row, { state: 'missed', reason }, `! missed ${iso(row.dueAtMs)}: ${reason}`);
    });

/** Starts a queued due time when nothing is in its way. */
function dequeue(view: View): Action[] {
  const row = view.rows.find((r) => r.state === 'queued' && !isAnothers(r, view));
  if (!row || obstacleOf(view) || !isRested(view, row.dueAtMs)) return [];
  const { dueAtMs } = row;
  const lateMs = view.nowMs - dueAtMs;
  const late = lateMs > MINUTE_MS ? `${Math.round(lateMs / MINUTE_MS)} min late` : null;
  const say = `${show(dueAtMs, view)} is due${late ? `, ${late}` : ''}: its run is started`;
  return [write(view, row, { ...start(view), reason: late }, say)];
}

/** What a due time would meet. It waits for a run whose deadline is past: that is about to end. */
function obstacleOf(view: View): { reason: string; waits: boolean } | null {
  const { busy, nowMs } = view;
  const row = view.rows.find((r) => isAtWork(r, view));
  const waits = view.ifRunning === 'queue' || (row?.deadlineAtMs ?? Infinity) < nowMs;
  if (row) return { reason: `the run of ${iso(row.dueAtMs)} is at work`, waits };
  return busy && { reason: `${busy.owner} works on ${busy.runId ?? 'a new run'}`, waits };
}

/** A living process of this host carries the row out, or another daemon that is alive answers for it. */
const isAtWork = (row: StoredDueTime, view: View): boolean =>
  row.state === 'started' && (isAnothers(row, view) || isAlive(row, view));

const isAlive = ({ state, runner }: StoredDueTime, { processes }: View): boolean =>
  state === 'started' && runner !== null && processes.stateOf(runner) === 'alive';

const isAnothers = ({ owner, idleMs }: StoredDueTime, { me, processes }: View): boolean =>
  owner !== null && owner !== me && idleMs < GONE_MS && processes.stateOf(owner) !== 'dead';

/** A daemon on a busy machine may look seconds late: up to a minute counts as on time. */
const isYoung = (dueAtMs: number, { nowMs, catchUpMs }: View): boolean =>
  nowMs - dueAtMs <= Math.max(MINUTE_MS, catchUpMs);

const startsOf = ({ starts }: View, of: string | number) => starts.get(of) ?? { count: 0, atMs: -Infinity };

const isRested = (view: View, of: string | number): boolean =>
  view.monotonicMs - startsOf(view, of).atMs >= backoffMs(startsOf(view, of).count - 1, START_PAUSE);

export const iso = (ms: number): string => new Date(ms).toISOString();
const show = (ms: number, { timetable }: View): string => showLocal(ms, timetable.timezone);

const describeEnd = ({ dueAtMs }: DueTime, { run, exitCode, reason }: RunResult): string =>
  `${iso(dueAtMs)}: ${run ? `run ${run}` : 'no run'}, exit code ${exitCode ?? 'unknown'}${reason ? ` (${reason})` : ''}`;

const describeGivenUp = (runId: string): string =>
  `run ${runId} could not be resumed ${MAX_STARTS} times; the schedule goes on without it`;

const start = ({ nowMs }: View) => ({ state: 'started', runner: null, startedAtMs: nowMs }) as const;
const NOT_STARTED = { runner: null, startedAtMs: null, runId: null, deadlineAtMs: null } as const;
const MISSED = 'no daemon was running, or the machine slept';
const AWAY = 'the database did not answer when it was due';

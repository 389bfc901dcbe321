/** What a daemon does next: a pure function of the record, the runs, the processes and the clock. */
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { showLocal } from '../../shared/domain/local-time.ts';
import type { RunResult } from '../notify/notice.ts';
import { NO_RESULT } from '../notify/notice.ts';
import type { DueState, DueTime, RunView, SeenRuns, StoredDueTime } from './due-times.ts';
import { isOpen } from './due-times.ts';
import type { Timetable } from './timetable.ts';

const MINUTE_MS = 60_000;
/** An owner that is frozen, or on a host that died, loses a row that it has not written for this long. */
const GONE_MS = 5 * MINUTE_MS;
/** A run that has not begun after this will not: planning takes seconds, ending an old run first takes minutes. */
const PREPARE_MS = 60 * MINUTE_MS;
/** More missed due times than this are not written one by one. */
const MAX_MISSED = 100;
/** Starts of a process for one run, or for a due time that has none yet. */
export const MAX_STARTS = 8;

export interface Settings {
  /** This daemon, as `host:pid:start`. */
  me: string;
  timetable: Timetable;
  ifRunning: 'skip' | 'queue';
  /** A missed due time is made up for when it is no older; 0 never does. */
  catchUpMs: number;
}

export interface View extends SeenRuns {
  nowMs: number;
  /** Oldest first. */
  rows: readonly StoredDueTime[];
  /** The runs of started rows. */
  runs: ReadonlyMap<string, RunView>;
  /** Of a process name; `elsewhere`: it is of another host. */
  stateOf: (name: string) => 'alive' | 'dead' | 'elsewhere';
  /** Processes that this daemon has started for a run, or for a due time in milliseconds; `rested`: not just now. */
  starts: (of: string | number) => { count: number; rested: boolean };
  /** When a process was asked to leave; Infinity once it was killed. */
  askedAtMs: ReadonlyMap<string, number>;
  /** The database did not answer at the last look. */
  wasAway: boolean;
  /** A signal has ended the daemon: it starts nothing any more. */
  isLeaving: boolean;
}

interface Write {
  do: 'write';
  dueAtMs: number;
  /** Null inserts a row. */
  from: Partial<DueTime> | null;
  change: Partial<DueTime>;
  /** When the write was ours: carry the due time out. */
  start?: true;
  say?: string;
  /** Said so that a person sees it. */
  alarm?: string;
}

/** For a process that goes on long after its end; `name` is its run's, for people. */
export type Stop = { do: 'stop'; runner: string; signal: 'SIGTERM' | 'SIGKILL'; name: string } & Pick<
  DueTime,
  'dueAtMs' | 'runId'
>;

export type Action =
  Write | Stop | { do: 'forget'; dueAtMs: number; state: DueState } | { do: 'resume'; runId: string; say: string };

/** Empty when there is nothing to do; at most one action starts a process. */
export function decide(view: View, settings: Settings): Action[] {
  const takenUp = view.rows.map((row) => takeUp(row, view, settings)).find((write) => write !== null);
  if (takenUp) return [takenUp];
  if (view.isLeaving) return [];
  const upkeep = [...keep(view, settings), ...stopStuck(view, settings), ...lookAhead(view, settings)];
  if (upkeep.length > 0) return upkeep;
  const mayResume = (run: RunView): boolean => run.ours && !view.runs.has(run.id) && mayStart(run.id, view);
  const left = view.busy || atWork(view, settings) ? undefined : view.unfinished.find(mayResume);
  if (left) return [{ do: 'resume', runId: left.id, say: unfinished(left) }];
  return [...settle(view, settings), ...dequeue(view, settings)];
}

/** Says every minute that open rows still have their owner. */
const keep = ({ rows }: View, { me }: Settings): Write[] =>
  rows
    .filter((row) => isOpen(row) && row.owner === me && row.idleMs >= MINUTE_MS)
    .map(({ dueAtMs, state }) => ({ do: 'write', dueAtMs, from: { state, owner: me }, change: {} }));

/** Keeps the row of the next due time, and drops those that a wrong clock or another expression has left. */
function lookAhead({ rows, nowMs }: View, { me, timetable }: Settings): Action[] {
  const spec = `${timetable.cron} ${timetable.timezone}`;
  const next = timetable.next(nowMs);
  const isTooEarly = ({ state, dueAtMs }: DueTime): boolean =>
    (state === 'missed' || state === 'skipped') && dueAtMs > nowMs + MINUTE_MS;
  const isThere = rows.some((row) => row.dueAtMs === next && !isTooEarly(row));
  const isStale = ({ state, dueAtMs, reason }: DueTime): boolean =>
    state === 'next' && (reason !== spec || (isThere && dueAtMs > nowMs && dueAtMs !== next));
  const stale = rows.filter((row) => isTooEarly(row) || isStale(row));
  if (stale.length > 0) return stale.map(({ dueAtMs, state }) => ({ do: 'forget', dueAtMs, state }));
  if (next === null || isThere) return [];
  return [{ do: 'write', dueAtMs: next, from: null, change: { state: 'next', reason: spec, owner: me } }];
}

/** A started row that has lost its process or its daemon. */
function takeUp(row: StoredDueTime, view: View, settings: Settings): Write | null {
  const { dueAtMs, state, owner, runner, runId } = row;
  if (state !== 'started' || isAnothers(row, view, settings)) return null;
  const write = (change: Partial<DueTime>, more: Partial<Write> = {}): Write => {
    return { do: 'write', dueAtMs, from: { state, owner, runner }, change: { owner: settings.me, ...change }, ...more };
  };
  const life = runner === null ? 'dead' : view.stateOf(runner);
  const say = `${iso(dueAtMs)}: its run is still at work (${runner}); it is watched again`;
  if (life === 'alive') return owner === settings.me || view.isLeaving ? null : write({}, { say });
  // The lock of a living process of another machine says more than its name.
  if (life === 'elsewhere' && view.busy) return null;
  const run = runId === null ? undefined : view.runs.get(runId);
  // Its own process has announced it.
  if (run?.result) return write({ ...ended(run.result, view), told: true });
  const { count, rested } = view.starts(run?.id ?? dueAtMs);
  if (run && count < MAX_STARTS) {
    // Handed over to whichever daemon comes next.
    if (view.isLeaving) return owner === null ? null : write({ owner: null });
    return rested ? write({ runner: null, startedAtMs: null }, { start: true, say: unfinished(run) }) : null;
  }
  if (run)
    return write(ended({ ...NO_RESULT, run: run.id, exitCode: EXIT.internal, reason: 'unfinished', hint: LOOK }, view));
  if (count >= MAX_STARTS) return write(withoutRun(null, view));
  const reason = runner === null ? 'its process never began' : 'its process died before a run began';
  if (isYoung(dueAtMs, view, settings))
    return write({ state: 'queued', runner: null, runId: null, startedAtMs: null, reason });
  const alarm = `missed ${iso(dueAtMs)}: ${reason}, and it is too old by now`;
  return write({ state: 'missed', reason }, { alarm });
}

/** What goes on long after its deadline is asked to leave, a minute later killed, and taken up again like any other. */
function stopStuck(view: View, { me }: Settings): Stop[] {
  const { nowMs, askedAtMs } = view;
  return view.rows.flatMap((row): Stop[] => {
    const { dueAtMs, runner, runId } = row;
    if (row.owner !== me || !isRunning(row, view)) return [];
    const run = view.runs.get(runId ?? '');
    const askedMs = askedAtMs.get(runner!);
    const isPatient = askedMs !== undefined && nowMs - askedMs < MINUTE_MS;
    if (isPatient || nowMs <= limitOf(run, row.startedAtMs ?? nowMs)) return [];
    const name = run ? `run ${run.id}` : `the run of ${iso(dueAtMs)}`;
    const signal = askedMs === undefined ? 'SIGTERM' : 'SIGKILL';
    return [{ do: 'stop', runner: runner!, signal, name, dueAtMs, runId }];
  });
}

/** When a process is stuck. One that took its run up after the deadline gets the grace and a margin, too. */
function limitOf(run: RunView | undefined, sinceMs: number): number {
  if (!run) return sinceMs + PREPARE_MS;
  const marginMs = Math.min(30 * MINUTE_MS, Math.max(2 * MINUTE_MS, (run.deadlineAtMs - run.startedAtMs) / 8));
  return Math.max(run.deadlineAtMs, sinceMs) + run.graceMs + marginMs;
}

/** Due times that have come: the newest is started, queued or skipped; the others, and one that is too old, are missed. */
function settle(view: View, settings: Settings): Write[] {
  const { rows, nowMs } = view;
  const { me, timetable } = settings;
  const come = rows.filter((row) => row.state === 'next' && row.dueAtMs <= nowMs).map((row) => row.dueAtMs);
  if (come.length === 0) return [];
  const stateAt = new Map(rows.map((row) => [row.dueAtMs, row.state]));
  const times = [...new Set([...come, ...timetable.between(come[0]!, nowMs, MAX_MISSED)])]
    .filter((ms) => (stateAt.get(ms) ?? 'next') === 'next')
    .sort((a, b) => a - b);
  const show = (ms: number): string => showLocal(ms, timetable.timezone);
  const write = (dueAtMs: number, state: DueState, reason: string | null, more: Partial<Write> = {}): Write => {
    const from = stateAt.has(dueAtMs) ? ({ state: 'next' } as const) : null;
    return { do: 'write', dueAtMs, from, change: { state, reason, owner: me }, ...more };
  };
  // Of several the newest alone: two crawls in a row for one night's delay would ask the site twice.
  const due = isYoung(times.at(-1)!, view, settings) ? times.pop()! : null;
  const why = view.wasAway ? AWAY : MISSED;
  const writes = times.map((ms) => write(ms, 'missed', why));
  const last = writes.at(-1);
  if (last) last.alarm = `missed ${times.length} due times, the last one ${show(last.dueAtMs)}: ${why}`;
  if (due === null) return writes;
  const obstacle = obstacleOf(view, settings);
  if (obstacle === null) {
    const late = isYoung(due, view, { ...settings, catchUpMs: 0 })
      ? null
      : `${Math.round((nowMs - due) / 60_000)} min late`;
    const say = `${show(due)} is due${late ? `, ${late}` : ''}: its run is started`;
    return [...writes, write(due, 'started', late, { start: true, say })];
  }
  const waiting = rows.some((row) => row.state === 'queued');
  const waits = (settings.ifRunning === 'queue' || obstacle.passing) && !waiting;
  const reason = waiting ? 'another due time waits already' : obstacle.reason;
  const say = `${show(due)} is due and ${waits ? 'waits' : 'is skipped'}: ${reason}`;
  return [...writes, write(due, waits ? 'queued' : 'skipped', reason, { say })];
}

/** A waiting due time whose turn it is; one whose daemon is gone only while it is young. */
function dequeue(view: View, settings: Settings): Write[] {
  const { me, timetable } = settings;
  const row = view.rows.find((r) => r.state === 'queued' && !isAnothers(r, view, settings));
  if (!row) return [];
  const { dueAtMs, state, owner } = row;
  const write = { do: 'write', dueAtMs, from: { state, owner } } as const;
  if (owner !== me && !isYoung(dueAtMs, view, settings)) {
    const alarm = `missed ${iso(dueAtMs)}: ${TOO_OLD}`;
    return [{ ...write, change: { state: 'missed', reason: TOO_OLD, owner: me }, alarm }];
  }
  if (obstacleOf(view, settings) || !mayStart(dueAtMs, view)) return [];
  const say = `${showLocal(dueAtMs, timetable.timezone)} has waited: its run is started`;
  return [{ ...write, change: { state: 'started', owner: me }, start: true, say }];
}

/** Why a due time cannot be started; `passing`: the end of a run whose deadline is past is no reason to skip. */
function obstacleOf(view: View, settings: Settings): { reason: string; passing: boolean } | null {
  const { busy, nowMs, unfinished: all } = view;
  const row = atWork(view, settings);
  const run = row ? view.runs.get(row.runId ?? '') : all.find((r) => r.id === busy?.runId);
  const passing = run !== undefined && run.deadlineAtMs < nowMs;
  if (row) return { reason: `the run of ${iso(row.dueAtMs)} is at work`, passing };
  if (busy) return { reason: `${busy.owner} works on ${busy.runId ?? 'a new run'}`, passing };
  // One whose deadline is past is ended by the next run itself; one that is given up must not block the schedule.
  const left = all.find((r) => r.deadlineAtMs >= nowMs && view.starts(r.id).count < MAX_STARTS);
  const whose = left?.ours ? '' : ' of another schedule';
  return left ? { reason: `run ${left.id}${whose} is unfinished and its deadline is ahead`, passing } : null;
}

/** The started row that a living process, or a living daemon, sees to. */
const atWork = (view: View, settings: Settings): StoredDueTime | undefined =>
  view.rows.find((row) => isRunning(row, view) || (row.state === 'started' && isAnothers(row, view, settings)));

/** A process of this host carries it out. */
export const isRunning = ({ state, runner }: DueTime, { stateOf }: Pick<View, 'stateOf'>): boolean =>
  state === 'started' && runner !== null && stateOf(runner) === 'alive';

/** Another daemon that is alive answers for the row. */
const isAnothers = ({ owner, idleMs }: StoredDueTime, view: View, { me }: Settings): boolean =>
  owner !== null && owner !== me && idleMs < GONE_MS && view.stateOf(owner) !== 'dead';

/** A daemon on a busy machine may look seconds late: up to a minute counts as on time. */
const isYoung = (dueAtMs: number, { nowMs }: View, { catchUpMs }: Settings): boolean =>
  nowMs - dueAtMs <= Math.max(MINUTE_MS, catchUpMs);

const mayStart = (what: string | number, { starts }: View): boolean =>
  starts(what).rested && starts(what).count < MAX_STARTS;

const ended = (result: RunResult, { nowMs }: Pick<View, 'nowMs'>): Partial<DueTime> => {
  return { state: 'done', result, reason: result.reason, endedAtMs: nowMs };
};

/** How a due time ends whose process has ended before a run began; null: it was always ended from outside. */
export function withoutRun(exitCode: ExitCode | null, at: { nowMs: number }): Partial<DueTime> {
  const reason =
    exitCode === null ? 'its process was ended again and again' : `ended with ${exitCode} before a run began`;
  return ended({ ...NO_RESULT, exitCode, reason, hint: LOOK }, at);
}

const unfinished = ({ id }: RunView): string => `run ${id} is unfinished: it is taken up`;
const iso = (ms: number): string => new Date(ms).toISOString();

const LOOK = 'Look at .crawlfleet/schedule beside the configuration.';
const MISSED = 'nobody was there to start its run, or the machine slept';
const AWAY = 'the database did not answer when it was due';
const TOO_OLD = 'it has waited, its daemon is gone, and it is too old by now';

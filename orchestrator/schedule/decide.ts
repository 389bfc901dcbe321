/** What a daemon does next: a pure function of the record, the processes and the clock. */
import { EXIT, type ExitCode } from '../../shared/domain/exit-codes.ts';
import { showLocal } from '../../shared/domain/local-time.ts';
import { NO_RESULT } from '../notify/notice.ts';
import { type DueState, type DueTime, isOpen, NO_PROCESS, type StoredDueTime } from './due-times.ts';
import type { Timetable } from './timetable.ts';

const MINUTE_MS = 60_000;
/** An owner that is frozen, or on a host that died, loses a row that it has not written for this long. */
const GONE_MS = 5 * MINUTE_MS;
/** A run that has not begun after this will not: planning takes seconds, ending an old run first takes minutes. */
const PREPARE_MS = 60 * MINUTE_MS;
/** More missed due times than this are not written one by one. */
const MAX_MISSED = 100;
/** Starts of a process for one run, or for a due time that has none yet. */
const MAX_STARTS = 8;

export interface Settings {
  /** This daemon, as `host:pid:start`. */
  me: string;
  timetable: Timetable;
  ifRunning: 'skip' | 'queue';
  /** A missed due time is made up for when it is no older; 0 never does. */
  catchUpMs: number;
  /** After its deadline plus this no instance of a run is left. */
  graceMs: number;
}

export interface View {
  nowMs: number;
  /** Oldest first. */
  rows: readonly StoredDueTime[];
  /** The living main server on the database. */
  busy: { owner: string; runId: string | null } | null;
  /** An unfinished run of this schedule's table that no due time has started. */
  leftRunId: string | null;
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

/** For the process of a row that goes on long after its end; `name` is for people. */
export interface Stop {
  do: 'stop';
  row: DueTime & { runner: string };
  signal: 'SIGTERM' | 'SIGKILL';
  name: string;
}

export type Action =
  | Write
  | Stop
  | { do: 'forget'; dueAtMs: number; state: DueState }
  | { do: 'resume'; runId: string }
  | { do: 'give-up'; runId: string };

/** Empty when there is nothing to do; at most one action starts a process. */
export function decide(view: View, settings: Settings): Action[] {
  const { rows, leftRunId, busy } = view;
  const takenUp = rows.map((row) => takeUp(row, view, settings)).find((write) => write !== null);
  if (takenUp) return [takenUp];
  if (view.isLeaving) return [];
  const upkeep = [...keep(view, settings), ...stopStuck(view, settings), ...lookAhead(view, settings)];
  if (upkeep.length > 0) return upkeep;
  const mayResume = leftRunId !== null && !busy && !rows.some((row) => isAtWork(row, view, settings));
  // A run that was given up counts one start more, so it is given up once.
  if (mayResume && view.starts(leftRunId).rested && view.starts(leftRunId).count <= MAX_STARTS)
    return [{ do: view.starts(leftRunId).count < MAX_STARTS ? 'resume' : 'give-up', runId: leftRunId }];
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
  // Somebody has resumed it by hand, or a process that cannot be seen from here still does.
  if (view.busy) return null;
  const { count, rested } = view.starts(runId ?? dueAtMs);
  if (count >= MAX_STARTS) {
    const alarm = runId && `run ${runId} could not be resumed ${count} times; the schedule goes on without it`;
    return write(withoutEnd(runId, null, view.nowMs), alarm ? { alarm } : {});
  }
  if (runId !== null) {
    // Handed over to whichever daemon comes next.
    if (view.isLeaving) return owner === null ? null : write({ owner: null });
    return rested ? write(NO_PROCESS, { start: true, say: `run ${runId} is unfinished: it is taken up` }) : null;
  }
  const reason = runner === null ? 'its process never began' : 'its process died before a run began';
  if (isYoung(dueAtMs, view, settings)) return write({ state: 'queued', ...NO_PROCESS, reason });
  const alarm = `missed ${iso(dueAtMs)}: ${reason}, and it is too old by now`;
  return write({ state: 'missed', reason }, { alarm });
}

/** What goes on long after its deadline is asked to leave, a minute later killed, and taken up again like any other. */
function stopStuck(view: View, { me, graceMs }: Settings): Stop[] {
  return view.rows.flatMap((row): Stop[] => {
    const { dueAtMs, runner, runId, deadlineAtMs } = row;
    if (runner === null || row.owner !== me || row.state !== 'started' || view.stateOf(runner) !== 'alive') return [];
    const sinceMs = row.startedAtMs ?? view.nowMs;
    const marginMs = Math.min(30 * MINUTE_MS, Math.max(2 * MINUTE_MS, ((deadlineAtMs ?? 0) - sinceMs) / 8));
    // A process that took its run up after the deadline gets the grace and a margin, too.
    const limitMs = deadlineAtMs ? Math.max(deadlineAtMs, sinceMs) + graceMs + marginMs : sinceMs + PREPARE_MS;
    const askedMs = view.askedAtMs.get(runner);
    if (view.nowMs <= limitMs || (askedMs !== undefined && view.nowMs - askedMs < MINUTE_MS)) return [];
    const name = runId === null ? `the run of ${iso(dueAtMs)}` : `run ${runId}`;
    return [{ do: 'stop', row: { ...row, runner }, signal: askedMs === undefined ? 'SIGTERM' : 'SIGKILL', name }];
  });
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
    const late = nowMs - due > MINUTE_MS ? `${Math.round((nowMs - due) / MINUTE_MS)} min late` : null;
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
  if (obstacleOf(view, settings) || !view.starts(dueAtMs).rested) return [];
  const say = `${showLocal(dueAtMs, timetable.timezone)} has waited: its run is started`;
  return [{ ...write, change: { state: 'started', owner: me }, start: true, say }];
}

/** What a due time would meet; `passing`: the end of a run whose deadline is past is no reason to skip. */
function obstacleOf(view: View, settings: Settings): { reason: string; passing: boolean } | null {
  const { busy, nowMs } = view;
  const row = view.rows.find((r) => isAtWork(r, view, settings));
  const passing = (row?.deadlineAtMs ?? Infinity) < nowMs;
  if (row) return { reason: `the run of ${iso(row.dueAtMs)} is at work`, passing };
  return busy && { reason: `${busy.owner} works on ${busy.runId ?? 'a new run'}`, passing };
}

/** A living process of this host carries the row out, or another daemon that is alive answers for it. */
const isAtWork = (row: StoredDueTime, view: View, settings: Settings): boolean =>
  row.state === 'started' &&
  (isAnothers(row, view, settings) || (row.runner !== null && view.stateOf(row.runner) === 'alive'));

const isAnothers = ({ owner, idleMs }: StoredDueTime, view: View, { me }: Settings): boolean =>
  owner !== null && owner !== me && idleMs < GONE_MS && view.stateOf(owner) !== 'dead';

/** A daemon on a busy machine may look seconds late: up to a minute counts as on time. */
const isYoung = (dueAtMs: number, { nowMs }: View, { catchUpMs }: Settings): boolean =>
  nowMs - dueAtMs <= Math.max(MINUTE_MS, catchUpMs);

/** How a due time ends whose process could not say so; a null exit code: all of its processes were ended from outside. */
export function withoutEnd(runId: string | null, exitCode: ExitCode | null, nowMs: number): Partial<DueTime> {
  const early =
    exitCode === null ? 'its process was ended again and again' : `ended with ${exitCode} before a run began`;
  const reason = runId === null ? early : 'unfinished';
  const hint = 'Look at .crawlfleet/schedule beside the configuration.';
  const result = { ...NO_RESULT, run: runId, exitCode: runId === null ? exitCode : EXIT.internal, reason, hint };
  return { state: 'done', result, reason, endedAtMs: nowMs };
}

export const iso = (ms: number): string => new Date(ms).toISOString();

const MISSED = 'nobody was there to start its run, or the machine slept';
const AWAY = 'the database did not answer when it was due';
const TOO_OLD = 'it has waited, its daemon is gone, and it is too old by now';

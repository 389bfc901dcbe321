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

/** What a daemon goes by: its settings, the record, and what it sees of processes and the database. */
export interface View {
  /** This daemon, as `host:pid:start`. */
  me: string;
  timetable: Timetable;
  ifRunning: 'skip' | 'queue';
  /** A missed due time is made up for when it is no older; 0 never does. */
  catchUpMs: number;
  /** After its deadline plus this no instance of a run is left. */
  graceMs: number;
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

/** What an action says begins with `!` where a person should see it. */
export type Action =
  /** Changes the row as it was seen, or inserts it. `started` carries it out in a new process. */
  | { do: 'write'; dueAtMs: number; seen: StoredDueTime | null; change: Partial<DueTime>; say?: string | undefined }
  /** For the process of a row that goes on long after its end; `name` is for people. */
  | { do: 'stop'; row: StoredDueTime; runner: string; signal: 'SIGTERM' | 'SIGKILL'; name: string }
  | { do: 'forget'; dueAtMs: number; state: DueState }
  | { do: 'resume' | 'give-up'; runId: string };

/** Empty when there is nothing to do; at most one action starts a process. */
export function decide(view: View): Action[] {
  const { rows, leftRunId, busy } = view;
  const takenUp = rows.map((row) => takeUp(row, view)).find((write) => write !== null);
  if (takenUp) return [takenUp];
  if (view.isLeaving) return [];
  const upkeep = [...keep(view), ...stopStuck(view), ...lookAhead(view)];
  if (upkeep.length > 0) return upkeep;
  if (leftRunId !== null && !busy && !rows.some((row) => isAtWork(row, view))) {
    const { count, rested } = view.starts(leftRunId);
    // A run that was given up counts one start more, so it is given up once.
    if (rested && count <= MAX_STARTS) return [{ do: count < MAX_STARTS ? 'resume' : 'give-up', runId: leftRunId }];
  }
  return [...settle(view), ...dequeue(view)];
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

/** A started row that has lost its process or its daemon. */
function takeUp(row: StoredDueTime, view: View): Action | null {
  const { dueAtMs, state, owner, runner, runId } = row;
  if (state !== 'started' || isAnothers(row, view)) return null;
  if (runner !== null && view.stateOf(runner) === 'alive') {
    const say = `${iso(dueAtMs)}: its run is still at work (${runner}); it is watched again`;
    return owner === view.me || view.isLeaving ? null : write(view, row, {}, say);
  }
  // Somebody has resumed it by hand, or a process that cannot be seen from here still does.
  if (view.busy) return null;
  const { count, rested } = view.starts(runId ?? dueAtMs);
  if (count >= MAX_STARTS) {
    const alarm = runId === null ? undefined : `! ${describeGivenUp(runId, count)}`;
    return write(view, row, withoutEnd(runId, null, view.nowMs), alarm);
  }
  if (runId !== null) {
    // Handed over to whichever daemon comes next.
    if (view.isLeaving) return owner === null ? null : write(view, row, { owner: null });
    return rested ? write(view, row, START, `run ${runId} is unfinished: it is taken up`) : null;
  }
  const reason = runner === null ? 'its process never began' : 'its process died before a run began';
  if (isYoung(dueAtMs, view)) return write(view, row, { state: 'queued', ...NO_PROCESS, reason });
  return write(view, row, { state: 'missed', reason }, `! missed ${iso(dueAtMs)}: ${reason}, and it is too old by now`);
}

/** What goes on long after its deadline is asked to leave, a minute later killed, and taken up again like any other. */
function stopStuck(view: View): Action[] {
  return view.rows.flatMap((row): Action[] => {
    const { dueAtMs, runner, runId, deadlineAtMs } = row;
    if (runner === null || row.owner !== view.me || row.state !== 'started' || view.stateOf(runner) !== 'alive')
      return [];
    const sinceMs = row.startedAtMs ?? view.nowMs;
    const marginMs = Math.min(30 * MINUTE_MS, Math.max(2 * MINUTE_MS, ((deadlineAtMs ?? 0) - sinceMs) / 8));
    // A process that took its run up after the deadline gets the grace and a margin, too.
    const limitMs = deadlineAtMs ? Math.max(deadlineAtMs, sinceMs) + view.graceMs + marginMs : sinceMs + PREPARE_MS;
    const askedMs = view.askedAtMs.get(runner);
    if (view.nowMs <= limitMs || (askedMs !== undefined && view.nowMs - askedMs < MINUTE_MS)) return [];
    const name = runId === null ? `the run of ${iso(dueAtMs)}` : `run ${runId}`;
    return [{ do: 'stop', row, runner, signal: askedMs === undefined ? 'SIGTERM' : 'SIGKILL', name }];
  });
}

/** Due times that have come: the newest is started, queued or skipped; the others, and one that is too old, are missed. */
function settle(view: View): Action[] {
  const { rows, nowMs, timetable } = view;
  const come = rows.filter((row) => row.state === 'next' && row.dueAtMs <= nowMs).map((row) => row.dueAtMs);
  if (come.length === 0) return [];
  const rowAt = new Map(rows.map((row) => [row.dueAtMs, row]));
  const times = [...new Set([...come, ...timetable.between(come[0]!, nowMs, MAX_MISSED)])]
    .filter((ms) => (rowAt.get(ms)?.state ?? 'next') === 'next')
    .sort((a, b) => a - b);
  const show = (ms: number): string => showLocal(ms, timetable.timezone);
  const decided = (ms: number, change: Partial<DueTime>, say?: string): Action =>
    write(view, rowAt.get(ms) ?? ms, change, say);
  // Of several the newest alone: two crawls in a row for one night's delay would ask the site twice.
  const due = isYoung(times.at(-1)!, view) ? times.pop()! : null;
  const why = view.wasAway ? AWAY : MISSED;
  const alarm = `! missed ${times.length} due times, the last one ${show(times.at(-1) ?? 0)}: ${why}`;
  const missed = times.map((ms, i) =>
    decided(ms, { state: 'missed', reason: why }, i === times.length - 1 ? alarm : undefined),
  );
  if (due === null) return missed;
  const obstacle = obstacleOf(view);
  if (obstacle === null) {
    const late = nowMs - due > MINUTE_MS ? `${Math.round((nowMs - due) / MINUTE_MS)} min late` : null;
    const say = `${show(due)} is due${late ? `, ${late}` : ''}: its run is started`;
    return [...missed, decided(due, { ...START, reason: late }, say)];
  }
  const waiting = rows.some((row) => row.state === 'queued');
  const waits = (view.ifRunning === 'queue' || obstacle.passing) && !waiting;
  const reason = waiting ? 'another due time waits already' : obstacle.reason;
  const say = `${show(due)} is due and ${waits ? 'waits' : 'is skipped'}: ${reason}`;
  return [...missed, decided(due, { state: waits ? 'queued' : 'skipped', reason }, say)];
}

/** A waiting due time whose turn it is; one whose daemon is gone only while it is young. */
function dequeue(view: View): Action[] {
  const row = view.rows.find((r) => r.state === 'queued' && !isAnothers(r, view));
  if (!row) return [];
  const { dueAtMs, owner } = row;
  if (owner !== view.me && !isYoung(dueAtMs, view))
    return [write(view, row, { state: 'missed', reason: TOO_OLD }, `! missed ${iso(dueAtMs)}: ${TOO_OLD}`)];
  if (obstacleOf(view) || !view.starts(dueAtMs).rested) return [];
  return [write(view, row, START, `${showLocal(dueAtMs, view.timetable.timezone)} has waited: its run is started`)];
}

/** What a due time would meet; `passing`: the end of a run whose deadline is past is no reason to skip. */
function obstacleOf(view: View): { reason: string; passing: boolean } | null {
  const { busy, nowMs } = view;
  const row = view.rows.find((r) => isAtWork(r, view));
  const passing = (row?.deadlineAtMs ?? Infinity) < nowMs;
  if (row) return { reason: `the run of ${iso(row.dueAtMs)} is at work`, passing };
  return busy && { reason: `${busy.owner} works on ${busy.runId ?? 'a new run'}`, passing };
}

/** A living process of this host carries the row out, or another daemon that is alive answers for it. */
const isAtWork = (row: StoredDueTime, view: View): boolean =>
  row.state === 'started' && (isAnothers(row, view) || (row.runner !== null && view.stateOf(row.runner) === 'alive'));

const isAnothers = ({ owner, idleMs }: StoredDueTime, view: View): boolean =>
  owner !== null && owner !== view.me && idleMs < GONE_MS && view.stateOf(owner) !== 'dead';

/** A daemon on a busy machine may look seconds late: up to a minute counts as on time. */
const isYoung = (dueAtMs: number, { nowMs, catchUpMs }: View): boolean =>
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

export const describeGivenUp = (runId: string, count: number): string =>
  `run ${runId} could not be resumed ${count} times; the schedule goes on without it`;

export const iso = (ms: number): string => new Date(ms).toISOString();

const START = { state: 'started', ...NO_PROCESS } as const;
const MISSED = 'nobody was there to start its run, or the machine slept';
const AWAY = 'the database did not answer when it was due';
const TOO_OLD = 'it has waited, its daemon is gone, and it is too old by now';

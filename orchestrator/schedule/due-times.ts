/**
 * The record of a schedule: one row for each due time. Its key is unique, and it moves by conditional updates only, so of
 * several daemons the one that moves it to `started` starts it.
 *
 * - `next`: lies ahead. It is written before its time, so that a time nobody handled is known to be missed.
 * - `queued`: waits until what is at work has ended.
 * - `started`: a process carries it out; its run may be resumed several times.
 * - `done`: has ended, well or badly; `exitCode` and `reason` say how.
 * - `skipped`: came while a run was at work.
 * - `missed`: no daemon was there, the machine slept, or the clock jumped over it.
 */
import type { RunResult } from '../notify/notice.ts';

export type DueState = 'next' | 'queued' | 'started' | 'done' | 'skipped' | 'missed';

export interface DueTime {
  dueAtMs: number;
  state: DueState;
  /** Of a `next` row its expression and zone. */
  reason: string | null;
  /** The daemon that answers for the row, as `host:pid:start`. */
  owner: string | null;
  /** The process that carries it out, as `host:pid:start`. */
  runner: string | null;
  /** The run that its process was about to store, or has stored. */
  runId: string | null;
  startedAtMs: number | null;
  endedAtMs: number | null;
  result: RunResult | null;
  /** The webhooks know. */
  told: boolean;
}

/** With the time since it was written, by the database's clock. An owner writes its open rows every minute. */
export type StoredDueTime = DueTime & { idleMs: number };

export const isOpen = ({ state }: DueTime): boolean => state === 'queued' || state === 'started';
export const isDecided = (row: DueTime): boolean => row.state !== 'next' && !isOpen(row);

/** What the schedule needs to know of a run. */
export interface RunView {
  id: string;
  startedAtMs: number;
  deadlineAtMs: number;
  /** After the deadline plus this, no instance of it is left. */
  graceMs: number;
  /** It fills this schedule's result table; one of another table belongs to its own schedule. */
  ours: boolean;
  /** Null until nothing of it is left to do. */
  result: RunResult | null;
}

/** A living main server on the database, and the unfinished runs, newest first. */
export interface SeenRuns {
  busy: { owner: string; runId: string | null } | null;
  unfinished: readonly RunView[];
}

/**
 * The record of a schedule: one row for each due time. Its key is unique, and it moves by conditional updates only, so
 * of several daemons the one that moves it to `started` starts it.
 *
 * - `next`: lies ahead. It is written before its time, so that a time that no daemon handled is known to be missed.
 * - `queued`: waits until what is at work has ended.
 * - `started`: a process carries it out; its run may be resumed several times.
 * - `done`: has ended, well or badly; `exitCode` and `reason` say how.
 * - `skipped`: came while a run was at work.
 * - `missed`: no daemon was there, the machine slept, or the clock jumped over it.
 */
import type { RunResult } from '../../core/read/run-result.ts';

export type DueState = 'next' | 'queued' | 'started' | 'done' | 'skipped' | 'missed';

export interface DueTime {
  dueAtMs: number;
  state: DueState;
  /** The reason; of a `next` row its expression and zone. */
  reason: string | null;
  /** The daemon that answers for the row, as `host:pid:start`. */
  owner: string | null;
  /** The process that carries it out, as `host:pid:start`. */
  runner: string | null;
  /** The run that its process was about to store, or has stored, and the deadline of that run. */
  runId: string | null;
  deadlineAtMs: number | null;
  /** When its process was started, which also names the start: a process of an earlier one stores no run. */
  startedAtMs: number | null;
  endedAtMs: number | null;
  result: RunResult | null;
  /** The webhooks have received it. */
  told: boolean;
}

/**
 * A due time with the time since it was written, by the database's clock. An owner writes its open rows every minute.
 */
export type StoredDueTime = DueTime & { idleMs: number };

export const isOpen = ({ state }: DueTime): boolean => state === 'queued' || state === 'started';
export const isDecided = (row: DueTime): boolean => row.state !== 'next' && !isOpen(row);

/**
 * The schedule's own record: one row for each due time, and who may write it.
 *
 * - `queued`: waits until what is at work has ended.
 * - `started`: a process was told to carry it out; its run may be resumed several times.
 * - `done`: it has ended, well or badly; `exitCode` and `reason` say how.
 * - `skipped`: it came while a run was at work. Nobody's fault: the schedule was there and decided so.
 * - `missed`: nobody was there when it was due, or the machine slept, or the clock jumped over it.
 */
import type { ExitCode } from '../../shared/domain/exit-codes.ts';

const SLOT_STATES = ['queued', 'started', 'done', 'skipped', 'missed'] as const;
export type SlotState = (typeof SLOT_STATES)[number];

/** What a run came to, as far as it is told. */
export interface RunResult {
  /** Null when it ended before a run was stored. */
  run: string | null;
  /** Phase of the run; null without one. */
  state: string | null;
  /** Null when a signal ended its process and no run tells more. */
  exitCode: ExitCode | null;
  reason: string | null;
  onTime: boolean | null;
  products: { planned: number; stored: number; gone: number; failed: number } | null;
  /** USD. */
  cost: number | null;
  /** What a person should do; empty when there is nothing. */
  hint: string;
}

export interface Slot {
  dueAtMs: number;
  state: SlotState;
  /** Under which fence it was last written. */
  fence: number;
  reason: string | null;
  /** The process that carries it out, as `host:pid:start`; null until that has signed in. */
  runner: string | null;
  /** The run that its process was about to store, or has stored; null before. */
  runId: string | null;
  /** When its process signed in. */
  startedAtMs: number | null;
  endedAtMs: number | null;
  result: RunResult | null;
  /** The webhook knows. */
  told: boolean;
}

/** What a change of state writes; what is left out stays. */
export type SlotChange = Partial<Pick<Slot, 'reason' | 'runner' | 'runId' | 'startedAtMs' | 'endedAtMs' | 'result'>> & {
  state: SlotState;
};

export interface Leader {
  owner: string;
  expiresAtMs: number;
}

export interface Lead {
  fence: number;
  /** Due times up to here are no concern of this schedule: it was not there, or it was another expression. */
  sinceMs: number;
}

/**
 * The rows of one schedule by name. Who writes must hold the lead: each write is one statement that does nothing under a
 * fence that is past, so of two daemons that both believe to be first only one starts a due time.
 */
export interface ScheduleStore {
  /** Takes a free lease, one that has run out, or that of `steal`, whose process is known to be dead. `spec` is the expression with its zone. */
  takeLead(owner: string, spec: string, leaseMs: number, steal?: Leader): Promise<Lead | { heldBy: Leader }>;
  /** Prolongs the lease; false when somebody else has taken it. */
  keepLead(fence: number, leaseMs: number): Promise<boolean>;
  leaveLead(fence: number): Promise<void>;
  /**
   * Writes a due time that nobody has handled; false when somebody has, or the fence is past. A row that says `missed` but was written at
   * a later time than now was written under a wrong clock, and is written again.
   */
  claim(dueAtMs: number, state: SlotState, reason: string | null, fence: number): Promise<boolean>;
  /** From one state to another; false when it was elsewhere or the fence is past. */
  change(dueAtMs: number, from: SlotState, change: SlotChange, fence: number): Promise<boolean>;
  /** By the process that carries a due time out: true for the first one that was started under this very fence. */
  signIn(dueAtMs: number, fence: number, runner: string): Promise<boolean>;
  /** By the same process, before it stores its run: from then on that run is this due time's. False when that is given to another one. */
  bindRun(dueAtMs: number, runner: string, runId: string): Promise<boolean>;
  /** By the same process at its end; false when the due time has been given to another one. */
  signOut(dueAtMs: number, runner: string, result: RunResult): Promise<boolean>;
  /** The webhook knows. When and by whom the row was written stays: that tells rows of a wrong clock. */
  markTold(dueAtMs: number, state: SlotState, fence: number): Promise<void>;
  /** The newest due time up to then that is decided; a `missed` that was written later than then, under a wrong clock, is not. */
  decidedUpTo(nowMs: number): Promise<number | null>;
  /** Queued and started ones, oldest first. */
  open(): Promise<Slot[]>;
  /** Ended, skipped or missed ones of which the webhook does not know, written since then; oldest first. */
  untold(sinceMs: number): Promise<Slot[]>;
  /** Newest due times first; with `upToMs` none later. */
  list(limit: number, upToMs?: number): Promise<Slot[]>;
  get(dueAtMs: number): Promise<Slot | null>;
}

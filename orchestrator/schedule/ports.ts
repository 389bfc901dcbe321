/** What the scheduler needs of the world beside its record: runs, processes, and somebody to tell. */
import type { Notice } from './notice.ts';
import type { RunResult } from './slots.ts';

export interface RunView {
  id: string;
  startedAtMs: number;
  deadlineAtMs: number;
  /** After the deadline plus this, no instance of it is left. */
  graceMs: number;
  /** It fills this schedule's result table; one of another table is its own schedule's to take up. */
  ours: boolean;
  /** Nothing of it is left to do. */
  ended: boolean;
  result: RunResult;
}

export interface Runs {
  /** A living main server that holds the lock of the database, and the runs that nobody has ended, newest first. */
  look(): Promise<{ busy: { owner: string; runId: string | null } | null; unfinished: RunView[] }>;
  get(id: string): Promise<RunView | null>;
}

/** A process that carries something out. */
export interface Child {
  /** `host:pid:start` */
  runner: string;
  /** Never rejects. Both null when it is not known: it was another daemon's child. */
  ended: Promise<{ code: number | null; signal: string | null }>;
  /** Asks it to leave: what it has launched goes on, and `resume` takes it up. */
  terminate(): void;
  kill(): void;
}

export interface Processes {
  /** Carries a due time out, once it has signed in under this fence. */
  run(dueAtMs: number, fence: number): Child;
  resume(runId: string): Child;
  collectGarbage(): Child;
  /** The process of that name, started by an earlier daemon: still there, ended, or of another machine. */
  find(runner: string): Child | 'dead' | 'elsewhere';
}

export interface Notifier {
  /** True when the receiver has it; false when it is given up. Never rejects. */
  tell(notice: Notice): Promise<boolean>;
}

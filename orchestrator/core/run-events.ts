/**
 * What runs, and the schedule that starts them, tell those who listen: notices, charts, the record of due times. A
 * listener returns what went wrong as lines; nothing that it does changes the run, except in `bind`.
 */
import { describeError } from '../../shared/domain/errors.ts';
import type { Config } from './config/load-config.ts';
import type { Database } from './db/connect.ts';
import type { Core } from './model/core.ts';
import type { RunReport } from './model/report.ts';
import type { NewRun, RunRecord, Stores } from './model/stores.ts';
import type { World } from './model/world.ts';
import type { RunResult, Times } from './read/run-result.ts';

export interface RunEvents {
  /** An error has ended a start before the run was stored, and no person sees what the command says. */
  refused?(error: unknown, start: { config: Config; dryRun: boolean }): Promise<string[]>;
  /** The run of a due time is about to be stored; where this throws, it is not. */
  bind?(place: EventPlace, due: DueTimeOfRun, run: { runId: string; deadlineAtMs: number }): Promise<void>;
  /** The run is stored; it does not wait for the answer. */
  begun?(place: EventPlace, run: NewRun): Promise<string[]>;
  /** The loop of a run begins here, also that of a resumed one. */
  watch?(place: EventPlace, run: WatchedRun): RunWatcher;
  /**
   * The run has ended. The report is stored afterwards, with the lines as notes, so after a crash this may come again.
   */
  ended?(place: EventPlace, run: RunRecord, report: RunReport): Promise<string[]>;
  /** The report is stored, and written into the folder of the run. */
  reported?(place: EventPlace, runId: string): Promise<string[]>;
  /** A due time is decided, or several were missed together. Resolves once all who listen have it, or at the signal. */
  decided?(schedule: ScheduleAtWork, rows: readonly DecidedDueTime[]): Promise<void>;
  /** A run does not end, or cannot be resumed. As `decided`. */
  stuck?(schedule: ScheduleAtWork, run: StuckRun): Promise<void>;
}

export interface EventPlace {
  config: Config;
  database: Database;
  stores: Stores;
}

export interface DueTimeOfRun {
  atMs: number;
  /** When the daemon started this process; it names the start. */
  startedAtMs: number;
  /** The name of the schedule. */
  schedule: string;
}

export interface WatchedRun {
  runId: string;
  /** Its result table. */
  table: string;
  log: Pick<Core['log'], 'info' | 'warn'>;
}

export interface RunWatcher {
  /** Called after each round of the loop. */
  note(world: World): void;
  /** The loop has ended, and waits. */
  end?(): Promise<void>;
}

export interface ScheduleAtWork {
  config: Config;
  dryRun: boolean;
  signal: AbortSignal;
  /** A line of the daemon's log. */
  say: (text: string) => void;
}

export interface DecidedDueTime extends Times, Pick<RunResult, 'reason'> {
  dueAtMs: number;
  state: string;
  result: RunResult | null;
}

/** A run that went on after its time and was asked to leave, or that cannot be resumed. */
export interface StuckRun {
  runId: string | null;
  /** The due time of the run; null: none has started it. */
  dueAtMs: number | null;
  sentence: string;
  hint: string;
}

/** Those who may listen. */
type Listeners = readonly { runEvents?: RunEvents }[];

/** Tells all listeners at once, and returns their lines. Never rejects. */
export async function emit(
  listeners: Listeners,
  tell: (events: RunEvents) => Promise<string[]> | undefined,
): Promise<string[]> {
  const lines = listeners.map(async ({ runEvents = {} }) => {
    try {
      return (await tell(runEvents)) ?? [];
    } catch (error) {
      return [describeError(error)];
    }
  });
  return (await Promise.all(lines)).flat();
}

/** The watchers of all listeners. What one of them throws is in the log of the run. */
export function watchersOf(listeners: Listeners, place: EventPlace, run: WatchedRun): Required<RunWatcher> {
  const watchers = listeners.flatMap(({ runEvents }) => runEvents?.watch?.(place, run) ?? []);
  return {
    note(world) {
      for (const watcher of watchers) {
        try {
          watcher.note(world);
        } catch (error) {
          run.log.warn(describeError(error));
        }
      }
    },
    async end() {
      await Promise.allSettled(watchers.map(async (watcher) => watcher.end?.()));
    },
  };
}

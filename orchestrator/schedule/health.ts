/** What `/healthz` of the daemon tells: whether the schedule runs, and whether its last run needs a look. */
import { EXIT } from '../../shared/domain/exit-codes.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Settings } from './decide.ts';
import type { DueState, DueTime } from './due-times.ts';
import { isDecided } from './due-times.ts';

export interface Health {
  ok: boolean;
  /** Why not, in words; null when all is well. */
  problem: string | null;
  /** `standby`: another daemon has started the newest due time. */
  role: 'leading' | 'standby' | 'starting';
  /** ISO time of the next due time. */
  next: string | null;
  /** `resume`: by this daemon. */
  running: { kind: 'slot' | 'resume'; due: string; run: string | null } | null;
  /** The newest due time that is decided. */
  last: { due: string; state: DueState; exitCode: number | null; run: string | null } | null;
}

/** What the loop knows of itself; times by the clock that never jumps. */
export interface LoopState {
  /** Null between two rounds. */
  beganMs: number | null;
  endedMs: number;
  fault: string | null;
  isFirst: boolean;
  /** Oldest first. */
  rows: readonly DueTime[];
  /** By run: those that this daemon has resumed. */
  starts: ReadonlyMap<string | number, unknown>;
}

/** Of a run that ended so there is nothing to be done at once: all of its rows, or most, are there, or a person ended it. */
const CONTENT: readonly (number | null)[] = [EXIT.complete, EXIT.interrupted, EXIT.failedProducts, EXIT.deadline];
/** A loop that has not come round for so long hangs. */
const SILENT_MS = 180_000;
/** One round is a few short queries; each of them is tried for up to 45 s, too long for a monitor to believe that all is well. */
const SLOW_MS = 10_000;

export function readHealth(loop: LoopState, clock: Clock, { timetable, me }: Settings): Health {
  const { rows, starts, isFirst } = loop;
  const problem = problemOf(loop, clock.monotonic());
  const next = timetable.next(clock.now());
  const starter = rows.findLast(({ state }) => state === 'started' || state === 'done')?.owner ?? me;
  const running = rows.findLast(({ state }) => state === 'started');
  const kind = starts.has(running?.runId ?? '') ? 'resume' : 'slot';
  const last = rows.findLast(isDecided);
  const { exitCode = null, run = null } = last?.result ?? {};
  return {
    ok: problem === null,
    problem,
    role: isFirst ? 'starting' : starter === me ? 'leading' : 'standby',
    next: next === null ? null : iso(next),
    running: running ? { kind, due: iso(running.dueAtMs), run: running.runId } : null,
    last: last ? { due: iso(last.dueAtMs), state: last.state, exitCode, run } : null,
  };
}

function problemOf({ fault, beganMs, endedMs, rows }: LoopState, nowMs: number): string | null {
  const seconds = (sinceMs: number): number => Math.round((nowMs - sinceMs) / 1_000);
  if (fault) return fault;
  if (beganMs !== null && nowMs - beganMs > SLOW_MS)
    return `the database does not answer, for ${seconds(beganMs)} s by now`;
  if (nowMs - endedMs > SILENT_MS) return `the loop has not come round for ${seconds(endedMs)} s`;
  const result = rows.findLast(({ state }) => state === 'done')?.result;
  if (!result || CONTENT.includes(result.exitCode)) return null;
  return `the last run ended with exit code ${result.exitCode ?? 'unknown'}${result.reason ? `: ${result.reason}` : ''}`;
}

const iso = (ms: number): string => new Date(ms).toISOString();

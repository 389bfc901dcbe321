/**
 * What the daemon has started and not seen the end of, and when that is stuck. Time is measured by the clock that never jumps: a main
 * server whose wall clock was set a day ahead must not kill a healthy run.
 */
import type { Clock } from '../../shared/ports/clock.ts';
import type { Child, RunView } from './ports.ts';

export type WorkKind = 'slot' | 'resume' | 'gc';

/** A run that has not begun after this will not: planning takes seconds, ending an old run first takes minutes. */
const PREPARE_MS = 3_600_000;
const GC_MS = 600_000;
/** Between being asked to leave and being ended. */
const LEAVE_MS = 60_000;
const MIN_MARGIN_MS = 120_000;
const MAX_MARGIN_MS = 1_800_000;

export class Work {
  readonly kind: WorkKind;
  /** Due time it is for; null for a run that no due time started, and for gc. */
  readonly dueAtMs: number | null;
  readonly child: Child;
  /** Set as soon as it is known. */
  run: RunView | null = null;
  /** Set when the process has ended. */
  exit: { code: number | null; signal: string | null } | null = null;
  stuck = false;
  readonly #clock: Clock;
  readonly #startedMs: number;
  #limitMs: number;
  #askedMs: number | null = null;
  #killed = false;

  constructor({ kind, dueAtMs, child }: Pick<Work, 'kind' | 'dueAtMs' | 'child'>, clock: Clock, onEnd: () => void) {
    this.kind = kind;
    this.dueAtMs = dueAtMs;
    this.child = child;
    this.#clock = clock;
    this.#startedMs = clock.monotonic();
    this.#limitMs = kind === 'gc' ? GC_MS : PREPARE_MS;
    void this.#await(onEnd);
  }

  async #await(onEnd: () => void): Promise<void> {
    this.exit = await this.child.ended;
    onEnd();
  }

  /** From now on the run's own deadline counts: what was left of it when it was first seen, grace, and a margin for the end. */
  follow(run: RunView): void {
    this.run = run;
    const wholeMs = Math.max(0, run.deadlineAtMs - run.startedAtMs);
    const leftMs = Math.min(wholeMs, Math.max(0, run.deadlineAtMs - this.#clock.now()));
    const marginMs = Math.min(MAX_MARGIN_MS, Math.max(MIN_MARGIN_MS, wholeMs / 8));
    this.#limitMs = this.#clock.monotonic() - this.#startedMs + leftMs + run.graceMs + marginMs;
  }

  /** `leave` when it must be asked to leave, `kill` when it has not; each once. */
  whatToDo(): 'leave' | 'kill' | null {
    const nowMs = this.#clock.monotonic();
    if (this.exit !== null) return null;
    if (!this.stuck && nowMs - this.#startedMs > this.#limitMs) {
      this.stuck = true;
      this.#askedMs = nowMs;
      return 'leave';
    }
    if (this.#askedMs === null || this.#killed || nowMs - this.#askedMs < LEAVE_MS) return null;
    this.#killed = true;
    return 'kill';
  }
}

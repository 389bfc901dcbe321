/** What `/healthz` of the daemon tells: whether the schedule runs, and whether its last run was one to be content with. */
import { EXIT } from '../../shared/domain/exit-codes.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Work } from './at-work.ts';
import type { Slot, SlotState } from './slots.ts';
import type { Timetable } from './timetable.ts';

export interface Health {
  ok: boolean;
  /** Why not, in words; null when all is well. */
  problem: string | null;
  role: 'leading' | 'standby' | 'starting';
  /** ISO time of the next due time. */
  next: string | null;
  running: { kind: Work['kind']; due: string | null; run: string | null } | null;
  /** The newest due time that is decided. */
  last: { due: string; state: SlotState; exitCode: number | null; run: string | null } | null;
}

/** Of a run that ended so there is nothing to be done at once: all of its rows, or most, are there, or a person ended it. */
const CONTENT: readonly (number | null)[] = [EXIT.complete, EXIT.interrupted, EXIT.failedProducts, EXIT.deadline];
/** A loop that has not come round for so long hangs. */
const SILENT_MS = 180_000;
/** One round is a few short queries; each of them is tried for up to 45 s, too long for a monitor to believe that all is well. */
const SLOW_MS = 10_000;

export class HealthState {
  readonly #clock: Clock;
  #role: Health['role'] = 'starting';
  #fault: string | null = null;
  #roundMs: number;
  /** Since when a round is under way; null between two. */
  #lookingMs: number | null = null;
  #slots: readonly Slot[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#roundMs = clock.monotonic();
  }

  /** A round begins; `good`, `standBy` and `bad` end it. */
  looks(): void {
    this.#lookingMs = this.#clock.monotonic();
  }

  good(): void {
    this.#role = 'leading';
    this.#fault = null;
    this.#ended();
  }

  standBy(): void {
    this.good();
    this.#role = 'standby';
    this.#slots = [];
  }

  bad(fault: string): void {
    this.#fault = fault;
    this.#ended();
  }

  #ended(): void {
    this.#roundMs = this.#clock.monotonic();
    this.#lookingMs = null;
  }

  /** The newest due times first. */
  saw(slots: readonly Slot[]): void {
    this.#slots = slots;
  }

  read(timetable: Timetable, work: Work | null): Health {
    const problem = this.#problem();
    const next = timetable.next(this.#clock.now());
    const last = this.#slots.find((slot) => slot.state !== 'queued' && slot.state !== 'started');
    return {
      ok: problem === null,
      problem,
      role: this.#role,
      next: next === null ? null : new Date(next).toISOString(),
      running: work && { kind: work.kind, due: isoOrNull(work.dueAtMs), run: work.run?.id ?? null },
      last: last
        ? {
            due: new Date(last.dueAtMs).toISOString(),
            state: last.state,
            exitCode: last.result?.exitCode ?? null,
            run: last.result?.run ?? null,
          }
        : null,
    };
  }

  #problem(): string | null {
    if (this.#fault) return this.#fault;
    const lookingMs = this.#lookingMs === null ? 0 : this.#clock.monotonic() - this.#lookingMs;
    if (lookingMs > SLOW_MS) return `the database does not answer, for ${Math.round(lookingMs / 1_000)} s by now`;
    const silentMs = this.#clock.monotonic() - this.#roundMs;
    if (silentMs > SILENT_MS) return `the loop has not come round for ${Math.round(silentMs / 1_000)} s`;
    const run = this.#slots.find((slot) => slot.state === 'done');
    const exitCode = run?.result?.exitCode ?? null;
    if (!run || CONTENT.includes(exitCode)) return null;
    return `the last run ended with exit code ${exitCode ?? 'unknown'}${run.result?.reason ? `: ${run.result.reason}` : ''}`;
  }
}

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

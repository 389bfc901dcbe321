/**
 * Writes records to the journal first and to the state then, so that what was answered to anybody is still true after a crash. On a full disk
 * only records that bring things to an end are written, from the reserve.
 */
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { RecordTooLargeError } from './journal-file.ts';
import type { QueueState } from './queue-state.ts';
import type { JournalRecord } from './records.ts';
import type { Reserve } from './reserve-file.ts';

/** The journal as it is used here. */
export interface Journal {
  append(records: readonly JournalRecord[]): void;
  sync(): Promise<void>;
}

/** Results reach the disk at the latest this long after they are known; a power cut may cost that much. */
const LAZY_SYNC_MS = 1_000;
/** Between two looks whether a full disk has room again. */
const LOOK_AGAIN_MS = 1_000;

export class JournalWriter {
  readonly #state: QueueState;
  readonly #journal: Journal;
  readonly #reserve: Reserve;
  readonly #clock: Clock;
  #syncPlanned = false;
  #lookedMs = -Infinity;
  /** Written down before anything else as soon as the disk takes it. */
  #owed: JournalRecord[] = [];
  /** What is wrong with the disk; null when nothing is. */
  problem: string | null = null;

  constructor(state: QueueState, journal: Journal, reserve: Reserve, clock: Clock) {
    this.#state = state;
    this.#journal = journal;
    this.#reserve = reserve;
    this.#clock = clock;
    if (!reserve.isHeld) this.problem = FULL;
  }

  /** Records that take something on: a chunk, a request. Throws when the disk has no room beside the reserve. */
  takeOn(...records: JournalRecord[]): void {
    if (!this.hasRoom()) throw new Error(this.problem ?? FULL);
    this.#write(records);
  }

  /** Records that bring something to an end, or say what was ordered. Throws only when the reserve is used up, too. */
  note(...records: JournalRecord[]): void {
    try {
      this.#write(records);
    } catch (error) {
      if (!this.#reserve.isHeld || error instanceof RecordTooLargeError) throw error;
      this.#reserve.giveUp();
      this.#write(records);
      this.problem = FULL;
    }
  }

  /** As `note`, for what has happened anyway: on a disk without any room it counts at once, and is written before the next record. */
  noteAnyway(...records: JournalRecord[]): void {
    try {
      this.note(...records);
    } catch {
      this.#owed.push(...records);
      for (const record of records) this.#state.apply(record);
    }
  }

  /** False on a full disk; looks again when asked, but not more than once a second. */
  hasRoom(): boolean {
    if (this.#reserve.isHeld) return true;
    if (this.#clock.monotonic() - this.#lookedMs < LOOK_AGAIN_MS) return false;
    this.#lookedMs = this.#clock.monotonic();
    if (this.#reserve.take()) this.problem = null;
    return this.#reserve.isHeld;
  }

  /** Resolves when all that was written before is on the disk. */
  async sync(): Promise<void> {
    try {
      await this.#journal.sync();
    } catch (error) {
      this.problem = `the journal cannot be written to the disk: ${describeError(error)}`;
      throw error;
    }
  }

  /** Within a second. */
  syncSoon(): void {
    if (this.#syncPlanned) return;
    this.#syncPlanned = true;
    void this.#syncLater();
  }

  #write(records: readonly JournalRecord[]): void {
    try {
      this.#journal.append([...this.#owed, ...records]);
      this.#owed = [];
    } catch (error) {
      if (error instanceof RecordTooLargeError) throw error;
      this.problem = `the journal cannot be written: ${describeError(error)}`;
      throw error;
    }
    if (this.#reserve.isHeld) this.problem = null;
    for (const record of records) this.#state.apply(record);
  }

  async #syncLater(): Promise<void> {
    await this.#clock.sleep(LAZY_SYNC_MS);
    this.#syncPlanned = false;
    // The problem is kept for the heartbeat; the next write tries again.
    await this.sync().catch(() => undefined);
  }
}

const FULL = 'the disk is full: nothing is taken on, what is there is being uploaded; free some space';

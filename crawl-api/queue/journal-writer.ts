/**
 * Writes records to the journal first and then applies them to the state, so that every answer given is still true
 * after a crash. On a full disk it writes only records that complete work, using the reserve.
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

/** Maximum delay until results are synced to disk; a power cut may lose that much. */
const LAZY_SYNC_MS = 1_000;
/** Interval between two checks whether a full disk has space again. */
const RECHECK_MS = 1_000;

export class JournalWriter {
  readonly #state: QueueState;
  readonly #journal: Journal;
  readonly #reserve: Reserve;
  readonly #clock: Clock;
  readonly #mask: (record: JournalRecord) => JournalRecord;
  #syncPlanned = false;
  #checkedMs = -Infinity;
  /** Records to be written before any others as soon as the disk accepts them. */
  #owed: JournalRecord[] = [];
  /** What is wrong with the disk; null when nothing is. */
  problem: string | null = null;

  constructor(
    state: QueueState,
    { journal, reserve, mask }: { journal: Journal; reserve: Reserve; mask: (record: JournalRecord) => JournalRecord },
    clock: Clock,
  ) {
    this.#state = state;
    this.#journal = journal;
    this.#reserve = reserve;
    this.#clock = clock;
    this.#mask = mask;
    if (!reserve.isHeld) this.problem = FULL;
  }

  /** Writes records that take on work: a chunk, a request. Throws when the disk has no space beside the reserve. */
  takeOn(...records: JournalRecord[]): void {
    if (!this.hasRoom()) throw new Error(this.problem ?? FULL);
    this.#write(records);
  }

  /** Writes records that complete work or store orders. Throws only when the reserve is used up, too. */
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

  /** Notes what has happened as `note` does, but on a full disk it applies at once and is written before the next. */
  noteAnyway(...records: JournalRecord[]): void {
    try {
      this.note(...records);
    } catch {
      const masked = records.map(this.#mask);
      this.#owed.push(...masked);
      for (const record of masked) this.#state.apply(record);
    }
  }

  /** False on a full disk; checks again at most once a second. */
  hasRoom(): boolean {
    if (this.#reserve.isHeld) return true;
    if (this.#clock.monotonic() - this.#checkedMs < RECHECK_MS) return false;
    this.#checkedMs = this.#clock.monotonic();
    if (this.#reserve.take()) this.problem = null;
    return this.#reserve.isHeld;
  }

  /** Resolves when everything written before is on the disk. */
  async sync(): Promise<void> {
    try {
      await this.#journal.sync();
    } catch (error) {
      this.problem = `the journal cannot be written to the disk: ${describeError(error)}`;
      throw error;
    }
  }

  /** Writes the journal to the disk within a second. */
  syncSoon(): void {
    if (this.#syncPlanned) return;
    this.#syncPlanned = true;
    void this.#syncLater();
  }

  #write(given: readonly JournalRecord[]): void {
    const records = given.map(this.#mask);
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
    // `problem` is reported in the heartbeat; the next write retries.
    await this.sync().catch(() => undefined);
  }
}

/** Delay before another attempt to write to a disk that has refused. */
export const DISK_RETRY_MS = 1_000;

/** Repeats the write while the disk refuses it, so that no result is lost; false once `stop` aborts. */
export async function untilWritten(write: () => void, clock: Clock, stop: AbortSignal): Promise<boolean> {
  for (;;) {
    try {
      write();
      return true;
    } catch {
      if (stop.aborted) return false;
      await clock.sleep(DISK_RETRY_MS, stop);
    }
  }
}

const FULL = 'the disk is full: no new work is accepted, existing results are being uploaded; free some space';

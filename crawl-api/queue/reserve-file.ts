/**
 * Disk space reserved for closing the epoch: a file of real bytes next to the journal. On a full disk the file is
 * released, so that results, parts and the manifest can still be written; without it, no new work is accepted.
 */
import { randomFillSync } from 'node:crypto';
import fs from 'node:fs';

/** A closing needs a few records of some hundred bytes per part, and one page's result of at most the page's size. */
const RESERVE_BYTES = 1_048_576;

/** The part that the queue uses. */
export interface Reserve {
  readonly isHeld: boolean;
  /** Reserves the space again; false when the disk is still full. */
  take(): boolean;
  giveUp(): void;
}

export class ReserveFile implements Reserve {
  readonly #path: string;
  #isHeld = false;

  /** Reserves the space immediately if there is any. */
  constructor(path: string) {
    this.#path = path;
    this.take();
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  take(): boolean {
    if (this.#isHeld) return true;
    try {
      if (fs.statSync(this.#path, { throwIfNoEntry: false })?.size !== RESERVE_BYTES) this.#write();
      this.#isHeld = true;
    } catch {
      this.giveUp();
    }
    return this.#isHeld;
  }

  giveUp(): void {
    this.#isHeld = false;
    fs.rmSync(this.#path, { force: true });
  }

  /** Random bytes, which no file system can compress. Not synced: writing them allocates the space. */
  #write(): void {
    const fd = fs.openSync(this.#path, 'w', 0o600);
    try {
      const bytes = randomFillSync(Buffer.allocUnsafe(RESERVE_BYTES));
      for (let done = 0; done < bytes.length;) done += fs.writeSync(fd, bytes, done);
    } finally {
      fs.closeSync(fd);
    }
  }
}

/** A reserve that is always held, for tests and for hosts without a disk. */
export const NO_RESERVE: Reserve = { isHeld: true, take: () => true, giveUp: () => undefined };

/**
 * Room on the disk kept for the end: a file of real bytes beside the journal. On a full disk it is given up, so that results, parts and the
 * manifest can still be written down; as long as it is gone, nothing new is taken on.
 */
import { randomFillSync } from 'node:crypto';
import fs from 'node:fs';

/** A closing needs a few records of some hundred bytes per part, and one page's result of at most the page's size. */
const RESERVE_BYTES = 1_048_576;

/** What the queue needs of it. */
export interface Reserve {
  readonly isHeld: boolean;
  /** Takes the room again; false when the disk is still full. */
  take(): boolean;
  giveUp(): void;
}

export class ReserveFile implements Reserve {
  readonly #path: string;
  #isHeld = false;

  /** Takes the room at once where there is some. */
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

  /** Bytes that no file system can shrink. Not synced: the room is taken when they are written. */
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

/** For tests and for places without a disk: always there. */
export const NO_RESERVE: Reserve = { isHeld: true, take: () => true, giveUp: () => undefined };

/**
 * The journal on disk: one append-only file of records, each with its length and CRC-32. A torn or corrupted record
 * ends the journal: the file is truncated there, and only the records before it are replayed.
 *
 * Layout of a record: length of the payload (4 bytes), CRC-32 of the payload (4 bytes), payload (JSON). Little endian.
 */
import fs from 'node:fs';
import { crc32 } from 'node:zlib';
import type { JournalRecord } from './records.ts';

const HEAD_BYTES = 8;
/** Maximum bytes of a record, far above any real one: a longer length is damage, and a longer record is refused. */
export const MAX_PAYLOAD = 64_000_000;
const READ_BYTES = 65_536;

/** A record too large to be read again. The disk is fine: do not retry. */
export class RecordTooLargeError extends Error {}

/** The calls that fail on a full disk; tests make them fail. */
export interface FileCalls {
  writeSync(fd: number, bytes: Uint8Array, offset: number, length: number, position: number): number;
  ftruncateSync(fd: number, length: number): void;
  fdatasync(fd: number, done: (error: Error | null) => void): void;
}

export interface Replay {
  records: number;
  /** Bytes cut off the end; 0 for a sound file. */
  lostBytes: number;
  /** True when more was truncated than one torn record at the very end: complete records are lost. */
  damaged: boolean;
}

export class JournalFile {
  readonly #fd: number;
  readonly #calls: FileCalls;
  #size: number;
  #syncing: Promise<void> | null = null;
  #nextSync: Promise<void> | null = null;

  private constructor(fd: number, size: number, calls: FileCalls) {
    this.#fd = fd;
    this.#size = size;
    this.#calls = calls;
  }

  /** Opens or creates the file and passes every valid record to `apply`, in order. */
  static open(
    path: string,
    apply: (record: JournalRecord) => void,
    calls: FileCalls = fs,
  ): { file: JournalFile; replay: Replay } {
    const fd = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
    const total = fs.fstatSync(fd).size;
    const replay: Replay = { records: 0, lostBytes: 0, damaged: false };
    const { end, broken } = readRecords(fd, total, (record) => {
      replay.records++;
      apply(record);
    });
    if (end < total) {
      replay.lostBytes = total - end;
      // A crash leaves a torn tail: a record that reaches past the end of the file. Anything else is damage.
      replay.damaged = broken !== 'torn';
      fs.ftruncateSync(fd, end);
      fs.fdatasyncSync(fd);
    }
    return { file: new JournalFile(fd, end, calls), replay };
  }

  /**
   * Appends the records. They survive a killed process; `sync` makes them survive a lost machine. Throws when the disk
   * refuses, or a RecordTooLargeError before writing anything.
   */
  append(records: readonly JournalRecord[]): void {
    const bytes = Buffer.concat(records.map(encodeRecord));
    try {
      for (let done = 0; done < bytes.length;) {
        done += this.#calls.writeSync(this.#fd, bytes, done, bytes.length - done, this.#size + done);
      }
    } catch (error) {
      // The next record must follow a valid one, so truncate what was written of this one.
      this.#calls.ftruncateSync(this.#fd, this.#size);
      throw error;
    }
    this.#size += bytes.length;
  }

  /** Resolves when everything appended before the call is on the disk. Concurrent callers share one sync. */
  sync(): Promise<void> {
    if (!this.#syncing) return this.#startSync();
    // The current sync may have begun before the caller's record was written; the caller waits for the next one.
    this.#nextSync ??= this.#syncing
      .catch(() => undefined)
      .then(() => {
        this.#nextSync = null;
        return this.#startSync();
      });
    return this.#nextSync;
  }

  /** Waits for pending writes and closes the file. */
  async close(): Promise<void> {
    await this.sync();
    fs.closeSync(this.#fd);
  }

  #startSync(): Promise<void> {
    const done = new Promise<void>((resolve, reject) => {
      this.#calls.fdatasync(this.#fd, (error) => (error ? reject(error) : resolve()));
    }).finally(() => {
      this.#syncing = null;
    });
    this.#syncing = done;
    return done;
  }
}

function encodeRecord(record: JournalRecord): Buffer {
  const payload = Buffer.from(JSON.stringify(record));
  if (payload.length > MAX_PAYLOAD)
    throw new RecordTooLargeError(`a record of ${payload.length} bytes exceeds the journal's limit of ${MAX_PAYLOAD}`);
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + payload.length);
  bytes.writeUInt32LE(payload.length, 0);
  bytes.writeUInt32LE(crc32(payload), 4);
  payload.copy(bytes, HEAD_BYTES);
  return bytes;
}

/** Reads record by record, in bounded memory; stops at the first torn or corrupted one. */
function readRecords(
  fd: number,
  total: number,
  apply: (record: JournalRecord) => void,
): { end: number; broken: 'torn' | 'wrong' | null } {
  let end = 0;
  let buffer = Buffer.alloc(0);
  /** Buffers at least `bytes` from `end` on; false when the file is shorter. */
  const have = (bytes: number): boolean => {
    if (buffer.length >= bytes) return true;
    const more = Buffer.allocUnsafe(Math.min(Math.max(bytes - buffer.length, READ_BYTES), total - end - buffer.length));
    const got = more.length === 0 ? 0 : fs.readSync(fd, more, 0, more.length, end + buffer.length);
    buffer = Buffer.concat([buffer, more.subarray(0, got)]);
    return buffer.length >= bytes;
  };
  while (end < total) {
    if (!have(HEAD_BYTES)) return { end, broken: 'torn' };
    const length = buffer.readUInt32LE(0);
    if (length === 0 || length > MAX_PAYLOAD) return { end, broken: 'wrong' };
    if (!have(HEAD_BYTES + length)) {
      // JSON has no control characters, but the headers of records do. With one, the length is wrong.
      return { end, broken: buffer.subarray(HEAD_BYTES).some((byte) => byte < 0x20) ? 'wrong' : 'torn' };
    }
    const payload = buffer.subarray(HEAD_BYTES, HEAD_BYTES + length);
    if (crc32(payload) !== buffer.readUInt32LE(4)) {
      return { end, broken: end + HEAD_BYTES + length === total ? 'torn' : 'wrong' };
    }
    apply(JSON.parse(payload.toString('utf8')) as JournalRecord);
    end += HEAD_BYTES + length;
    buffer = buffer.subarray(HEAD_BYTES + length);
  }
  return { end, broken: null };
}

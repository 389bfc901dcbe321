import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type FileCalls,
  JournalFile,
  MAX_PAYLOAD,
  RecordTooLargeError,
} from '../../../crawl-api/queue/journal-file.ts';
import type { JournalRecord } from '../../../crawl-api/queue/records.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'crawlfleet-journal-'));
  file = path.join(folder, 'journal');
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

const record = (n: number): JournalRecord => ({ t: 'started', n, atMs: n * 10 + 0.5 });

function read(): { records: JournalRecord[]; lostBytes: number; damaged: boolean } {
  const records: JournalRecord[] = [];
  const { replay } = JournalFile.open(file, (r) => records.push(r));
  return { records, lostBytes: replay.lostBytes, damaged: replay.damaged };
}

function write(records: JournalRecord[]): void {
  const opened = JournalFile.open(file, () => undefined).file;
  for (const one of records) opened.append([one]);
}

describe('JournalFile', () => {
  it('returns the written records in order, across several openings', () => {
    const long: JournalRecord = { t: 'offered', chunk: '1-1', products: [{ n: 1, id: '日本"\n'.repeat(50_000) }] };
    write([record(1), long]);
    write([record(2)]);
    expect(read()).toEqual({ records: [record(1), long, record(2)], lostBytes: 0, damaged: false });
  });

  it('refuses a record that it could not read back, without losing others', () => {
    const opened = JournalFile.open(file, () => undefined).file;
    const huge: JournalRecord = { t: 'manifest', text: 'x'.repeat(MAX_PAYLOAD) };
    opened.append([record(1)]);
    expect(() => opened.append([record(2), huge])).toThrow(RecordTooLargeError);
    opened.append([record(3)]);
    expect(read()).toEqual({ records: [record(1), record(3)], lostBytes: 0, damaged: false });
  });

  it('truncates a torn tail, wherever it was torn, and continues after the last good record', () => {
    write([record(1), record(2), record(3)]);
    const whole = fs.readFileSync(file);
    const third = whole.length / 3;
    for (let cut = 1; cut < third; cut++) {
      fs.writeFileSync(file, whole.subarray(0, whole.length - cut));
      expect(read()).toEqual({ records: [record(1), record(2)], lostBytes: third - cut, damaged: false });
      write([record(4)]);
      expect(read().records).toEqual([record(1), record(2), record(4)]);
    }
  });

  it('detects any flipped bit and keeps exactly the records before it', () => {
    const records = [record(1), record(2), record(3), record(4)];
    write(records);
    const whole = fs.readFileSync(file);
    const size = whole.length / 4;
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(7), (at, bit) => {
        const broken = Buffer.from(whole);
        broken[at]! ^= 1 << bit;
        fs.writeFileSync(file, broken);
        const kept = Math.floor(at / size);
        const result = read();
        expect(result.records).toEqual(records.slice(0, kept));
        expect(fs.statSync(file).size).toBe(kept * size);
        // A flip in the last record looks like a torn tail; an earlier one proves that records are lost.
        if (kept < 3) expect(result.damaged).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it('treats a tail of zeros, as left by a power cut, as damage', () => {
    write([record(1)]);
    fs.appendFileSync(file, Buffer.alloc(100));
    expect(read()).toEqual({ records: [record(1)], lostBytes: 100, damaged: true });
  });

  it('removes half a record when the disk is full, so that the next one is readable', () => {
    let room = 30;
    const calls: FileCalls = {
      ftruncateSync: fs.ftruncateSync,
      fdatasync: fs.fdatasync,
      writeSync: (fd, bytes, offset, ...[length, position]) => {
        if (room === 0) throw new Error('ENOSPC');
        const written = fs.writeSync(fd, bytes, offset, Math.min(length, room), position);
        room -= written;
        return written;
      },
    };
    const journal = JournalFile.open(file, () => undefined, calls).file;
    expect(() => journal.append([record(1)])).toThrow('ENOSPC');
    room = 10_000;
    journal.append([record(2)]);
    expect(read()).toEqual({ records: [record(2)], lostBytes: 0, damaged: false });
  });

  it('shares one sync among callers, but never one that began before their record', async () => {
    const pending: (() => void)[] = [];
    const calls: FileCalls = {
      writeSync: fs.writeSync,
      ftruncateSync: fs.ftruncateSync,
      fdatasync: (_fd, done) => void pending.push(() => done(null)),
    };
    const journal = JournalFile.open(file, () => undefined, calls).file;
    const first = journal.sync();
    journal.append([record(1)]);
    let ended = 0;
    const later = [journal.sync(), journal.sync(), journal.sync()].map(async (sync) => {
      await sync;
      ended++;
    });
    expect(pending).toHaveLength(1);
    pending.shift()!();
    await first;
    await Promise.resolve();
    expect(ended).toBe(0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(pending).toHaveLength(1);
    pending.shift()!();
    await Promise.all(later);
    expect(ended).toBe(3);
  });
});

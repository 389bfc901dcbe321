/**
 * One object in one file: the data, then its metadata, then the offset of the metadata. One file can be linked or
 * renamed into place in one step, so an object exists entirely or not at all, even when the sandbox is killed.
 */
import { appendFileSync, closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { z } from 'zod';

/** The last bytes of every object file: this mark, then the length of the record before it. */
const MARK = Buffer.from('CFOBJ1\n\0');
const FOOTER_BYTES = MARK.length + 4;

const recordSchema = z.object({
  key: z.string(),
  sizeBytes: z.int().nonnegative(),
  /** The ETag without quotes. */
  etag: z.string(),
  modifiedMs: z.number(),
  /** Content-Type, Cache-Control … and x-amz-meta-*, returned as received. */
  headers: z.record(z.string(), z.string()),
  /** x-amz-checksum-* received with the data. */
  checksums: z.record(z.string(), z.string()),
});
export type ObjectRecord = z.infer<typeof recordSchema>;

/** Turns a file with only the data into an object file. */
export function appendRecord(path: string, record: ObjectRecord): void {
  const json = Buffer.from(JSON.stringify(record));
  const footer = Buffer.alloc(FOOTER_BYTES);
  MARK.copy(footer);
  footer.writeUInt32BE(json.length, MARK.length);
  appendFileSync(path, Buffer.concat([json, footer]));
}

/** Reads the record of an object; null for a file that is not a complete object file. */
export function readRecord(path: string): ObjectRecord | null {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    const footer = readAt(fd, size - FOOTER_BYTES, FOOTER_BYTES);
    if (!footer?.subarray(0, MARK.length).equals(MARK)) return null;
    const jsonBytes = footer.readUInt32BE(MARK.length);
    const json = readAt(fd, size - FOOTER_BYTES - jsonBytes, jsonBytes);
    const record = json ? recordSchema.parse(JSON.parse(json.toString('utf8'))) : null;
    return record?.sizeBytes === size - FOOTER_BYTES - jsonBytes ? record : null;
  } catch {
    return null;
  } finally {
    closeSync(fd);
  }
}

function readAt(fd: number, position: number, length: number): Buffer | null {
  if (position < 0) return null;
  const buffer = Buffer.alloc(length);
  return readSync(fd, buffer, 0, length, position) === length ? buffer : null;
}

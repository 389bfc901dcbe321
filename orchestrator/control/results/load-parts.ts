/** Loads parts from the bucket into staging: fetched, checked against their hash, loaded in one transaction each. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { type ObjectStore, MAX_OBJECT_BYTES } from '../../../shared/ports/object-store.ts';
import { type ItemResult, itemResultSchema } from '../../../shared/wire/part.ts';
import type { Core } from '../model/core.ts';
import { noteLoad } from '../model/process-state.ts';
import { readAhead, type ReadOutcome } from './read-ahead.ts';
import type { PartRecord } from '../model/stores.ts';
import { gunzipSync } from 'node:zlib';
import type { PartRef } from '../../../shared/wire/callbacks.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';

/** Parts loaded concurrently: while the database works on one, the values of the next are prepared. */
const LANES = 2;

/** The lines of a part. Throws `object-missing` and `object-corrupt`. */
export async function readPart(objects: ObjectStore, part: PartName): Promise<ItemResult[]> {
  const bytes = await fetchPart(objects, part);
  try {
    const results: ItemResult[] = [];
    for (const [start, end] of linesOf(bytes))
      results.push(itemResultSchema.parse(JSON.parse(bytes.toString('utf8', start, end))));
    return results;
  } catch (error) {
    throw notAPart(part.key, error);
  }
}

/** Loads every part that is in the ledger but not in staging. An unreadable part is set aside with an alarm. */
export function loadParts(core: Core, only?: EpochId): Promise<void> {
  return core.oneAtATime(() => loadSeen(core, only));
}

async function loadSeen(core: Core, only?: EpochId): Promise<void> {
  const startedMs = core.clock.now();
  const parts = await core.results.parts({ ...only, state: 'seen' });
  // Each lane takes the next part from the same reads; after a failure the others end the part they are at.
  const reads = readAhead(parts, (p) => readPart(core.objects, p));
  const lanes = await Promise.allSettled(Array.from({ length: LANES }, () => loadEach(core, reads)));
  const failure = lanes.find((lane) => lane.status === 'rejected');
  if (failure) throw failure.reason;
  core.processState.loadMs += core.clock.now() - startedMs;
}

async function loadEach(core: Core, reads: AsyncIterable<[PartRecord, ReadOutcome<ItemResult[]>]>): Promise<void> {
  for await (const [part, read] of reads) {
    if ('error' in read) {
      if (!(read.error instanceof AppError)) throw read.error;
      await core.results.failPart(part, read.error.message);
      await core.alarm(`${read.error.message}; its products count as not crawled`, part);
      continue;
    }
    const startedMs = core.clock.monotonic();
    await core.results.load(part, read.value);
    noteLoad(core.processState, core.clock.monotonic() - startedMs);
  }
}

/** A part of 1,000 products unpacks to some megabytes, with 30 rows each to some ten; a much larger one is not ours. */
const MAX_UNPACKED_BYTES = 200_000_000;
/** Minimum that zlib accepts. */
const MIN_CHUNK_BYTES = 64;
/** Beyond this, memory is allocated only as text arrives: the size in the trailer is unverified. */
const MAX_CHUNK_BYTES = 16_000_000;
const NEWLINE = 0x0a;

/** What is known of a part before it is read; `sizeBytes` as its instance or the bucket listing reports. */
export type PartName = Pick<PartRef, 'key' | 'sha256' | 'sizeBytes'>;

/** The text of a part. Throws `object-missing`, and `object-corrupt` for another size or hash, or what is not gzip. */
export async function fetchPart(objects: ObjectStore, part: PartName): Promise<Buffer> {
  const bytes = await objects.get(part.key, Math.min(part.sizeBytes, MAX_OBJECT_BYTES));
  if (!bytes) throw new AppError('object-missing', `the bucket has no object ${part.key}`);
  if (sha256Hex(bytes) !== part.sha256)
    throw new AppError('object-corrupt', `the object ${part.key} does not have the hash in its name`);
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES, chunkSize: chunkSizeOf(bytes) });
  } catch (error) {
    throw notAPart(part.key, error);
  }
}

/** One piece for all of the text, to save copying: gzip ends with the size of its content, modulo 2^32 (RFC 1952). */
function chunkSizeOf(packed: Uint8Array): number {
  if (packed.length < 4) return MIN_CHUNK_BYTES;
  const size = Buffer.from(packed.buffer, packed.byteOffset, packed.length).readUInt32LE(packed.length - 4);
  // One more than the text: a full piece would be followed by an empty one.
  return Math.min(Math.max(size + 1, MIN_CHUNK_BYTES), MAX_CHUNK_BYTES);
}

/** For a part with the right hash and the wrong content. */
function notAPart(key: string, error: unknown): AppError {
  return new AppError('object-corrupt', `the object ${key} is not a part: ${describeError(error)}`, { cause: error });
}

/** Start and end of each non-empty line: the text of all lines is never in memory beside its bytes and values. */
export function* linesOf(bytes: Buffer): Generator<[start: number, end: number]> {
  for (let start = 0; start < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline;
    if (end > start) yield [start, end];
    start = end + 1;
  }
}

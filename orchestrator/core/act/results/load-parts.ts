/** Loads parts from the bucket into staging: fetched, checked against their hash, loaded in one transaction each. */
import type { EpochId } from '../../../../shared/domain/epoch-id.ts';
import { AppError, describeError } from '../../../../shared/domain/errors.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import { countValues, parseCounted } from '../../../../shared/wire/foreign-json.ts';
import { type ItemResult, itemResultSchema, MAX_LINE_BYTES, PART_PRODUCTS } from '../../../../shared/wire/part.ts';
import type { Core } from '../../model/core.ts';
import { noteLoad } from '../../model/process-state.ts';
import { gzipLines } from './gzip-lines.ts';
import { readAhead, type ReadOutcome } from './read-ahead.ts';
import type { PartResults } from '../../model/part-results.ts';
import type { LoadedPart, PartId, PartRecord } from '../../model/stores.ts';
import type { PartRef } from '../../../../shared/wire/callbacks.ts';
import { sha256Hex } from '../../../../shared/wire/signature.ts';

/** Parts loaded concurrently: while the database works on one, the values of the next are prepared. */
const LANES = 2;

/** Maximum bytes of a part as it is stored. An instance cuts it at 4 million characters, or after one line. */
const MAX_PART_BYTES = 16_000_000;
/** Maximum bytes of its text. */
const MAX_TEXT_BYTES = 200_000_000;
/** Maximum values that are in memory at a time; one line may have more. */
const PIECE_VALUES = 200_000;

/** What is known of a part before it is read; `sizeBytes` as its instance or the bucket listing reports. */
export type PartName = Pick<PartRef, 'key' | 'sha256' | 'sizeBytes'> & Partial<Pick<PartRef, 'products'>>;

/**
 * The results of a part, in pieces if it is larger than an instance makes them: then a wrong line is noticed only when
 * its piece is read. Throws `object-missing` and `object-corrupt`.
 */
export async function readPart(objects: ObjectStore, part: PartName): Promise<PartResults> {
  const packed = await fetchPart(objects, part);
  const pieces = piecesOf(part, packed);
  const { value, done } = await pieces.next();
  if (done === true) return value;
  await pieces.return([]);
  return {
    async *[Symbol.asyncIterator]() {
      yield yield* piecesOf(part, packed);
    },
  };
}

/** The number of its products; their results are not looked at. Throws `object-missing` and `object-corrupt`. */
export async function countProducts(objects: ObjectStore, part: PartName): Promise<number> {
  let products = 0;
  for await (const lines of linesOf(part, await fetchPart(objects, part))) for (const _ of lines) products++;
  return products;
}

/** True for an error that says that the object is missing or damaged, and not that the bucket does not answer. */
export const isDamaged = (error: unknown): error is AppError =>
  error instanceof AppError && error.code.startsWith('object-');

/** The packed bytes of a part with the hash in its name. */
async function fetchPart(objects: ObjectStore, part: PartName): Promise<Uint8Array> {
  const bytes = await objects.get(part.key, Math.min(part.sizeBytes, MAX_PART_BYTES));
  if (!bytes) throw new AppError('object-missing', `the bucket has no object ${part.key}`);
  if (sha256Hex(bytes) !== part.sha256)
    throw new AppError('object-corrupt', `the object ${part.key} does not have the hash in its name`);
  return bytes;
}

/** Its results in pieces of bounded memory, the last one as the return value. */
async function* piecesOf(part: PartName, packed: Uint8Array): AsyncGenerator<ItemResult[], ItemResult[]> {
  let piece: ItemResult[] = [];
  let [bytes, values, n] = [0, 0, 0];
  for await (const lines of linesOf(part, packed)) {
    for (const line of lines) {
      n++;
      try {
        const more = countValues(line);
        if (piece.length > 0 && (bytes + line.length > MAX_LINE_BYTES || values + more > PIECE_VALUES)) {
          yield piece;
          piece = [];
          bytes = values = 0;
        }
        bytes += line.length;
        values += more;
        piece.push(parseCounted(itemResultSchema, line));
      } catch (error) {
        throw notAPart(part.key, error, n);
      }
    }
  }
  return piece;
}

async function* linesOf({ key, products: reported }: PartName, packed: Uint8Array): AsyncGenerator<Iterable<Buffer>> {
  const most = Math.min(reported ?? PART_PRODUCTS, PART_PRODUCTS);
  const text = Math.min(most * MAX_LINE_BYTES, MAX_TEXT_BYTES);
  let n = 0;
  function* counted(lines: Iterable<Buffer>): Generator<Buffer> {
    try {
      for (const line of lines) {
        if (++n > most) throw new Error(`it has more than ${most} products`);
        yield line;
      }
    } catch (error) {
      throw notAPart(key, error, null);
    }
  }
  try {
    for await (const lines of gzipLines(packed, { line: MAX_LINE_BYTES, text })) yield counted(lines);
    if (n < (reported ?? 0)) throw new Error(`it has ${n} products, and not ${reported} as reported`);
  } catch (error) {
    throw notAPart(key, error, null);
  }
}

/** The error for a part with the right hash and the wrong content. */
function notAPart(key: string, error: unknown, line: number | null): AppError {
  if (error instanceof AppError) return error;
  const where = line === null ? '' : `line ${line}: `;
  return new AppError('object-corrupt', `the object ${key} is not a part: ${where}${describeError(error)}`);
}

/** Loads every part that is in the ledger but not in staging. An unreadable part is set aside with an alarm. */
export function loadParts(core: Core, only?: EpochId): Promise<void> {
  return core.oneAtATime(() => loadSeen(core, only));
}

async function loadSeen(core: Core, only?: EpochId): Promise<void> {
  const startedMs = core.clock.now();
  const parts = await core.results.parts({ ...only, state: 'seen' });
  // Each lane takes the next part from the same reads; after a failure the others end the part they are at.
  const reads = readAhead(parts, (p) => core.readPart(core.objects, p));
  const lanes = await Promise.allSettled(Array.from({ length: LANES }, () => loadEach(core, reads)));
  const failure = lanes.find((lane) => lane.status === 'rejected');
  if (failure) throw failure.reason;
  core.processState.loadMs += core.clock.now() - startedMs;
}

async function loadEach(core: Core, reads: AsyncIterable<[PartRecord, ReadOutcome<PartResults>]>): Promise<void> {
  for await (const [part, read] of reads) {
    const startedMs = core.clock.monotonic();
    try {
      if ('error' in read) throw read.error;
      await loadPart(core, part, read.value);
    } catch (error) {
      if (!isDamaged(error)) throw error;
      await setAside(core, part, error);
      continue;
    }
    noteLoad(core.processState, core.clock.monotonic() - startedMs);
  }
}

/** Marks a part of the ledger as unreadable, with an alarm: nothing reads it again. */
export async function setAside(
  core: Pick<Core, 'results' | 'alarm'>,
  part: EpochId & Pick<PartRecord, 'seq'>,
  { message }: AppError,
): Promise<void> {
  await core.results.failPart(part, message);
  await core.alarm(`${message}; its products count as not crawled`, part);
}

/** Loads one part that is in the ledger; an alarm says what of it was put aside. */
export async function loadPart(
  core: Pick<Core, 'results' | 'alarm'>,
  part: PartId & Pick<PartRef, 'key'>,
  results: PartResults,
): Promise<LoadedPart> {
  const loaded = await core.results.load(part, results);
  const { slot, epoch } = part;
  if (loaded.putAside !== undefined)
    await core.alarm(
      `${loaded.putAside} results in ${part.key} were put aside: their products were never granted to slot ${slot} ` +
        `epoch ${epoch}; the instance may be compromised`,
      { slot, epoch },
    );
  return loaded;
}

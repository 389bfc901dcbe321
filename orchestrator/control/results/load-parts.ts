/** Loads parts from the bucket into staging: fetched, checked against their hash, loaded in one transaction each. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { type ItemResult, itemResultSchema } from '../../../shared/wire/part.ts';
import type { Core } from '../model/core.ts';
import { noteLoad } from '../model/process-state.ts';
import { fetchPart, linesOf, notAPart, type PartName } from './part-bytes.ts';
import { readAhead, type ReadOutcome } from './read-ahead.ts';
import type { PartRecord } from '../model/stores.ts';

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

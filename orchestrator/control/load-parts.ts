/** Parts from the bucket into staging: fetched, checked against their hash, loaded one transaction each. */
import { gunzipSync } from 'node:zlib';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import { itemResultSchema } from '../../shared/wire/part.ts';
import { sha256Hex } from '../../shared/wire/signature.ts';
import type { Core } from './core.ts';
import type { PartRecord } from './stores.ts';

/** A part of 1,000 products unpacks to some megabytes; far more means it is not one of ours. */
const MAX_UNPACKED_BYTES = 200_000_000;

/** The lines of a part. Throws `object-missing` and `object-corrupt`. */
export async function readPart(objects: ObjectStore, part: { key: string; sha256: string }): Promise<ItemResult[]> {
  const bytes = await objects.get(part.key);
  if (!bytes) throw new AppError('object-missing', `the bucket has no object ${part.key}`);
  if (sha256Hex(bytes) !== part.sha256)
    throw new AppError('object-corrupt', `the object ${part.key} does not have the hash in its name`);
  try {
    const text = gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }).toString('utf8');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => itemResultSchema.parse(JSON.parse(line)));
  } catch (error) {
    throw new AppError('object-corrupt', `the object ${part.key} is not a part: ${describeError(error)}`, {
      cause: error,
    });
  }
}

/** Loads every part that is in the ledger but not in staging. A part that cannot be read is put aside with an alarm. */
export function loadParts(core: Core, only?: (part: PartRecord) => boolean): Promise<void> {
  return core.oneAtATime(() => loadSeen(core, only));
}

async function loadSeen(core: Core, only?: (part: PartRecord) => boolean): Promise<void> {
  const startedMs = core.clock.now();
  const parts = (await core.results.parts(core.runId)).filter((p) => p.state === 'seen' && (only?.(p) ?? true));
  for (const part of parts) {
    let results: ItemResult[];
    try {
      results = await readPart(core.objects, part);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      await core.results.failPart(core.runId, part, error.message, core.fence);
      await core.alarm(`${error.message}; its products are taken as not crawled`, part);
      continue;
    }
    await core.results.load(core.runId, part, results, core.fence, core.clock.now());
  }
  core.marks.loadMs += core.clock.now() - startedMs;
}

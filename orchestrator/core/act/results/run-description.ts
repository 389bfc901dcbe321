/** The description of a run in the bucket: written before its first launch, read when the database has lost the run. */
import { gzipSync } from 'node:zlib';
import { backoffMs } from '../../../../shared/domain/backoff.ts';
import { AppError, describeError } from '../../../../shared/domain/errors.ts';
import { productListKey, runDescriptionKey } from '../../../../shared/domain/keys.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import {
  decodeRunDescription,
  encodeRunDescription,
  listedProductSchema,
  type RunDescription,
} from '../../../../shared/wire/run-description.ts';
import { parseForeign } from '../../../../shared/wire/foreign-json.ts';
import { importPrivateKey, sha256Hex } from '../../../../shared/wire/signature.ts';
import { gzipLines } from './gzip-lines.ts';
import type { IdList, RunToStore } from '../../model/stores.ts';

/** Reason in the row of an instance that is known from the bucket only. */
export const REBUILT = 'rebuilt';

/** Products in one list object: some 2 MB of text. */
const LIST_PRODUCTS = 50_000;
/** Lines that are strings at a time. */
const LINES = 1_000;
/** The largest list, and the largest of its lines: 50,000 IDs of 2,000 bytes, each of them escaped. */
const LIST_BYTES = { text: 700_000_000, line: 20_000 };

/** S3 answers SlowDown for some seconds while it scales, for longer than the SDK retries. */
const TRIES = 7;
const PAUSES = { firstMs: 250, maxMs: 10_000 };

/**
 * Writes the lists of products, then the description that names them. Idempotent for the same run. While the bucket
 * refuses, it retries for a quarter of a minute; then it throws the bucket's error: nothing has been launched yet.
 */
export async function writeRunDescription(
  objects: ObjectStore,
  run: RunToStore,
  ids: IdList,
  clock: Clock,
): Promise<void> {
  const products: RunDescription['products'] = [];
  for (let first = 0; first < ids.length; first += LIST_PRODUCTS) {
    const end = Math.min(first + LIST_PRODUCTS, ids.length);
    const bytes = gzipSync(textOf(run, ids, { first, end }), { level: 3 });
    const key = productListKey(run.id, products.length);
    await put({ objects, clock }, key, bytes, 'application/gzip');
    products.push({ key, sha256: sha256Hex(bytes), products: end - first });
  }
  const description: RunDescription = {
    version: 1,
    run: run.id,
    parent: run.parentId,
    startedAt: new Date(run.startedAtMs).toISOString(),
    deadline: new Date(run.deadlineAtMs).toISOString(),
    dryRun: run.dryRun,
    planned: run.planned,
    duplicates: run.duplicates,
    publicKey: run.publicKey,
    // The control token of a sandbox is a secret of this machine.
    settings: { ...run.settings, sandbox: null },
    plan: { ...run.plan },
    products,
  };
  const bytes = encodeRunDescription(description, importPrivateKey(run.privateKey));
  await put({ objects, clock }, runDescriptionKey(run.id), bytes, 'application/json');
}

/** The lines of one list; few of them are strings at a time. */
function textOf({ urls }: RunToStore, ids: IdList, { first, end }: { first: number; end: number }): Buffer {
  const pieces: Buffer[] = [];
  for (let from = first; from < end; from += LINES) {
    const some = ids.slice(from, Math.min(from + LINES, end));
    const lines = some.map((id, i) => `${JSON.stringify({ n: from + i + 1, id, url: urls?.get(id) })}\n`);
    pieces.push(Buffer.from(lines.join('')));
  }
  return Buffer.concat(pieces);
}

async function put(
  { objects, clock }: { objects: ObjectStore; clock: Clock },
  key: string,
  bytes: Uint8Array,
  type: string,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await objects.putIfAbsent(key, bytes, type);
      return;
    } catch (error) {
      if (error instanceof AppError || attempt === TRIES) throw error;
      await clock.sleep(backoffMs(attempt - 1, PAUSES));
    }
  }
}

/** The description of a run; null when the bucket has none. Throws `object-corrupt`. */
export async function readRunDescription(objects: ObjectStore, runId: string): Promise<RunDescription | null> {
  const key = runDescriptionKey(runId);
  const bytes = await objects.get(key);
  if (!bytes) return null;
  try {
    const description = decodeRunDescription(bytes);
    if (description.run !== runId) throw new Error(`it describes run ${description.run}`);
    return description;
  } catch (error) {
    throw new AppError('object-corrupt', `the object ${key} does not describe the run: ${describeError(error)}`, {
      cause: error,
    });
  }
}

/**
 * The IDs of the run's products in the order of their numbers, and the URLs of those that have their own. Throws
 * `object-missing` and `object-corrupt`.
 */
export async function readProductList(
  objects: ObjectStore,
  description: RunDescription,
): Promise<{ ids: string[] } & Pick<RunToStore, 'urls'>> {
  const ids: string[] = [];
  const urls = new Map<string, string>();
  for (const { key, sha256, products } of description.products) {
    const bytes = await objects.get(key);
    if (!bytes) throw new AppError('object-missing', `the bucket has no object ${key}`);
    if (sha256Hex(bytes) !== sha256)
      throw new AppError('object-corrupt', `the object ${key} does not have the hash that run.json names`);
    const before = ids.length;
    try {
      for await (const lines of gzipLines(bytes, LIST_BYTES))
        for (const line of lines) {
          const { n, id, url } = parseForeign(listedProductSchema, line);
          if (n !== ids.length + 1) throw new Error(`it has no product ${ids.length + 1}`);
          ids.push(id);
          if (url !== undefined) urls.set(id, url);
        }
    } catch (error) {
      throw new AppError('object-corrupt', `the object ${key} is not a list of products: ${describeError(error)}`, {
        cause: error,
      });
    }
    if (ids.length - before !== products)
      throw new AppError('object-corrupt', `the object ${key} does not have ${products} products`);
  }
  return { ids, ...(urls.size === 0 ? {} : { urls }) };
}

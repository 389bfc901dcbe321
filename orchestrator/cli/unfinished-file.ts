/** The products that a run did not finish, beside its report: what remains when the deadline came first. */
import { createWriteStream, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { NOT_CRAWLED } from '../../shared/domain/outcome.ts';
import type { WorkStore } from '../control/model/stores.ts';
import { listFailed } from './list-failed.ts';

/**
 * Writes `unfinished.ndjson` (`{"id","reason"}` a line, in the order of the product list) into the folder; returns null
 * when no product is unfinished. Rejects when the file cannot be written.
 */
export async function writeUnfinished(
  work: WorkStore,
  runId: string,
  folder: string,
): Promise<{ file: string; products: number } | null> {
  if ((await work.failedProducts(runId, 0, 1, NOT_CRAWLED)).length === 0) return null;
  let products = 0;
  const lines = async function* (): AsyncGenerator<string> {
    for await (const { id, reason } of listFailed(work, runId, NOT_CRAWLED)) {
      products++;
      yield `${JSON.stringify({ id, reason })}\n`;
    }
  };
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'unfinished.ndjson');
  // Whole or not at all: the user may feed it to the next run.
  await pipeline(Readable.from(lines()), createWriteStream(`${file}.new`));
  renameSync(`${file}.new`, file);
  return { file, products };
}

/** Rows of crawlfleet_chunks and the products behind them. */
import type { Knex } from 'knex';
import type { ChunkState } from '../../../shared/domain/phases.ts';
import type { ChunkRange } from '../../../shared/domain/sharing.ts';
import { bulkInsert } from './bulk-insert.ts';
import type { Database } from './connect.ts';
import { inPieces, rowsOf } from './rows.ts';

export const CHUNKS = 'crawlfleet_chunks';
export const ITEMS = 'crawlfleet_items';

/** Integer columns are numbers on both engines; only BIGINT, and what is counted or summed, may come as text. */
export interface ChunkRow {
  idx: number;
  first_n: number;
  last_n: number;
  products: number;
  generation: number;
  state: ChunkState;
  slot: number | null;
  epoch: number | null;
}

/** `<index>-<generation>` */
export function chunkId(row: Pick<ChunkRow, 'idx' | 'generation'>): string {
  return `${row.idx}-${row.generation}`;
}

/** The reverse of chunkId; null for any other text, because instances send these. */
export function parseChunkId(id: string): { index: number; generation: number } | null {
  const match = /^([1-9]\d{0,8})-([1-9]\d{0,8})$/.exec(id);
  return match ? { index: Number(match[1]), generation: Number(match[2]) } : null;
}

/** Ranges per statement: enough for a few round trips, few enough that the optimizer uses the key for each. */
const RANGES = 50;

export interface OpenItem {
  n: number;
  product_id: string;
  /** What stands for its ID on instances: in a discovery the path of the page, with `site.hosts` its URL. */
  path: string | null;
}

/** What instances know the product by. */
export const idOnWire = ({ product_id, path }: Pick<OpenItem, 'product_id' | 'path'>): string => path ?? product_id;

/** The URL of a product that has its own; null for one whose ID makes the URL, and in a discovery. */
export const ownUrl = ({ path }: Pick<OpenItem, 'path'>): string | null =>
  path === null || path.startsWith('/') ? null : path;

const CHUNK_COLUMNS = ['run_id', 'idx', 'first_n', 'last_n', 'products', 'generation', 'state'] as const;

/** Adds chunks that wait. */
export async function insertChunks(
  trx: Knex.Transaction,
  db: Database,
  runId: string,
  chunks: readonly ChunkRange[],
): Promise<void> {
  const rows = chunks.map(({ index, first, last }) => [runId, index, first, last, last - first + 1, 1, 'waiting']);
  await bulkInsert(trx, db, { table: CHUNKS, columns: CHUNK_COLUMNS, existing: 'error' }, rows);
}

/** A chunk, and its products without an outcome; there may be none. */
interface ChunkWithOpen {
  chunk: ChunkRow;
  open: OpenItem[];
}

/** The products of these chunks without an outcome; the chunks are in the order given. */
export async function openItems(knex: Knex, runId: string, chunks: readonly ChunkRow[]): Promise<ChunkWithOpen[]> {
  const found = chunks.map((chunk): ChunkWithOpen => ({ chunk, open: [] }));
  const ordered = [...found].sort((a, b) => a.chunk.first_n - b.chunk.first_n);
  for (const piece of inPieces(ordered, RANGES)) {
    const rows = await rowsOf<OpenItem>(
      knex(ITEMS)
        .where({ run_id: runId })
        .whereNull('outcome')
        .where((any) => {
          for (const { chunk } of piece) any.orWhereBetween('n', [chunk.first_n, chunk.last_n]);
        })
        .orderBy('n')
        .select('n', 'product_id', 'path'),
    );
    // Advances in step with the chunks: both are sorted by n.
    let at = 0;
    for (const { chunk, open } of piece)
      for (let row = rows[at]; row !== undefined && row.n <= chunk.last_n; row = rows[++at]) open.push(row);
  }
  return found;
}

/** Closes those of these chunks that wait with nothing left to crawl, so that nothing waits for them. */
export async function closeSettled(knex: Knex, runId: string, waiting: readonly ChunkRow[]): Promise<void> {
  if (waiting.length === 0) return;
  for (const { chunk, open } of await openItems(knex, runId, waiting))
    if (open.length === 0) await closeChunk(knex, runId, chunk);
}

/** Closes a chunk if it is still waiting in that generation. */
export async function closeChunk(knex: Knex, runId: string, row: ChunkRow): Promise<void> {
  const { idx, generation } = row;
  await knex(CHUNKS).where({ run_id: runId, idx, generation, state: 'waiting' }).update({ state: 'closed' });
}

/** Rows of crawlfleet_chunks and the products behind them. */
import type { Knex } from 'knex';
import { hostGroupOf, type HostKey } from '../../../shared/domain/host-key.ts';
import type { Product } from '../../../shared/domain/product.ts';
import type { ChunkState } from '../../../shared/domain/phases.ts';
import { type ChunkRange, isFirst, NOT_NEXT_MS } from '../../../shared/domain/sharing.ts';
import { bulkInsert, type ColumnList } from './bulk-insert.ts';
import type { Database } from './connect.ts';
import { inPieces, rowsOf, type SqlNumber } from './rows.ts';

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
  /** Granted: its owner. Waiting: the owner of the host that it is the next slice of. */
  slot: number | null;
  epoch: number | null;
  /** As `ChunkHosts` has it; null in a run of one site, too. */
  slice_of: number | null;
  /** Null in a run of one site. */
  left_ms: SqlNumber | null;
  /** As `SliceDue` has it; null: no host has to rest. */
  due_at: SqlNumber | null;
}

/** A slice of a host. */
export type SliceRow = ChunkRow & { slice_of: number };

export const isSlice = (row: ChunkRow): row is SliceRow => row.slice_of !== null;

/** `<index>-<generation>` */
export function chunkId(row: Pick<ChunkRow, 'idx' | 'generation'>): string {
  return `${row.idx}-${row.generation}`;
}

/** The reverse of chunkId; null for any other text, because instances send these. */
export function parseChunkId(id: string): { index: number; generation: number } | null {
  const match = /^([1-9]\d{0,8})-([1-9]\d{0,8})$/.exec(id);
  return match ? { index: Number(match[1]), generation: Number(match[2]) } : null;
}

/** Ranges per statement: SQLite takes at most 500. */
const RANGES = 50;

export interface OpenItem {
  n: number;
  product_id: string;
  /** What stands for its ID on instances: in a discovery the path of the page, with `site.hosts` its URL. */
  path: string | null;
  /** Of many hosts: where its page has moved to, at another host. */
  moved_to: string | null;
  /** Of many hosts: the robots.txt of another host that holds for its origin. */
  robots_url: string | null;
}

/** Columns of an item, as OpenItem has them. */
export const ITEM_COLUMNS = ['n', 'product_id', 'path', 'moved_to', 'robots_url'] as const;

/** What instances know the product by. */
export const idOnWire = ({ product_id, path, moved_to }: Pick<OpenItem, 'product_id' | 'path' | 'moved_to'>): string =>
  moved_to ?? path ?? product_id;

/** The product as it is offered. */
export const productOnWire = (item: OpenItem): Product => ({
  n: item.n,
  id: idOnWire(item),
  ...(item.robots_url === null ? {} : { robots: item.robots_url }),
});

/** The URL of a product that has its own; null for one whose ID makes the URL, and in a discovery. */
export const ownUrl = ({ path }: Pick<OpenItem, 'path'>): string | null =>
  path === null || path.startsWith('/') ? null : path;

/** The host of a product that has a URL to request; else null. */
export const hostOfItem = (
  { path, moved_to = null }: Pick<OpenItem, 'path'> & Partial<OpenItem>,
  key?: HostKey,
): string | null => hostOfUrl(moved_to ?? ownUrl({ path }), key);

/** All hosts that are asked for a product: its own first, then the one whose robots.txt holds for it. */
export function hostsOfItem(item: OpenItem, key?: HostKey): string[] {
  const hosts = [hostOfItem(item, key), hostOfUrl(item.robots_url, key)].filter((host) => host !== null);
  return [...new Set(hosts)];
}

function hostOfUrl(text: string | null, key?: HostKey): string | null {
  const url = URL.parse(text ?? '');
  return url !== null && /^https?:$/.test(url.protocol) ? hostGroupOf(url, key) : null;
}

const CHUNK_COLUMNS = ['run_id', 'idx', 'first_n', 'last_n', 'products', 'generation', 'state'] as const;
const HOST_COLUMNS = ['slice_of', 'left_ms', 'due_at'] as const;

/** Adds chunks that wait: all of one site, or all cut by host. */
export async function insertChunks(
  trx: Knex.Transaction,
  db: Database,
  runId: string,
  chunks: readonly ChunkRange[],
): Promise<void> {
  const rows = chunks.map(({ index, first, last, hosts }) => {
    const row = [runId, index, first, last, last - first + 1, 1, 'waiting'];
    return hosts === undefined
      ? row
      : [...row, hosts.sliceOf, hosts.leftMs, isFirst(hosts, index) ? null : NOT_NEXT_MS];
  });
  const columns: ColumnList = chunks[0]?.hosts === undefined ? CHUNK_COLUMNS : [...CHUNK_COLUMNS, ...HOST_COLUMNS];
  await bulkInsert(trx, db, { table: CHUNKS, columns, existing: 'error' }, rows);
}

/** A chunk, and its products without an outcome; there may be none. */
export interface ChunkWithOpen {
  chunk: ChunkRow;
  open: OpenItem[];
}

/** The products of these chunks without an outcome; the chunks are in the order given. */
export async function openItems(knex: Knex, runId: string, chunks: readonly ChunkRow[]): Promise<ChunkWithOpen[]> {
  const found = chunks.map((chunk): ChunkWithOpen => ({ chunk, open: [] }));
  const ordered = [...found].sort((a, b) => a.chunk.first_n - b.chunk.first_n);
  for (const piece of inPieces(ordered, RANGES)) {
    // Each by the key: for ranges joined by OR, SQLite reads all products of the run.
    const [first, ...others] = piece.map(({ chunk }) =>
      knex(ITEMS)
        .where({ run_id: runId })
        .whereNull('outcome')
        .whereBetween('n', [chunk.first_n, chunk.last_n])
        .select(ITEM_COLUMNS),
    );
    const rows = (await rowsOf<OpenItem>(first!.unionAll(others))).sort((a, b) => a.n - b.n);
    // Advances in step with the chunks: both are sorted by n.
    let at = 0;
    for (const { chunk, open } of piece)
      for (let row = rows[at]; row !== undefined && row.n <= chunk.last_n; row = rows[++at]) open.push(row);
  }
  return found;
}

/** Closes a chunk that is no slice of a host, if it is still waiting in that generation. */
export async function closeChunk(knex: Knex, runId: string, row: ChunkRow): Promise<void> {
  const { idx, generation } = row;
  await knex(CHUNKS).where({ run_id: runId, idx, generation, state: 'waiting' }).update({ state: 'closed' });
}

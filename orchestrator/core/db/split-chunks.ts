/** Waiting chunks that cannot be granted as they are: some of their hosts have to wait, or are denied. */
import type { Knex } from 'knex';
import { type ChunkRow, CHUNKS, closeChunk, isSlice } from './chunk-rows.ts';
import { copyGrants } from './grants.ts';
import { closeSlices } from './host-slices.ts';
import { inPieces, rowOf } from './rows.ts';

/** Rows per INSERT. */
const LIST = 250;

/** The products of one host in a chunk, as far as they have no outcome. */
export interface HostPart {
  first: number;
  open: number;
  /** When it is to be tried again; null: it may be granted now. */
  dueAtMs: number | null;
}

/** A range of a chunk. */
export interface Piece {
  first: number;
  last: number;
  open: number;
  dueAtMs: number | null;
}

/**
 * Cuts a chunk: each host that has to wait is a piece of its own, the others stay together where they are neighbours.
 * The pieces are in order and have every number of the chunk once. Of one without parts there are none.
 *
 * @param parts in order
 */
export function piecesOf(
  { first_n, last_n }: Pick<ChunkRow, 'first_n' | 'last_n'>,
  parts: readonly HostPart[],
): Piece[] {
  const pieces: Piece[] = [];
  for (const { first, open, dueAtMs } of parts) {
    const before = pieces.at(-1);
    if (before !== undefined && before.dueAtMs === null && dueAtMs === null) {
      before.open += open;
      continue;
    }
    if (before !== undefined) before.last = first - 1;
    pieces.push({ first: before === undefined ? first_n : first, last: last_n, open, dueAtMs });
  }
  return pieces;
}

/** A locked, waiting chunk that is not granted, and its hosts. */
export interface Postponed {
  chunk: ChunkRow;
  /** In order. */
  parts: readonly HostPart[];
  /** Some of its products have been settled: an instance that was offered it must not get those. */
  isSmaller: boolean;
}

/**
 * Writes what becomes of these chunks. One with whole hosts is cut into pieces: one of them keeps the index, in the
 * next generation, because instances were offered more. The others are new chunks, granted to whom the whole one was.
 * A slice, and a chunk of a single host, only waits.
 */
export async function postpone(trx: Knex.Transaction, runId: string, postponed: readonly Postponed[]): Promise<void> {
  const added: { chunk: ChunkRow; piece: Piece }[] = [];
  for (const { chunk, parts, isSmaller } of [...postponed].sort((a, b) => a.chunk.idx - b.chunk.idx)) {
    const pieces = isSlice(chunk) ? sliceOf(chunk, parts) : piecesOf(chunk, parts);
    const kept = pieces.find(({ dueAtMs }) => dueAtMs === null) ?? pieces[0];
    if (kept === undefined) {
      if (isSlice(chunk)) await closeSlices(trx, runId, [chunk]);
      else await closeChunk(trx, runId, chunk);
      continue;
    }
    const isSame = pieces.length === 1 && !isSmaller;
    const { first, last, open } = kept;
    await trx(CHUNKS)
      .where({ run_id: runId, idx: chunk.idx })
      .update({
        due_at: kept.dueAtMs,
        ...(isSame ? {} : { first_n: first, last_n: last, products: open, generation: chunk.generation + 1 }),
      });
    for (const piece of pieces) if (piece !== kept) added.push({ chunk, piece });
  }
  if (added.length > 0) await addPieces(trx, runId, added);
}

/** A slice stays whole: the slices of a host are one after the other. */
function sliceOf({ first_n, last_n }: ChunkRow, parts: readonly HostPart[]): Piece[] {
  if (parts.length === 0) return [];
  const waits = parts.flatMap(({ dueAtMs }) => dueAtMs ?? []);
  const open = parts.reduce((sum, part) => sum + part.open, 0);
  return [{ first: first_n, last: last_n, open, dueAtMs: waits.length === 0 ? null : Math.max(...waits) }];
}

async function addPieces(
  trx: Knex.Transaction,
  runId: string,
  added: readonly { chunk: ChunkRow; piece: Piece }[],
): Promise<void> {
  // One transaction at a time numbers new chunks.
  await trx('crawlfleet_runs').where({ id: runId }).forUpdate().first('id');
  const ordered = trx(CHUNKS).where({ run_id: runId }).orderBy('idx', 'desc');
  const lastIndex = (await rowOf<Pick<ChunkRow, 'idx'>>(ordered.first('idx')))?.idx ?? 0;
  const rows = added.map(({ chunk, piece }, i) => ({
    run_id: runId,
    idx: lastIndex + 1 + i,
    first_n: piece.first,
    last_n: piece.last,
    products: piece.open,
    // Late results may settle it, if the whole one was granted: then it is of a later generation than the first.
    generation: chunk.generation,
    state: 'waiting',
    slice_of: null,
    // At most as long as the longest host of the whole one.
    left_ms: chunk.left_ms,
    due_at: piece.dueAtMs,
  }));
  for (const some of inPieces(rows, LIST)) await trx(CHUNKS).insert(some);
  const copies = added.flatMap(({ chunk }, i) =>
    chunk.generation > 1 ? [{ from: chunk.idx, to: lastIndex + 1 + i }] : [],
  );
  await copyGrants(trx, runId, copies);
}

/**
 * The slices of hosts among the rows of crawlfleet_chunks. Of those of one host that wait only the first is due at some
 * time. Its columns say who owns the host, and from when on it is offered. A transaction that changes them has locked
 * that row; those of several hosts in the order of their indexes, so that two of them wait for each other instead of
 * deadlocking.
 */
import type { Knex } from 'knex';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { beginsAtMs, NOT_NEXT_MS, nextDueAtMs } from '../../../shared/domain/sharing.ts';
import {
  type ChunkRow,
  CHUNKS,
  type ChunkWithOpen,
  closeChunk,
  isSlice,
  openItems,
  type SliceRow,
} from './chunk-rows.ts';
import { rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';

type Key = { run_id: string } & EpochId;

/** Who has a host, and from when on its next slice is offered: to that instance alone, or to all. */
interface NextOffer {
  owner: EpochId | null;
  dueAt: SqlNumber | null;
}

/** True when a waiting chunk may be granted now. */
export const isDue = ({ due_at }: Pick<ChunkRow, 'due_at'>, nowMs: number): boolean =>
  due_at === null || toNumber(due_at) <= nowMs;

/** The only instance that a waiting chunk is offered to; null: any. */
export const keptFor = ({ slot, epoch }: Pick<ChunkRow, 'slot' | 'epoch'>): EpochId | null =>
  slot === null || epoch === null ? null : { slot, epoch };

/** Grants these waiting chunks, which are due and locked; of a slice the next one is kept for the same instance. */
export async function grantHosts(
  trx: Knex.Transaction,
  { run_id, slot, epoch }: Key,
  rows: readonly ChunkRow[],
  nowMs: number,
): Promise<void> {
  const values = { state: 'granted', slot, epoch, granted_at: nowMs };
  const whole = rows.filter((row) => !isSlice(row)).map(({ idx }) => idx);
  if (whole.length > 0)
    await trx(CHUNKS)
      .where({ run_id })
      .whereIn('idx', whole)
      .update({ ...values, due_at: nowMs });
  const slices = rows.filter(isSlice).sort((a, b) => a.idx - b.idx);
  for (const slice of slices) {
    const nextLeftMs = await leftAfterMs(trx, run_id, slice);
    const leftMs = toNumber(slice.left_ms);
    const waitedMs = keptFor(slice) === null || slice.due_at === null ? null : toNumber(slice.due_at);
    const dueAtMs = beginsAtMs(nowMs, waitedMs, leftMs - nextLeftMs);
    await trx(CHUNKS)
      .where({ run_id, idx: slice.idx })
      .update({ ...values, due_at: dueAtMs });
    const dueAt = nextDueAtMs({ dueAtMs, leftMs }, nextLeftMs);
    await offerNext(trx, run_id, slice.slice_of, { owner: { slot, epoch }, dueAt });
  }
}

/**
 * What became of hosts while `change` made these locked chunks of an instance wait again. Before it, no slice of a host
 * that the instance owns is due; after it, the first one is offered as `nextOf` says.
 * @param isGone it keeps no slice, so that hosts are freed of which it has crawled all it was granted
 */
export async function leaveHosts<T>(
  trx: Knex.Transaction,
  key: Key,
  chunks: readonly ChunkWithOpen[],
  {
    isGone,
    change,
    nextOf,
  }: {
    isGone: boolean;
    change: () => Promise<T>;
    nextOf: (sliceOf: number) => Promise<NextOffer>;
  },
): Promise<T> {
  /** True where a slice of the host is left that it has not crawled. */
  const hosts = new Map<number, boolean>();
  for (const { chunk, open } of chunks)
    if (isSlice(chunk)) hosts.set(chunk.slice_of, hosts.get(chunk.slice_of) === true || open.length > 0);
  const left: number[] = [];
  for (const [sliceOf, isOpen] of [...hosts].sort(([a], [b]) => a - b)) {
    if (!isOpen && !isGone) continue;
    const next = await lockNext(trx, key.run_id, sliceOf);
    // Of a host that it has left before, another instance is the owner now.
    if (!isOpen && (next?.slot !== key.slot || next.epoch !== key.epoch)) continue;
    left.push(sliceOf);
    if (next !== null) await setNext(trx, key.run_id, next, { owner: null, dueAt: NOT_NEXT_MS });
  }
  const changed = await change();
  for (const sliceOf of left) {
    const at = await nextOf(sliceOf);
    await offerNext(trx, key.run_id, sliceOf, at);
    if (at.owner === null)
      await trx(CHUNKS)
        .where({ ...key, state: 'granted', slice_of: sliceOf })
        .update({ due_at: null });
  }
  return changed;
}

/** To whom the next slice is offered after the owner has given some away: to it while it has another one to crawl. */
export async function nextAfterTransfer(trx: Knex.Transaction, key: Key, sliceOf: number): Promise<NextOffer> {
  const own = await rowsOf<SliceRow>(
    trx(CHUNKS)
      .where({ ...key, state: 'granted', slice_of: sliceOf })
      .orderBy('idx'),
  );
  const last = (await openItems(trx, key.run_id, own)).findLast(({ open }) => open.length > 0)?.chunk;
  if (last === undefined) return { owner: null, dueAt: null };
  const slice = { dueAtMs: toNumber(last.due_at), leftMs: toNumber(last.left_ms) };
  return { owner: key, dueAt: nextDueAtMs(slice, await leftAfterMs(trx, key.run_id, last)) };
}

/** Closes those of these chunks that wait with nothing left to crawl, so that nothing waits for them. */
export async function closeSettled(trx: Knex.Transaction, runId: string, waiting: readonly ChunkRow[]): Promise<void> {
  if (waiting.length === 0) return;
  const settled = (await openItems(trx, runId, waiting)).flatMap(({ chunk, open }) =>
    open.length === 0 ? [chunk] : [],
  );
  for (const chunk of settled) if (!isSlice(chunk)) await closeChunk(trx, runId, chunk);
  await closeSlices(trx, runId, settled.filter(isSlice));
}

/** Closes slices if they still wait in that generation; the next one is offered in place of each. */
export async function closeSlices(trx: Knex.Transaction, runId: string, slices: readonly SliceRow[]): Promise<void> {
  for (const { idx, generation, slice_of } of [...slices].sort((a, b) => a.idx - b.idx)) {
    const waiting = trx(CHUNKS).where({ run_id: runId, idx, generation, state: 'waiting' });
    const row = await rowOf<ChunkRow>(waiting.forUpdate().first());
    if (row === undefined) continue;
    await trx(CHUNKS).where({ run_id: runId, idx }).update({ state: 'closed', slot: null, epoch: null });
    if (row.due_at === null || toNumber(row.due_at) !== NOT_NEXT_MS)
      await offerNext(trx, runId, slice_of, { owner: keptFor(row), dueAt: row.due_at });
  }
}

/** Offers the first waiting slice of a host; nothing where none waits. */
async function offerNext(trx: Knex.Transaction, runId: string, sliceOf: number, at: NextOffer): Promise<void> {
  const next = await lockNext(trx, runId, sliceOf);
  if (next !== null) await setNext(trx, runId, next, at);
}

async function setNext(
  trx: Knex.Transaction,
  runId: string,
  { idx }: SliceRow,
  { owner, dueAt }: NextOffer,
): Promise<void> {
  await trx(CHUNKS)
    .where({ run_id: runId, idx })
    .update({ slot: owner?.slot ?? null, epoch: owner?.epoch ?? null, due_at: dueAt });
}

/** The first slice of a host that waits, locked. */
async function lockNext(trx: Knex.Transaction, runId: string, sliceOf: number): Promise<SliceRow | null> {
  for (;;) {
    // Slices of a host are one after the other. Without a lock: the row that it finds may be of another host.
    const waiting = trx(CHUNKS).where({ run_id: runId, state: 'waiting' }).where('idx', '>=', sliceOf).orderBy('idx');
    const found = await rowOf<Pick<ChunkRow, 'idx' | 'slice_of'>>(waiting.first('idx', 'slice_of'));
    if (found?.slice_of !== sliceOf) return null;
    const same = trx(CHUNKS).where({ run_id: runId, idx: found.idx, state: 'waiting' });
    const row = await rowOf<SliceRow>(same.forUpdate().first());
    // Another transaction may have closed it meanwhile.
    if (row !== undefined) return row;
  }
}

/** How long the slices of the host take that follow this one. */
async function leftAfterMs(trx: Knex.Transaction, runId: string, { idx, slice_of }: ChunkRow): Promise<number> {
  const after = trx(CHUNKS).where({ run_id: runId, idx: idx + 1, slice_of });
  return toNumber((await rowOf<Pick<ChunkRow, 'left_ms'>>(after.first('left_ms')))?.left_ms);
}

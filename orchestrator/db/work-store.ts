/** WorkStore on knex: the owner of each chunk, and what is left to crawl. */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import type { Knex } from 'knex';
import type { FailureReason, Outcome, OutcomeCounts } from '../../shared/domain/outcome.ts';
import type { InstancePhase } from '../../shared/domain/states.ts';
import { isServing } from '../../shared/domain/states.ts';
import type { FailedProduct, OpenChunk, OwnedChunk, WorkCounts, WorkStore } from '../control/model/stores.ts';
import type { ChunkRow } from './chunk-rows.ts';
import { CHUNKS, ITEMS, chunkId, closeChunk, openItems, parseChunkId } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { assertFence } from './locks.ts';
import { inQuery, inTransaction } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { inPieces, toNumber, rowOf, rowsOf } from './rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

/** Indexes in one IN list. */
const LIST = 1_000;

export class KnexWorkStore implements WorkStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  counts(runId: string): Promise<WorkCounts> {
    return inQuery(this.#db, async (knex) => {
      const rows = await rowsOf<
        Pick<ChunkRow, 'state' | 'slot' | 'epoch' | 'products'> & {
          chunks: SqlNumber;
        }
      >(
        knex(CHUNKS)
          .where({ run_id: runId })
          .groupBy('state', 'slot', 'epoch')
          .orderBy(['slot', 'epoch'])
          .select('state', 'slot', 'epoch')
          .count({ chunks: '*' })
          .sum({ products: 'products' }),
      );
      const counts: WorkCounts = { chunks: 0, waiting: 0, granted: 0, bySlot: [] };
      for (const row of rows) {
        const chunks = toNumber(row.chunks);
        counts.chunks += chunks;
        if (row.state === 'waiting') counts.waiting += chunks;
        if (row.state !== 'granted') continue;
        counts.granted += chunks;
        const at = { slot: toNumber(row.slot), epoch: toNumber(row.epoch) };
        counts.bySlot.push({ ...at, chunks, products: toNumber(row.products) });
      }
      return counts;
    });
  }

  waiting(runId: string, limit: number, except: Pick<ReadonlySet<string>, 'has' | 'size'>): Promise<OpenChunk[]> {
    return inQuery(this.#db, async (knex) => {
      const rows = await rowsOf<ChunkRow>(
        knex(CHUNKS)
          .where({ run_id: runId, state: 'waiting' })
          .orderBy('idx')
          .limit(limit + except.size),
      );
      const wanted = rows.filter((row) => !except.has(chunkId(row))).slice(0, limit);
      const open = await openItems(knex, runId, wanted);
      const chunks: OpenChunk[] = [];
      for (const row of wanted) {
        const products = open.get(toNumber(row.idx))!.map((p) => ({ n: p.n, id: p.product_id }));
        if (products.length > 0) chunks.push({ id: chunkId(row), products });
        // A late result has settled its last product: an open chunk would keep the run from ending.
        else await closeChunk(knex, runId, row);
      }
      return chunks;
    });
  }

  grant(
    runId: string,
    slot: number,
    epoch: number,
    chunkIds: readonly string[],
    limitChunks: number,
    fence: number,
    nowMs: number,
  ): Promise<string[]> {
    const db = this.#db;
    const asked = chunkIds.map(parseChunkId).filter((c) => c !== null);
    if (asked.length === 0) return Promise.resolve([]);
    return inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      // Locked until the commit: a release for the same instance happens entirely before or entirely after.
      const holder = await rowOf<{ phase: InstancePhase }>(
        trx('crawlfleet_instances').where({ run_id: runId, slot, epoch }).forUpdate().first('phase'),
      );
      const mayTake = holder !== undefined && isServing(holder.phase);
      const owned = { run_id: runId, slot, epoch, state: 'granted' };
      const count = (await trx(CHUNKS).where(owned).count({ chunks: '*' }).first()) as
        { chunks: SqlNumber } | undefined;
      let room = mayTake ? limitChunks - toNumber(count?.chunks) : 0;
      const rows = await lockChunks(
        trx,
        runId,
        asked.map((c) => c.index),
      );
      const granted: string[] = [];
      const taken: number[] = [];
      for (const { index, generation } of asked) {
        const row = rows.get(index);
        if (!row || toNumber(row.generation) !== generation || taken.includes(index)) continue;
        if (row.state === 'granted' && toNumber(row.slot) === slot && toNumber(row.epoch) === epoch)
          granted.push(chunkId(row));
        if (row.state !== 'waiting' || room <= 0) continue;
        room--;
        taken.push(index);
        granted.push(chunkId(row));
      }
      for (const piece of inPieces(taken, LIST)) {
        await trx(CHUNKS)
          .where({ run_id: runId, state: 'waiting' })
          .whereIn('idx', piece)
          .update({ state: 'granted', slot, epoch, granted_at: nowMs });
      }
      return granted;
    });
  }

  returnChunks(runId: string, slot: number, epoch: number, fence: number, _nowMs: number): Promise<number> {
    const db = this.#db;
    return inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      await trx('crawlfleet_instances').where({ run_id: runId, slot, epoch }).forUpdate().first('phase');
      const owned = { run_id: runId, slot, epoch, state: 'granted' };
      const rows = await rowsOf<ChunkRow>(trx(CHUNKS).where(owned).orderBy('idx').forUpdate());
      return nextGeneration(trx, runId, rows);
    });
  }

  chunksOf(runId: string, slot: number, epoch: number): Promise<OwnedChunk[]> {
    return inQuery(this.#db, async (knex) => {
      const rows = await rowsOf<ChunkRow>(
        knex(CHUNKS)
          .where({ run_id: runId, slot, epoch, state: 'granted' })
          .orderBy([
            { column: 'granted_at', order: 'desc' },
            { column: 'idx', order: 'desc' },
          ]),
      );
      const open = await openItems(knex, runId, rows);
      return rows
        .map((row) => ({ id: chunkId(row), open: open.get(toNumber(row.idx))!.length }))
        .filter((chunk) => chunk.open > 0);
    });
  }

  transferChunks(
    runId: string,
    slot: number,
    epoch: number,
    chunkIds: readonly string[],
    fence: number,
    _nowMs: number,
  ): Promise<number> {
    const db = this.#db;
    const asked = new Set(chunkIds);
    const indexes = chunkIds.map(parseChunkId).flatMap((c) => (c === null ? [] : [c.index]));
    if (indexes.length === 0) return Promise.resolve(0);
    return inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      await trx('crawlfleet_instances').where({ run_id: runId, slot, epoch }).forUpdate().first('phase');
      const rows = await lockChunks(trx, runId, indexes);
      const owned = [...rows.values()].filter(
        (row) =>
          asked.has(chunkId(row)) &&
          row.state === 'granted' &&
          toNumber(row.slot) === slot &&
          toNumber(row.epoch) === epoch,
      );
      return nextGeneration(trx, runId, owned);
    });
  }

  anyStored(runId: string): Promise<string | null> {
    return inQuery(this.#db, async (knex) => {
      const row = await rowOf<{ product_id: string }>(
        knex(ITEMS).where({ run_id: runId, outcome: 'stored' }).select('product_id').first(),
      );
      return row?.product_id ?? null;
    });
  }

  failedProducts(
    runId: string,
    after: number,
    limit: number,
    reasons?: readonly FailureReason[],
  ): Promise<FailedProduct[]> {
    return selectFailed(this.#db, runId, after, limit, reasons);
  }

  failRest(runId: string, reason: FailureReason, fence: number, nowMs: number): Promise<number> {
    const db = this.#db;
    return inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      const failed = await trx(ITEMS)
        .where({ run_id: runId })
        .whereNull('outcome')
        .update({ outcome: 'failed', reason, settled_at: nowMs })
        .options({ timeout: LONG_STATEMENT_MS });
      await trx(CHUNKS).where({ run_id: runId, state: 'waiting' }).update({ state: 'closed' });
      return failed;
    });
  }

  outcomes(
    runId: string,
  ): Promise<OutcomeCounts & { planned: number; open: number; reasons: Partial<Record<FailureReason, number>> }> {
    return inQuery(this.#db, async (knex) => {
      const rows = await rowsOf<{
        outcome: Outcome | null;
        reason: FailureReason | null;
        items: SqlNumber;
      }>(
        knex(ITEMS)
          .where({ run_id: runId })
          .groupBy('outcome', 'reason')
          .select('outcome', 'reason')
          .count({ items: '*' })
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      const counts = { planned: 0, open: 0, stored: 0, gone: 0, failed: 0 };
      const reasons: Partial<Record<FailureReason, number>> = {};
      for (const row of rows) {
        const items = toNumber(row.items);
        counts.planned += items;
        counts[row.outcome ?? 'open'] += items;
        if (row.outcome === 'failed' && row.reason) reasons[row.reason] = (reasons[row.reason] ?? 0) + items;
      }
      return { ...counts, reasons };
    });
  }

  outcomesBySlot(runId: string): Promise<(EpochId & OutcomeCounts)[]> {
    return inQuery(this.#db, async (knex) => {
      const rows = await rowsOf<{
        slot: SqlNumber;
        epoch: SqlNumber;
        outcome: Outcome;
        items: SqlNumber;
      }>(
        knex(ITEMS)
          .where({ run_id: runId })
          .whereNotNull('slot')
          .groupBy('slot', 'epoch', 'outcome')
          .orderBy(['slot', 'epoch'])
          .select('slot', 'epoch', 'outcome')
          .count({ items: '*' })
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      const bySlot = new Map<string, EpochId & OutcomeCounts>();
      for (const row of rows) {
        const at = { slot: toNumber(row.slot), epoch: toNumber(row.epoch) };
        const key = `${at.slot}/${at.epoch}`;
        const counts = bySlot.get(key) ?? { ...at, stored: 0, gone: 0, failed: 0 };
        counts[row.outcome] += toNumber(row.items);
        bySlot.set(key, counts);
      }
      return [...bySlot.values()];
    });
  }
}

/** The rows of these chunks, locked in index order, so that two grants wait for each other instead of deadlocking. */
async function lockChunks(
  trx: Knex.Transaction,
  runId: string,
  indexes: readonly number[],
): Promise<Map<number, ChunkRow>> {
  const found = new Map<number, ChunkRow>();
  const ordered = [...new Set(indexes)].sort((a, b) => a - b);
  for (const piece of inPieces(ordered, LIST)) {
    const query = trx(CHUNKS).where({ run_id: runId }).whereIn('idx', piece).orderBy('idx').forUpdate();
    for (const row of await rowsOf<ChunkRow>(query)) found.set(toNumber(row.idx), row);
  }
  return found;
}

/** Makes those of these locked chunks wait again that have products without outcome; returns how many products. */
async function nextGeneration(trx: Knex.Transaction, runId: string, rows: readonly ChunkRow[]): Promise<number> {
  const open = await openItems(trx, runId, rows);
  let products = 0;
  for (const row of rows) {
    const left = open.get(toNumber(row.idx))!.length;
    if (left === 0) continue;
    products += left;
    await trx(CHUNKS)
      .where({ run_id: runId, idx: toNumber(row.idx) })
      .update({
        state: 'waiting',
        generation: toNumber(row.generation) + 1,
        products: left,
        slot: null,
        epoch: null,
        granted_at: null,
      });
  }
  return products;
}

/** In plan order, starting after number `after`; at most `limit`. */
function selectFailed(
  db: Database,
  runId: string,
  after: number,
  limit: number,
  reasons: readonly FailureReason[] | undefined,
): Promise<FailedProduct[]> {
  return inQuery(db, async (knex) => {
    const query = knex(ITEMS).where({ run_id: runId, outcome: 'failed' }).where('n', '>', after);
    if (reasons) void query.whereIn('reason', [...reasons]);
    const rows = await rowsOf<{ n: SqlNumber; product_id: string; reason: FailureReason; detail: string | null }>(
      query
        .orderBy('n')
        .limit(limit)
        .select('n', 'product_id', 'reason', 'detail')
        // Only a few of a million products may have failed: finding them is one long scan.
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    return rows.map(({ n, product_id, reason, detail }) => ({ n: toNumber(n), id: product_id, reason, detail }));
  });
}

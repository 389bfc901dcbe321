/**
 * Refused rows: stored products that are moved to another outcome before their run is published. They are deleted from
 * staging, so neither the result table nor what is written beside it ever has them, and `refused_at` keeps them out of
 * the crawl dates. The counts of their parts follow, so the books hold without an exception.
 */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Outcome } from '../../../shared/domain/outcome.ts';
import { MAX_ID_CHARS } from '../../../shared/domain/product.ts';
import { eventOf } from '../model/run-event.ts';
import type { PartId, Refusal } from '../model/stores.ts';
import type { BoundRun } from './bound-run.ts';
import { bulkInsert } from './bulk-insert.ts';
import { ITEMS } from './chunk-rows.ts';
import { byteText } from './column-types.ts';
import { insertEvent } from './events.ts';
import { cutDetail, onNumbers } from './load-part.ts';
import { inPieces, rowOf, rowsOf } from './rows.ts';
import { stagingName } from './staging.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { withTemporaryTable } from './table-statements.ts';

const PARTS = 'crawlfleet_parts';
const REFUSED = 'crawlfleet_refused';
const COUNTS = ['stored', 'gone', 'failed', 'result_rows', 'unchanged', 'partial'] as const;
type OfSome = 'unchanged' | 'partial';
/** Product IDs per DELETE. */
const LIST = 1_000;

type ItemRow = PartId & {
  n: number;
  product_id: string;
  place: number;
  result_rows: number | null;
  left_out: number | null;
};
type Refused = ItemRow & { refusal: Refusal };

type PartCounts = Record<Exclude<(typeof COUNTS)[number], OfSome>, number> & Record<OfSome, number | null>;

/** Moves refused products in one transaction; repeated, it changes nothing. Returns how many products were moved. */
export function refuseProducts(bound: BoundRun, refusals: readonly Refusal[], note: string): Promise<number> {
  const { db, id: runId } = bound;
  const nowMs = bound.now();
  if (refusals.length === 0) return Promise.resolve(0);
  return bound.write(async (trx) => {
    const lines = [`product_id ${byteText(db, MAX_ID_CHARS)} not null primary key`, 'place integer not null'];
    return withTemporaryTable(trx, db, { table: REFUSED, lines }, async () => {
      const target = { table: REFUSED, columns: ['product_id', 'place'], existing: 'keep' } as const;
      const given = refusals.map(({ id }, place): [string, number] => [id, place]);
      await bulkInsert(
        trx,
        db,
        target,
        given.sort(([a], [b]) => (a < b ? -1 : 1)),
      );
      const items = await rowsOf<ItemRow>(
        trx(`${ITEMS} as i`)
          .join(`${REFUSED} as t`, 't.product_id', 'i.product_id')
          .where({ 'i.run_id': runId, 'i.outcome': 'stored' })
          .orderBy('i.n')
          .select('i.n', 'i.product_id', 'i.slot', 'i.epoch', 'i.seq', 'i.result_rows', 'i.left_out', 't.place')
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      const refused = items.flatMap((item): Refused[] => {
        const refusal = refusals[item.place];
        return refusal === undefined ? [] : [{ ...item, refusal }];
      });
      if (refused.length === 0) return 0;
      const keyOf = ({ refusal: { outcome, reason, detail } }: Refused): string =>
        JSON.stringify([outcome, reason, cutDetail(detail)]);
      for (const [key, same] of Map.groupBy(refused, keyOf)) {
        const [outcome, reason, detail] = JSON.parse(key) as [Outcome, string | null, string];
        for (const narrow of onNumbers(
          db.engine,
          same.map(({ n }) => n),
        ))
          await trx(ITEMS)
            .where({ run_id: runId })
            .modify(narrow)
            .update({ outcome, reason, detail, result_rows: null, left_out: null, refused_at: nowMs });
      }
      const ids = refused.map(({ product_id: product }) => product);
      for (const piece of inPieces(ids, LIST))
        await trx(stagingName(runId)).whereIn('product_id', piece).delete().options({ timeout: LONG_STATEMENT_MS });
      for (const same of Map.groupBy(refused, ({ slot, epoch, seq }) => `${slot}/${epoch}/${seq}`).values())
        await correctPart(trx, runId, same);
      await insertEvent(trx, runId, eventOf('alarm', nowMs, note));
      return refused.length;
    });
  });
}

/** The counts of a part without these products as stored ones. */
async function correctPart(trx: Knex.Transaction, runId: string, refused: readonly Refused[]): Promise<void> {
  const [first] = refused;
  if (first === undefined) return;
  const { slot, epoch, seq } = first;
  const part = trx(PARTS).where({ run_id: runId, slot, epoch, seq });
  const counts = await rowOf<PartCounts>(part.clone().forUpdate().first(COUNTS));
  if (counts === undefined) throw new AppError('internal', `run ${runId} has no part ${slot}/${epoch}/${seq}`);
  const gone = refused.filter(({ refusal }) => refusal.outcome === 'gone').length;
  const stored = counts.stored - refused.length;
  await part.update({
    stored,
    gone: counts.gone + gone,
    failed: counts.failed + refused.length - gone,
    result_rows: counts.result_rows - refused.reduce((sum, { result_rows: rows }) => sum + (rows ?? 1), 0),
    partial: counts.partial === null ? null : counts.partial - refused.filter((one) => one.left_out !== null).length,
    // Which of them were unchanged is not in the ledger.
    unchanged: counts.unchanged === null ? null : Math.min(counts.unchanged, stored),
  });
}

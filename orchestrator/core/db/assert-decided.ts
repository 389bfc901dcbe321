/** `assert` of numbers that could be read in two ways, which is judged when their whole column is known. */
import { eventOf } from '../model/run-event.ts';
import type { Refusal } from '../model/stores.ts';
import { type AssertCounts, countBroken, detailOf, judgeAsserts, sumAssertCounts } from '../model/assertions.ts';
import { readStanding, standingKey } from './assert-rows.ts';
import type { BoundRun } from './bound-run.ts';
import { keyColumns } from './column-types.ts';
import { insertEvent } from './events.ts';
import { readDecisions } from './number-columns.ts';
import { refuseProducts } from './refuse.ts';
import { inPieces, rowsOf } from './rows.ts';
import { readRunShape } from './run-shape.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

/** Products per statement. */
const LIST = 500;

/**
 * Judges the numbers that could be read in two ways, now that their columns are decided. Returns what holds the run, of
 * all rows. Repeated, it finds only that.
 */
export async function assertDecided(bound: BoundRun): Promise<AssertCounts> {
  const { db, id: runId } = bound;
  const refusals: Refusal[] = [];
  const decided = await bound.write(async (trx): Promise<AssertCounts> => {
    const shape = await readRunShape(trx, db, runId);
    const { marks } = await readDecisions(trx, runId, shape);
    const counts: AssertCounts = {};
    for (const { column, place, text, point, comma } of shape.ambiguous) {
      const { name, type } = column;
      const mark = marks.get(place);
      if (mark === undefined || type === 'json' || !shape.assertions.has(name)) continue;
      const keys = keyColumns(shape.mapping);
      const open = trx(shape.staging).whereNotNull(text);
      const value = trx.ref(mark === '.' ? point : comma).as('value');
      const rows = await rowsOf<Record<string, unknown>>(
        open.select(...keys, value).options({ timeout: LONG_STATEMENT_MS }),
      );
      for (const ids of inPieces(rows, LIST)) {
        const standing = await readStanding(
          trx,
          db,
          shape,
          ids.map((row) => String(row.product_id)),
        );
        for (const row of ids) {
          const id = String(row.product_id);
          const number = row.value === null ? null : Number(row.value);
          const [broken] = shape.assertions.judge(
            { [name]: number },
            standing.get(standingKey(shape, id, row.row_key ?? null)),
          );
          if (!broken) continue;
          countBroken(counts, id, [broken]);
          if (broken.else === 'fail')
            refusals.push({ id, outcome: 'failed', reason: 'assert', detail: detailOf(broken) });
          const key = Object.fromEntries(keys.map((column) => [column, row[column]]));
          if (broken.else === 'empty')
            await trx(shape.staging)
              .where(key)
              .update({ [text]: null, [point]: null, [comma]: null });
        }
      }
    }
    for (const note of judgeAsserts(counts).notes) await insertEvent(trx, runId, eventOf('alarm', bound.now(), note));
    return counts;
  });
  const note = `${refusals.length} products whose numbers broke an assert failed (assert)`;
  await refuseProducts(bound, refusals, note);
  const parts = await bound.rows<{ assert_counts: string }>((knex) =>
    knex('crawlfleet_parts').where({ run_id: runId }).whereNotNull('assert_counts').select('assert_counts'),
  );
  const loaded = sumAssertCounts(parts.map((part) => JSON.parse(part.assert_counts) as AssertCounts));
  const holding = Object.entries(decided).map(([field, count]) => ({ [field]: { ...count, empty: 0, fail: 0 } }));
  return sumAssertCounts([loaded, ...holding]);
}

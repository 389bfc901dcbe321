/**
 * `assert` of a mapping's fields, where rows are staged: values that break one are left out, or their product fails. What
 * holds the run is only counted. A number that can be read in two ways is judged once its column is decided.
 */
import type { Knex } from 'knex';
import type { KeyedRow, Row } from '../../shared/domain/mapping.ts';
import { eventOf } from '../control/model/run-event.ts';
import type { Refusal } from '../control/model/stores.ts';
import {
  type AssertCounts,
  type Broken,
  countBroken,
  judgeAsserts,
  type Standing,
  sumAssertCounts,
} from '../control/results/assertions.ts';
import type { BoundRun } from './bound-run.ts';
import { keyColumns } from './column-types.ts';
import { toRowKey, UnfitValue } from './column-values.ts';
import type { Database } from './connect.ts';
import { insertEvent } from './events.ts';
import { readDecisions } from './number-columns.ts';
import { idsForResults } from './publish-rows.ts';
import { refuseProducts } from './refuse.ts';
import { inPieces, rowsOf } from './rows.ts';
import { readRunShape, type RunShape } from './run-shape.ts';
import type { StoredResult } from './stage-rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

/** Products per statement. */
const LIST = 500;

/** Stored products after their values were judged. */
export interface Asserted {
  /** Without the values that were left out. */
  passed: StoredResult[];
  /** Why the others fail, by product. */
  failed: Map<string, string>;
  counts: AssertCounts;
}

export async function assertRows(
  trx: Knex.Transaction,
  db: Database,
  shape: RunShape,
  results: readonly StoredResult[],
): Promise<Asserted> {
  const asserted: Asserted = { passed: [], failed: new Map(), counts: {} };
  if (shape.assertions.isEmpty) return { ...asserted, passed: [...results] };
  const standing = await readStanding(
    trx,
    db,
    shape,
    results.map(({ id }) => id),
  );
  for (const result of results) {
    const broken: Broken[] = [];
    const rows = result.rows.map((keyed): KeyedRow => {
      const own = shape.assertions.judge(keyed.row, standing.get(keyOf(shape, result.id, keyed.key)));
      broken.push(...own);
      const out = new Set(own.filter((one) => one.else === 'empty').map(({ field }) => field));
      return out.size === 0 ? keyed : { ...keyed, row: without(keyed.row, out) };
    });
    countBroken(asserted.counts, result.id, broken);
    const failing = broken.find((one) => one.else === 'fail');
    if (failing) asserted.failed.set(result.id, failing.detail);
    else
      asserted.passed.push(
        broken.some((one) => one.else === 'empty') ? { ...result, rows, whole: result.rows } : result,
      );
  }
  return asserted;
}

function without(row: Row, fields: ReadonlySet<string>): Row {
  return Object.fromEntries(Object.entries(row).map(([field, value]) => [field, fields.has(field) ? null : value]));
}

function keyOf({ rowKey }: RunShape, id: string, key: unknown): string {
  const text = rowKey === null ? null : toRowKey(key === null ? null : String(key), rowKey);
  return `${id}\n${text === null || text instanceof UnfitValue ? '' : text}`;
}

/** The numbers of the rows that stand, for the fields whose change is limited. */
async function readStanding(
  knex: Knex,
  db: Database,
  shape: RunShape,
  ids: readonly string[],
): Promise<Map<string, Standing>> {
  const found = new Map<string, Standing>();
  const fields = shape.assertions.fieldsThatStand;
  if (fields.length === 0) return found;
  const toResultIds = await idsForResults(knex, db, shape);
  for (const piece of inPieces(ids, LIST)) {
    const names = fields.map((field, i) => knex.raw('?? as ??', [field, `f${i}`]));
    const rows = knex(shape.results.table)
      .whereIn('product_id', toResultIds(piece))
      .select(...keyColumns(shape.mapping), ...names);
    for (const row of await rowsOf<Record<string, unknown>>(rows.options({ timeout: LONG_STATEMENT_MS }))) {
      const numbers = fields.flatMap((field, i): [string, number][] =>
        row[`f${i}`] === null ? [] : [[field.toLowerCase(), Number(row[`f${i}`])]],
      );
      found.set(keyOf(shape, String(row.product_id), row.row_key ?? null), new Map(numbers));
    }
  }
  return found;
}

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
    for (const { place, text, point, comma } of shape.unread) {
      const { name, type } = shape.columns[place]!;
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
            standing.get(keyOf(shape, id, row.row_key ?? null)),
          );
          if (!broken) continue;
          countBroken(counts, id, [broken]);
          if (broken.else === 'fail') refusals.push({ id, outcome: 'failed', reason: 'assert', detail: broken.detail });
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

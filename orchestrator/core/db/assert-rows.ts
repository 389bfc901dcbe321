/**
 * `assert` of a mapping's fields, where rows are staged: values that break one are left out, or their product fails.
 * What holds the run is only counted.
 */
import type { Knex } from 'knex';
import type { KeyedRow, Row } from '../../../shared/domain/mapping.ts';
import { type AssertCounts, type Broken, countBroken, detailOf, type Standing } from '../model/assertions.ts';
import { keyColumns } from './column-types.ts';
import { toRowKey, UnfitValue } from './column-values.ts';
import type { Database } from './connect.ts';
import { idsForResults } from './publish-rows.ts';
import { inPieces, rowsOf, sqlText } from './rows.ts';
import type { RunShape } from './run-shape.ts';
import type { StoredResult } from './stage-rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

/** Products per statement. */
const LIST = 500;

/** Stored products after their values were judged. */
export interface Asserted {
  /** The products that are stored, without the values that were left out. */
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
      const own = shape.assertions.judge(keyed.row, standing.get(standingKey(shape, result.id, keyed.key)));
      broken.push(...own);
      const out = new Set(own.filter((one) => one.else === 'empty').map(({ field }) => field));
      return out.size === 0 ? keyed : { ...keyed, row: without(keyed.row, out) };
    });
    countBroken(asserted.counts, result.id, broken);
    const failing = broken.find((one) => one.else === 'fail');
    if (failing) asserted.failed.set(result.id, detailOf(failing));
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

/** The key of a row: the same for a page's row, a staged one, and one that stands. */
export function standingKey({ rowKey }: RunShape, id: string, key: unknown): string {
  const text = rowKey === null ? null : toRowKey(sqlText(key), rowKey);
  return `${id}\n${text === null || text instanceof UnfitValue ? '' : text}`;
}

/** The numbers of the rows that stand, for the fields whose change is limited, by `standingKey`. */
export async function readStanding(
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
      found.set(standingKey(shape, String(row.product_id), row.row_key ?? null), new Map(numbers));
    }
  }
  return found;
}

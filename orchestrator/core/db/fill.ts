/** How full the columns of staged rows are. */
import type { Knex } from 'knex';
import type { FillRates } from '../model/report.ts';
import { type Decisions, fieldValues } from './number-columns.ts';
import { rowOf, type SqlNumber, toNumber } from './rows.ts';
import type { RunShape } from './run-shape.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

/**
 * The share of staged rows with a value, by field; empty without rows. One pass over the staging table.
 * @param narrow which rows count; all of them if not given
 */
export async function readFill(
  knex: Knex,
  { shape, decisions }: { shape: RunShape; decisions: Decisions },
  narrow: (rows: Knex.QueryBuilder) => void = () => undefined,
): Promise<FillRates['fields']> {
  const { columns, staging } = shape;
  const values = fieldValues(shape, decisions);
  const sums = values.map(({ column, sql }) => {
    // An empty text or list counts as no value, whatever the type of the user's column.
    const empty = column.type === 'json' ? `('', '[]')` : `('')`;
    return `sum(case when ${sql} is null or cast(${sql} as char) in ${empty} then 0 else 1 end) as ??`;
  });
  const select = ['count(*) as ??', ...sums].join(', ');
  const bindings = ['found', ...values.flatMap(({ bindings: own }, i) => [...own, ...own, `f${i}`])];
  const row = await rowOf<Record<string, SqlNumber | null>>(
    knex(staging)
      .where(narrow)
      .select(knex.raw(select, bindings) as never)
      .first()
      .options({ timeout: LONG_STATEMENT_MS }),
  );
  const found = toNumber(row?.found);
  if (found === 0) return {};
  return Object.fromEntries(columns.map((column, i) => [column.name, toNumber(row?.[`f${i}`]) / found]));
}

/** Fill rates of a run's staged rows, and of earlier runs. */
import type { FillRates } from '../control/model/report.ts';
import type { RunReport } from '../control/model/report.ts';
import type { Database } from './connect.ts';
import { fieldValues, readDecisions } from './number-columns.ts';
import { inQuery } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { parseJson, rowOf, rowsOf, toNumber } from './rows.ts';
import { readRunShape } from './run-shape.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

const RUNS = 'crawlfleet_runs';

/** The share of staged rows with a value, by field; empty without rows. One pass over the staging table. */
export function readFields(db: Database, runId: string): Promise<FillRates['fields']> {
  return inQuery(db, async (knex) => {
    const shape = await readRunShape(knex, db, runId);
    const { columns, staging } = shape;
    const values = fieldValues(shape, await readDecisions(knex, runId, shape));
    const sums = columns.map((column, i) => {
      // An empty text or list counts as no value, whatever the type of the user's column.
      const empty = column.type === 'json' ? `('', '[]')` : `('')`;
      const { sql } = values[i]!;
      return { i, sql: `sum(case when ${sql} is null or cast(${sql} as char) in ${empty} then 0 else 1 end) as ??` };
    });
    const select = ['count(*) as ??', ...sums.map((s) => s.sql)].join(', ');
    const bindings = ['found', ...sums.flatMap(({ i }) => [...values[i]!.bindings, ...values[i]!.bindings, `f${i}`])];
    const row = await rowOf<Record<string, SqlNumber | null>>(
      knex(staging)
        .select(knex.raw(select, bindings) as never)
        .first()
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    const found = toNumber(row?.found);
    if (found === 0) return {};
    return Object.fromEntries(columns.map((column, i) => [column.name, toNumber(row?.[`f${i}`]) / found]));
  });
}

/** Of the newest completed runs that wrote to this table and began before `runId`; at most `limit`. */
export function readEarlier(db: Database, runId: string, limit: number): Promise<FillRates[]> {
  return inQuery(db, async (knex) => {
    const own = await rowOf<{ results_table: string; started_at: SqlNumber }>(
      knex(RUNS).where({ id: runId }).first('results_table', 'started_at'),
    );
    if (!own) return [];
    const rows = await rowsOf<{ fill: string | null; report: string | null }>(
      knex(RUNS)
        .where({ results_table: own.results_table, phase: 'completed' })
        .where('started_at', '<', own.started_at)
        .where('planned', '>', 0)
        // A retry crawls the difficult products, so it is no reference for a full run.
        .whereNull('parent_id')
        .orderBy('started_at', 'desc')
        .limit(limit)
        .select('fill', 'report'),
    );
    return rows.flatMap(({ fill, report }) => {
      if (fill !== null) return [JSON.parse(fill) as FillRates];
      // From before runs were measured: its report at least has the number of stored products.
      const products = (parseJson(report) as RunReport | null)?.products;
      return products ? [{ stored: products.stored / products.planned, fields: {} }] : [];
    });
  });
}

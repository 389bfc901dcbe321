/**
 * The values that a run is about to publish, beside those that stand, for some of its products: enough to see what the
 * values of a field look like, and few enough to cost the same however many rows there are.
 */
import { createHash } from 'node:crypto';
import type { Knex } from 'knex';
import { type Mapping, READING_RULES } from '../../../shared/domain/mapping.ts';
import type { ValueProfile } from '../model/report.ts';
import type { SampledRow, ValueSample } from '../model/stores.ts';
import { ITEMS } from './chunk-rows.ts';
import { keyColumns } from './column-types.ts';
import type { Database } from './connect.ts';
import { NEWEST_FIRST, notCancelled, PUBLISHED } from './newer-runs.ts';
import { fieldValues, readDecisions } from './number-columns.ts';
import { idsForResults } from './publish-rows.ts';
import { inPieces, rowOf, rowsOf, type SqlNumber, sqlText, toNumber } from './rows.ts';
import { readRun, readRunShape } from './run-shape.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

const RUNS = 'crawlfleet_runs';
const PRODUCTS = 2_000;
/** The sample's size for products with many rows each. */
const PRODUCTS_OF_ROWS = 300;
/** Numbers of the list that are looked up for each product of the sample, where few are stored. */
const TRIES = 10;
/** Products per statement. */
const LIST = 500;
/** Earlier runs whose rows count as rows that stand. */
const RUNS_BEFORE = 500;

/** The fingerprint of the mapping and the rules by which pages are read. */
function valueFingerprint(mapping: Mapping): string {
  return createHash('sha256')
    .update(JSON.stringify([READING_RULES, mapping]))
    .digest('hex')
    .slice(0, 16);
}

export async function readValueSample(knex: Knex, db: Database, runId: string): Promise<ValueSample> {
  const shape = await readRunShape(knex, db, runId);
  const { columns } = shape;
  const fingerprint = valueFingerprint(shape.mapping);
  const decisions = await readDecisions(knex, runId, shape);
  const keys = keyColumns(shape.mapping);
  const isEarlier = await beganBefore(knex, { runId, fingerprint, limit: RUNS_BEFORE });
  const earlier = await knex(RUNS).modify(isEarlier).pluck<string[]>('id');
  const toResultIds = await idsForResults(knex, db, shape);
  const names = columns.map((_, i) => `f${i}`);
  const staged = fieldValues(shape, decisions).map(({ sql, bindings }, i) =>
    knex.raw(`${sql} as ??`, [...bindings, `f${i}`]),
  );
  const standing = columns.map(({ name }, i) => knex.raw('?? as ??', [name, `f${i}`]));
  const valuesOf = (row: Row): (string | null)[] => names.map((name) => sqlText(row[name]));
  const keyOf = (row: Row): string => keys.map((key) => sqlText(row[key])).join('\n');
  const rows: SampledRow[] = [];
  const ids = await drawProducts(knex, runId, shape.rowKey === null ? PRODUCTS : PRODUCTS_OF_ROWS);
  for (const piece of inPieces(ids, LIST)) {
    const select = (from: Knex.QueryBuilder, fields: Knex.Raw[]): Promise<Row[]> =>
      rowsOf<Row>(from.select(...keys, ...fields).options({ timeout: LONG_STATEMENT_MS }));
    const now = await select(knex(shape.staging).whereIn('product_id', piece), staged);
    const stand = knex(shape.results.table).whereIn('product_id', toResultIds(piece)).whereIn('run_id', earlier);
    const before = earlier.length === 0 ? [] : await select(stand, standing);
    const byKey = new Map(before.map((row) => [keyOf(row), valuesOf(row)]));
    for (const row of now)
      rows.push({ id: String(row.product_id), now: valuesOf(row), before: byKey.get(keyOf(row)) ?? null });
  }
  return { fingerprint, columns, rows };
}

type Row = Record<string, unknown>;

/** IDs of stored products at even distances in the list: by key, so that the length of the list costs nothing. */
async function drawProducts(knex: Knex, runId: string, most: number): Promise<string[]> {
  const run = await rowOf<{ planned: SqlNumber }>(knex(RUNS).where({ id: runId }).first('planned'));
  const parts = await rowOf<{ stored: SqlNumber | null }>(
    knex('crawlfleet_parts').where({ run_id: runId }).sum({ stored: 'stored' }).first(),
  );
  const [planned, stored] = [toNumber(run?.planned), toNumber(parts?.stored)];
  if (stored === 0) return [];
  const count = Math.min(planned, Math.ceil((most * planned) / stored), most * TRIES);
  const numbers = Array.from({ length: count }, (_, i) => Math.floor((i * planned) / count) + 1);
  const ids: string[] = [];
  for (const piece of inPieces(numbers, LIST)) {
    const items = knex(ITEMS).where({ run_id: runId, outcome: 'stored' }).whereIn('n', piece);
    ids.push(...(await items.options({ timeout: LONG_STATEMENT_MS }).pluck<string[]>('product_id')));
  }
  return ids;
}

interface Earlier {
  runId: string;
  fingerprint: string;
  limit: number;
}

/**
 * Narrows a query to the published runs of the same result table with this fingerprint that began before, newest first.
 */
async function beganBefore(
  knex: Knex,
  { runId, fingerprint, limit }: Earlier,
): Promise<(runs: Knex.QueryBuilder) => void> {
  const own = await readRun<OwnRun>(knex, runId, 'results_table', 'started_at');
  return (runs) =>
    void runs
      .where({ results_table: own.results_table, value_rules: fingerprint })
      .whereIn('phase', PUBLISHED)
      .where(notCancelled)
      .where('started_at', '<', own.started_at)
      .orderBy(NEWEST_FIRST)
      .limit(limit);
}

type OwnRun = { results_table: string; started_at: SqlNumber };

/** A retry crawls the difficult products, so it makes no band. */
export async function readProfiles(knex: Knex, earlier: Earlier): Promise<ValueProfile[]> {
  const runs = knex(RUNS).modify(await beganBefore(knex, earlier));
  const rows = await rowsOf<{ value_profile: string }>(runs.whereNull('parent_id').select('value_profile'));
  return rows.map(({ value_profile: profile }) => JSON.parse(profile) as ValueProfile);
}

/** The parts of a run that never change while it is loaded and published, read once: mapping, tables, time format. */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import { type Column, columnsOf, hasRows, type Mapping } from '../../../shared/domain/mapping.ts';
import { isRebuilt } from '../model/rebuilt-run.ts';
import type { RunSettings } from '../model/run-settings.ts';
import { Assertions } from '../model/assertions.ts';
import { titleFields } from '../decide/end/shared-results.ts';
import { rowKeyKind } from './column-types.ts';
import type { Database } from './connect.ts';
import { LANDING_COLUMN, STAMP_COLUMN, type StagedNumber, stagingName, ambiguousColumns } from './staging.ts';
import { type ColumnInfo, findColumn, readTable } from './table-info.ts';
import { rowOf, type SqlNumber, toNumber } from './rows.ts';

export interface RunShape {
  mapping: Mapping;
  results: RunSettings['results'];
  staging: string;
  columns: Column[];
  /** A field's column, and its index in `columns`, by every spelling in the mapping. */
  columnOf: ReadonlyMap<string, { column: Column; place: number }>;
  /** Columns for ambiguous numbers; empty for an older staging table without them. */
  ambiguous: StagedNumber[];
  /** The staging table takes what the site calls each page (`site.conditional`). */
  stamps: boolean;
  /** The staging table takes what products may share: the page they ended on, and their row. */
  shares: boolean;
  /** Fields by which people tell products apart. */
  titles: ReadonlySet<string>;
  /** How row_key compares keys; null for a mapping without `rows`. */
  rowKey: 'exact' | 'integer' | null;
  /** A stored product may have another number of rows than one. */
  countsRows: boolean;
  crawledAt: ColumnInfo;
  /** `assert` of the fields. */
  assertions: Assertions;
  /** True when only results for products that were granted to their instance count. */
  grantsKept: boolean;
  /**
   * Of a run that was rebuilt from the bucket: the last number of its list. Products behind it have moved, and are not
   * numbered as in the database that was lost. Null: all numbers are those that instances know.
   */
  renumberedFrom: number | null;
}

type Columns = Record<'settings' | 'private_key', string> & { planned: SqlNumber };

/** Throws `run-unknown`, and `internal` when the staging table is gone. */
export async function readRunShape(knex: Knex, db: Database, runId: string): Promise<RunShape> {
  const run = await readRun<Columns>(knex, runId, 'settings', 'private_key', 'planned');
  const settings = JSON.parse(run.settings) as RunSettings;
  const staging = stagingName(runId);
  const info = await readTable(knex, db, staging);
  const crawledAt = info && findColumn(info, 'crawled_at');
  if (!crawledAt) throw new AppError('internal', `${db.label}: the staging table ${staging} is missing`);
  const rowKey = hasRows(settings.mapping) ? findColumn(info, 'row_key') : undefined;
  const columns = columnsOf(settings.mapping);
  return {
    mapping: settings.mapping,
    results: settings.results,
    staging,
    columns,
    ambiguous: ambiguousColumns(settings.mapping)
      .filter(({ text }) => findColumn(info, text))
      .map((own) => ({ ...own, mayBeEmpty: findColumn(info, own.column.name)?.nullable !== false })),
    stamps: settings.results.conditional !== undefined && findColumn(info, STAMP_COLUMN) !== undefined,
    shares: findColumn(info, LANDING_COLUMN) !== undefined,
    titles: titleFields(settings.mapping),
    columnOf: findColumns(settings.mapping, columns),
    rowKey: rowKey ? (rowKeyKind(db, rowKey) ?? 'exact') : null,
    countsRows: rowKey !== undefined || settings.mapping.pages.some(({ fields }) => fields.length === 0),
    crawledAt,
    assertions: new Assertions(settings.mapping),
    grantsKept: settings.grantsKept === true,
    renumberedFrom: isRebuilt({ privateKey: run.private_key }) ? toNumber(run.planned) : null,
  };
}

/** Column names ignore case; the fields of two page mappings may not. */
function findColumns(mapping: Mapping, columns: readonly Column[]): RunShape['columnOf'] {
  const names = mapping.pages.flatMap((page) => page.fields.map((f) => f.name));
  const entries = columns.flatMap((column, place) => {
    const own = names.filter((name) => name.toLowerCase() === column.name.toLowerCase());
    return own.map((name) => [name, { column, place }] as const);
  });
  return new Map(entries);
}

/** Throws `run-unknown`. */
export async function readSettings(knex: Knex, runId: string): Promise<RunSettings> {
  const { settings } = await readRun<{ settings: string }>(knex, runId, 'settings');
  return JSON.parse(settings) as RunSettings;
}

/** These columns of a run. Throws `run-unknown`. */
export async function readRun<T>(knex: Knex, runId: string, ...columns: (keyof T & string)[]): Promise<T> {
  const row = await rowOf<T>(
    knex('crawlfleet_runs')
      .where({ id: runId })
      .first(...columns),
  );
  if (row === undefined) throw new AppError('run-unknown', `there is no run ${runId} in the database`);
  return row;
}

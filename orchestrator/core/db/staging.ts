/**
 * The staging table of a run: rows that are loaded but not yet published. Its columns have exactly the types of the
 * result table's, so a value that would not fit there is refused per row while loading, not for all rows while
 * publishing.
 */
import { AppError } from '../../../shared/domain/errors.ts';
import { type Column, columnsOf, hasRows, type Mapping } from '../../../shared/domain/mapping.ts';
import { byteText, keyColumns, type NeededColumn, neededColumns, productIdType, rowKeyType } from './column-types.ts';
import type { ColumnList } from './bulk-insert.ts';
import type { Database } from './connect.ts';
import { inQuery } from './retry.ts';
import { numberFields } from './ambiguous-values.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { findColumn, readTable, type TableInfo, typeOf } from './table-info.ts';
import { createTable } from './table-statements.ts';

/** Throws `internal` for a run id that is not one of ours: it becomes part of a table name. */
export function stagingName(runId: string): string {
  if (!/^[A-Za-z0-9_-]{1,40}$/.test(runId)) throw new AppError('internal', `${runId} is not a run id`);
  return `crawlfleet_staging_${runId}`;
}

/** Columns of the staging table in order; run_id is the same for all rows and is added when they are published. */
export function stagingColumns(mapping: Mapping): ColumnList {
  return [...keyColumns(mapping), ...columnsOf(mapping).map((c) => c.name), 'url', 'crawled_at'];
}

/** The column beside the first row of a product, where its page is named: a PageStamp with the marks of its numbers. */
export const STAMP_COLUMN = '_page';

/**
 * The column beside the first row of a product: the page on which its request ended, as landingOf() spells it, if that
 * is not its own; and 64 bits of a hash of the row, if it has enough values to tell products apart. Staging tables of
 * earlier versions have neither.
 */
export const LANDING_COLUMN = '_landing';
export const CONTENT_COLUMN = '_content';

/** Longer ones are cut. */
export const MAX_LANDING_CHARS = 500;

/** Creates the table unless it exists. */
export async function createStaging(db: Database, runId: string, resultTable: string, mapping: Mapping): Promise<void> {
  await inQuery(db, async (knex) => {
    const existing = await readTable(knex, db, resultTable);
    const needed = neededColumns(db, mapping).filter((c) => c.name !== 'run_id');
    const further: string[] = [];
    const orNull = db.engine === 'mysql' ? ' null' : '';
    const lines = [`product_id ${productIdType(db, mapping)} not null`];
    // Same type as the result column, so that a key that is too long for it is found here.
    if (hasRows(mapping)) {
      const column = existing && findColumn(existing, 'row_key');
      lines.push(`row_key ${column ? typeOf(column) : rowKeyType(db)} not null`);
    }
    lines.push(...needed.map((c) => `?? ${declarationOf(db, c, existing)}`));
    const ambiguous = ambiguousColumns(mapping);
    for (const [at, column] of needed.entries()) {
      const extra = ambiguous.find(({ place }) => place === at);
      if (extra === undefined) continue;
      const own = existing && findColumn(existing, column.name);
      const type = own ? typeOf(own) : column.declared;
      further.push(extra.text, extra.point, extra.comma);
      lines.push(`?? text${orNull}`, `?? ${type}${orNull}`, `?? ${type}${orNull}`);
    }
    lines.push(`${STAMP_COLUMN} text${orNull}`);
    lines.push(`${LANDING_COLUMN} ${byteText(db, MAX_LANDING_CHARS)}${orNull}`, `${CONTENT_COLUMN} bigint${orNull}`);
    lines.push(`primary key (${keyColumns(mapping).join(', ')})`);
    await createTable(knex, db, {
      table: stagingName(runId),
      lines,
      names: [...needed.map((c) => c.name), ...further],
    });
  });
}

function declarationOf(db: Database, needed: NeededColumn, existing: TableInfo | null): string {
  const column = existing && findColumn(existing, needed.name);
  if (!column) return needed.declared;
  // Explicit `null`: MySQL makes a TIMESTAMP without it NOT NULL.
  return `${typeOf(column)} ${column.nullable ? (db.engine === 'mysql' ? 'null' : '') : 'not null'}`;
}

/** Drops the table; it may be gone already. */
export async function dropStaging(db: Database, runId: string): Promise<void> {
  await inQuery(db, (knex) =>
    knex.raw('drop table if exists ??', [stagingName(runId)]).options({ timeout: LONG_STATEMENT_MS }),
  );
}
/** The names of a field's extra staging columns. They clash with no field, whose name begins with a letter. */
export interface AmbiguousColumns {
  column: Column;
  /** Its index among those of the mapping. */
  place: number;
  text: string;
  point: string;
  comma: string;
}

/** `mayBeEmpty`: false where the user's column is NOT NULL, so that no number can wait for the whole column. */
export type StagedNumber = AmbiguousColumns & { mayBeEmpty: boolean };

export function ambiguousColumns(mapping: Mapping): AmbiguousColumns[] {
  const numbers = numberFields(mapping);
  return columnsOf(mapping).flatMap((column, place) =>
    numbers.has(column.name.toLowerCase())
      ? [{ column, place, text: `_text_${place}`, point: `_point_${place}`, comma: `_comma_${place}` }]
      : [],
  );
}

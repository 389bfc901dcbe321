/**
 * The staging table of a run: what is loaded, before it is published. Its columns have the very types of the result
 * table's, so a value that would not fit there is refused row by row while loading, not all at once while publishing.
 */
import { AppError } from '../../shared/domain/errors.ts';
import type { Mapping } from '../../shared/domain/mapping.ts';
import type { NeededColumn } from './column-types.ts';
import { neededColumns, productIdType } from './column-types.ts';
import type { Database } from './connect.ts';
import { inQuery } from './retry.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import type { ColumnInfo, TableInfo } from './table-info.ts';
import { readTable } from './table-info.ts';

/** Throws `internal` for a run id that is not one of ours: it becomes part of a table's name. */
export function stagingName(runId: string): string {
  if (!/^[A-Za-z0-9_-]{1,40}$/.test(runId)) throw new AppError('internal', `${runId} is not a run id`);
  return `crawlfleet_staging_${runId}`;
}

/** Columns of the staging table in order; run_id is the same for all of its rows and is added when they are published. */
export function stagingColumns(mapping: Mapping): string[] {
  return ['product_id', ...mapping.fields.map((f) => f.name), 'url', 'crawled_at'];
}

/** Makes the table unless it is there. */
export async function createStaging(db: Database, runId: string, resultTable: string, mapping: Mapping): Promise<void> {
  await inQuery(db, async (knex) => {
    const existing = await readTable(knex, db, resultTable);
    const needed = neededColumns(db, mapping.fields).filter((c) => c.name !== 'run_id');
    const lines = needed.map((c) => `?? ${declarationOf(db, c, existing)}`);
    const suffix = db.engine === 'mysql' ? ' engine=InnoDB default character set utf8mb4' : '';
    await knex.raw(
      `create table if not exists ?? (product_id ${productIdType(db)} not null primary key, ${lines.join(', ')})${suffix}`,
      [stagingName(runId), ...needed.map((c) => c.name)],
    );
  });
}

function declarationOf(db: Database, needed: NeededColumn, existing: TableInfo | null): string {
  const column = existing && findColumn(existing, needed.name);
  if (!column) return needed.declared;
  const charset = column.charset === null ? '' : ` character set ${column.charset} collate ${column.collation}`;
  // `null` in so many words: MySQL makes a TIMESTAMP without it NOT NULL.
  return `${column.declared}${charset} ${column.nullable ? (db.engine === 'mysql' ? 'null' : '') : 'not null'}`;
}

/** Column names are compared as both engines do, without regard to case. */
export function findColumn(table: TableInfo, name: string): ColumnInfo | undefined {
  return table.columns.find((c) => c.name.toLowerCase() === name.toLowerCase());
}

/** Drops the table; it may be gone already. */
export async function dropStaging(db: Database, runId: string): Promise<void> {
  await inQuery(db, (knex) =>
    knex.raw('drop table if exists ??', [stagingName(runId)]).options({ timeout: LONG_STATEMENT_MS }),
  );
}

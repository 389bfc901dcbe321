/** The user's result table: checked against the mapping before anything is launched, made when there is none. */
import { AppError } from '../../shared/domain/errors.ts';
import type { Mapping } from '../../shared/domain/mapping.ts';
import { neededColumns, productIdType } from './column-types.ts';
import type { Database } from './connect.ts';
import { findIdClash } from './id-clash.ts';
import { inQuery } from './retry.ts';
import { findColumn } from './staging.ts';
import type { ColumnInfo, TableInfo } from './table-info.ts';
import { readTable, splitTableName } from './table-info.ts';

export interface ResultTableCheck {
  /** False: createResultTable will make it. */
  exists: boolean;
}

interface Fault {
  what: string;
  /** A statement that would mend it; null where there is none. */
  mend: string | null;
}

/**
 * Looks whether the rows of this mapping and these products can go into the table, without changing anything.
 * Throws `results-schema` with every mismatch at once.
 */
export async function checkResultTable(
  db: Database,
  table: string,
  mapping: Mapping,
  productIds: readonly string[],
): Promise<ResultTableCheck> {
  checkName(db, table);
  const info = await inQuery(db, (knex) => readTable(knex, db, table));
  if (!info) return { exists: false };
  const faults = [
    ...tableFaults(info, table),
    ...columnFaults(db, info, table, mapping),
    ...keyFaults(db, info, table, mapping),
  ];
  if (faults.length === 0) {
    const clash = await findIdClash(db, table, findColumn(info, 'product_id')!, productIds);
    if (clash) faults.push({ what: clash, mend: modify(db, table, 'product_id', `${productIdType(db)} not null`) });
  }
  if (faults.length > 0) throw mismatch(table, faults);
  return { exists: true };
}

/** Makes the table unless it is there: product_id, a column for each field, run_id, url, crawled_at. */
export async function createResultTable(db: Database, table: string, mapping: Mapping): Promise<void> {
  checkName(db, table);
  const needed = neededColumns(db, mapping.fields);
  const lines = needed.map((c) => `?? ${c.declared}`);
  const mysql = db.engine === 'mysql';
  if (mysql) lines.push('key (run_id)');
  await inQuery(db, async (knex) => {
    if (await readTable(knex, db, table)) return;
    const suffix = mysql ? ' engine=InnoDB default character set utf8mb4' : '';
    await knex.raw(
      `create table if not exists ?? (product_id ${productIdType(db)} not null primary key, ${lines.join(', ')})${suffix}`,
      [table, ...needed.map((c) => c.name)],
    );
    if (!mysql) await knex.raw('create index if not exists ?? on ?? (run_id)', [`${table}_run_id`, table]);
  });
}

function checkName(db: Database, table: string): void {
  const { name } = splitTableName(db, table);
  const bad = !/^[A-Za-z_][A-Za-z0-9_]{0,63}(\.[A-Za-z_][A-Za-z0-9_]{0,63})?$/.test(table)
    ? 'is not a table name of letters, digits and underscores'
    : /^crawlfleet_/i.test(name)
      ? 'begins with crawlfleet_, as our own tables do'
      : db.engine === 'sqlite' && table.includes('.')
        ? 'names a schema, which SQLite does not have'
        : null;
  if (bad) throw new AppError('results-schema', `results.table ${table} ${bad}`, { hint: 'Choose another name.' });
}

function tableFaults(info: TableInfo, table: string): Fault[] {
  if (info.kind === 'view') return [{ what: 'it is a view; rows go into a table', mend: null }];
  if (info.engine !== null && !/^innodb$/i.test(info.engine)) {
    // Publishing is one transaction; another engine would keep half of it.
    return [{ what: `its engine ${info.engine} has no transactions`, mend: `ALTER TABLE ${table} ENGINE=InnoDB` }];
  }
  return [];
}

function columnFaults(db: Database, info: TableInfo, table: string, mapping: Mapping): Fault[] {
  const faults: Fault[] = [];
  const needed = neededColumns(db, mapping.fields);
  for (const { name, declared, accepts } of needed) {
    const column = findColumn(info, name);
    const plain = declared.replace(' not null', '');
    if (!column)
      faults.push({ what: `column ${name} is missing`, mend: `ALTER TABLE ${table} ADD COLUMN ${name} ${plain}` });
    else if (column.generated) faults.push({ what: `column ${name} is generated`, mend: null });
    else if (!accepts(column)) {
      const what = `column ${name} is ${column.declared || 'untyped'}, but its values need ${plain}`;
      faults.push({ what, mend: modify(db, table, name, plain) });
    }
  }
  const written = new Set(['product_id', ...needed.map((c) => c.name.toLowerCase())]);
  for (const column of info.columns) {
    if (written.has(column.name.toLowerCase()) || column.nullable || column.hasDefault) continue;
    faults.push({
      what: `column ${column.name} must have a value, and the mapping gives none`,
      mend: modify(db, table, column.name, `${column.declared} null`),
    });
  }
  return faults;
}

function keyFaults(db: Database, info: TableInfo, table: string, mapping: Mapping): Fault[] {
  const id = findColumn(info, 'product_id');
  if (!id) {
    const mend = `ALTER TABLE ${table} ADD COLUMN product_id ${productIdType(db)} NOT NULL PRIMARY KEY`;
    return [{ what: 'column product_id is missing', mend: db.engine === 'mysql' ? mend : null }];
  }
  const faults: Fault[] = [];
  if (!isUsableId(id)) {
    const what = `column product_id is ${id.declared || 'untyped'}, which cannot hold product IDs`;
    faults.push({ what, mend: modify(db, table, 'product_id', `${productIdType(db)} not null`) });
  }
  const lower = info.uniqueKeys.map((k) => ({ ...k, columns: k.columns.map((c) => c.toLowerCase()) }));
  const isOwn = (columns: string[]): boolean => columns.length === 1 && columns[0] === 'product_id';
  const isKey = lower.some((k) => isOwn(k.columns));
  const isPrimaryOfSqlite = db.engine === 'sqlite' && isKey;
  if (!isKey) {
    const mend =
      db.engine === 'mysql'
        ? `ALTER TABLE ${table} ADD UNIQUE KEY (product_id)`
        : `CREATE UNIQUE INDEX ${table}_product_id ON ${table} (product_id)`;
    faults.push({ what: 'product_id is not the primary key or a unique key by itself', mend });
  }
  if (id.nullable && !isPrimaryOfSqlite)
    faults.push({ what: 'product_id may be null', mend: modify(db, table, 'product_id', `${id.declared} not null`) });
  const written = new Set(neededColumns(db, mapping.fields).map((c) => c.name.toLowerCase()));
  for (const key of lower.filter((k) => !isOwn(k.columns) && k.columns.some((c) => written.has(c)))) {
    // An upsert that meets it would overwrite another product's row.
    const what = `the unique key ${key.name} (${key.columns.join(', ')}) covers columns we write; two products may share a value`;
    faults.push({
      what,
      mend: db.engine === 'mysql' ? `ALTER TABLE ${table} DROP INDEX ${key.name}` : `DROP INDEX ${key.name}`,
    });
  }
  return faults;
}

function isUsableId(column: ColumnInfo): boolean {
  return (
    !column.generated &&
    /^(varchar|varbinary|tinyint|smallint|mediumint|int|integer|bigint|text|blob|numeric)$/.test(column.type)
  );
}

function modify(db: Database, table: string, column: string, type: string): string {
  return db.engine === 'mysql'
    ? `ALTER TABLE ${table} MODIFY COLUMN ${column} ${type}`
    : `make the table anew with ${column} ${type} (SQLite cannot change a column)`;
}

function mismatch(table: string, faults: readonly Fault[]): AppError {
  const mends = faults.flatMap((f) => (f.mend === null ? [] : [f.mend]));
  return new AppError(
    'results-schema',
    `results.table ${table} does not fit: ${faults.map((f) => f.what).join('; ')}`,
    {
      hint: [
        ...mends.map((m) => (m.startsWith('make') ? m : `${m};`)),
        'or name a table that does not exist yet: it will be made.',
      ].join('\n'),
    },
  );
}

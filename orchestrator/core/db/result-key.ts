/** The key of the user's result table: product_id, or product_id and row_key with `rows` in the mapping. */
import { hasRows, type Mapping } from '../../../shared/domain/mapping.ts';
import { keyColumns, maxIdChars, neededColumns, productIdType, rowKeyKind, rowKeyType } from './column-types.ts';
import type { Database } from './connect.ts';
import { type ColumnInfo, findColumn, type TableInfo, typeOf } from './table-info.ts';

/** A mismatch between a table and the mapping. */
export interface Fault {
  what: string;
  /** A statement that would fix it; null where there is none. */
  mend: string | null;
}

export function keyFaults(db: Database, info: TableInfo, table: string, mapping: Mapping): Fault[] {
  const id = findColumn(info, 'product_id');
  if (!id) {
    const mend = `ALTER TABLE ${table} ADD COLUMN product_id ${productIdType(db, mapping)} NOT NULL PRIMARY KEY`;
    return [{ what: 'column product_id is missing', mend: db.engine === 'mysql' ? mend : null }];
  }
  const usable: Fault[] = isUsableId(id)
    ? []
    : [
        {
          what: `column product_id is ${id.declared || 'untyped'}, which cannot hold product IDs`,
          mend: modify(db, table, 'product_id', `${productIdType(db, mapping)} not null`),
        },
      ];
  const own = hasRows(mapping) ? pairFaults(db, { ...info, id }, table, mapping) : singleFaults(db, info, table, id);
  return [...usable, ...own, ...otherKeyFaults(db, info, table, mapping)];
}

/** True for a table whose rows are also identified by row_key: a mapping without `rows` has no value for it. */
export function isKeyedByRow(info: TableInfo): boolean {
  const keys = uniqueKeys(info);
  return keys.some((k) => isKey(k.columns, PAIR)) && !keys.some((k) => isKey(k.columns, ['product_id']));
}

const PAIR = ['product_id', 'row_key'];

function singleFaults(db: Database, info: TableInfo, table: string, id: ColumnInfo): Fault[] {
  const faults: Fault[] = [];
  const found = uniqueKeys(info).some((k) => isKey(k.columns, ['product_id']));
  if (!found) {
    const mend =
      db.engine === 'mysql'
        ? `ALTER TABLE ${table} ADD UNIQUE KEY (product_id)`
        : `CREATE UNIQUE INDEX ${table}_product_id ON ${table} (product_id)`;
    faults.push({ what: 'product_id is not the primary key or a unique key on its own', mend });
  }
  // SQLite reports "not null" for a primary key only if it is declared so.
  if (id.nullable && !(db.engine === 'sqlite' && found))
    faults.push({ what: 'product_id may be null', mend: modify(db, table, 'product_id', `${id.declared} not null`) });
  return faults;
}

/** Everything the two-column key lacks, fixed by one statement: MySQL would refuse some of its clauses on their own. */
function pairFaults(db: Database, info: TableInfo & { id: ColumnInfo }, table: string, mapping: Mapping): Fault[] {
  const { id } = info;
  const keys = uniqueKeys(info);
  const whats: string[] = [];
  const clauses: string[] = [];
  const found = keys.some((k) => isKey(k.columns, PAIR));
  // With a longer one the two columns would not fit into one index.
  const isLong = id.maxLength !== null && id.maxLength > maxIdChars(db, mapping);
  const isNullable = (column: ColumnInfo): boolean => column.nullable && !(db.engine === 'sqlite' && found);
  if (isNullable(id)) whats.push('product_id may be null');
  if (isNullable(id) || (isLong && !found))
    clauses.push(`MODIFY COLUMN product_id ${isLong ? productIdType(db, mapping) : typeOf(id)} NOT NULL`);
  const rowKey = findColumn(info, 'row_key');
  if (!rowKey) {
    whats.push('column row_key is missing');
    clauses.push(`ADD COLUMN row_key ${rowKeyType(db)} NOT NULL`);
  } else if (rowKeyKind(db, rowKey) === null) {
    const collation = rowKey.collation ? `, ${rowKey.collation}` : '';
    whats.push(`column row_key (${rowKey.declared || 'untyped'}${collation}) might treat two keys as equal`);
    clauses.push(`MODIFY COLUMN row_key ${rowKeyType(db)} NOT NULL`);
  } else if (isNullable(rowKey)) {
    whats.push('row_key may be null');
    clauses.push(`MODIFY COLUMN row_key ${typeOf(rowKey)} NOT NULL`);
  }
  for (const key of keys.filter((k) => isKey(k.columns, ['product_id']))) {
    whats.push('a key of product_id alone allows one row a product');
    clauses.push(isPrimary(key.name) ? 'DROP PRIMARY KEY' : `DROP INDEX ${key.name}`);
  }
  if (!found) {
    whats.push('(product_id, row_key), in this order, is neither the primary key nor a unique key');
    const hasPrimary = keys.some((k) => isPrimary(k.name) && !isKey(k.columns, ['product_id']));
    clauses.push(`ADD ${hasPrimary ? 'UNIQUE' : 'PRIMARY'} KEY (product_id, row_key)`);
  }
  if (whats.length === 0) return [];
  const mend =
    db.engine === 'mysql'
      ? `ALTER TABLE ${table} ${clauses.join(', ')}`
      : `recreate the table with product_id ${productIdType(db, mapping)} not null, row_key ${rowKeyType(db)} not null, primary key (product_id, row_key)`;
  return whats.map((what, i) => ({ what, mend: i === 0 ? mend : null }));
}

/** An upsert that hits another unique key would overwrite another product's row, unless it contains all of ours. */
function otherKeyFaults(db: Database, info: TableInfo, table: string, mapping: Mapping): Fault[] {
  const own = keyColumns(mapping);
  const written = new Set(neededColumns(db, mapping).map((c) => c.name.toLowerCase()));
  // With many rows per product, values of any other key that contains only part of ours may repeat.
  if (own.length > 1) for (const column of own) written.add(column);
  return uniqueKeys(info)
    .filter((k) => !own.every((c) => k.columns.includes(c)) && !isKey(k.columns, ['product_id']))
    .filter((k) => k.columns.some((c) => written.has(c)))
    .map((key) => ({
      what: `the unique key ${key.name} (${key.columns.join(', ')}) covers columns we write; two ${own.length > 1 ? 'rows' : 'products'} may share a value`,
      mend: isPrimary(key.name)
        ? null
        : db.engine === 'mysql'
          ? `ALTER TABLE ${table} DROP INDEX ${key.name}`
          : `DROP INDEX ${key.name}`,
    }));
}

function uniqueKeys(info: TableInfo): TableInfo['uniqueKeys'] {
  return info.uniqueKeys.map((k) => ({ ...k, columns: k.columns.map((c) => c.toLowerCase()) }));
}

function isKey(columns: readonly string[], wanted: readonly string[]): boolean {
  return columns.length === wanted.length && columns.every((c, i) => c === wanted[i]);
}

/** MySQL calls it PRIMARY; SQLite has an index for it, or none when it is the rowid. */
function isPrimary(name: string): boolean {
  return /^PRIMARY$|^primary key$|^sqlite_autoindex_/.test(name);
}

function isUsableId(column: ColumnInfo): boolean {
  return (
    !column.generated &&
    /^(varchar|varbinary|tinyint|smallint|mediumint|int|integer|bigint|text|blob|numeric)$/.test(column.type)
  );
}

/** The statement that changes the type of a column, as far as the engine supports it. */
export function modify(db: Database, table: string, column: string, type: string): string {
  return db.engine === 'mysql'
    ? `ALTER TABLE ${table} MODIFY COLUMN ${column} ${type}`
    : `recreate the table with ${column} ${type} (SQLite cannot change a column)`;
}

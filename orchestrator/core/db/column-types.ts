/** The columns a mapping needs in its result table: their types in a new table, and the existing types it accepts. */
import { columnsOf, type FieldType, hasRows, type Mapping } from '../../../shared/domain/mapping.ts';
import { MAX_ID_CHARS } from '../../../shared/domain/product.ts';
import type { ColumnList } from './bulk-insert.ts';
import type { Database } from './connect.ts';
import type { ColumnInfo } from './table-info.ts';

/** A column the result table must have. */
export interface NeededColumn {
  name: string;
  /** The type as a new table declares it. */
  declared: string;
  accepts: (column: ColumnInfo) => boolean;
}

/** The longest row_key, in characters. */
export const MAX_ROW_KEY_CHARS = 255;

/** Shorter with row_key beside it in the key: 512 + 255 characters of 4 bytes are just below MySQL's 3,072. */
const MAX_ID_CHARS_BESIDE_ROW_KEY = 512;

const MYSQL: Record<FieldType, { declared: string; accepts: RegExp }> = {
  text: { declared: 'text', accepts: /^(char|varchar|tinytext|text|mediumtext|longtext|enum)$/ },
  // DECIMAL rounds to its own digits, which the user chose by declaring it; integer types would silently drop the
  // fraction.
  number: { declared: 'double', accepts: /^(double|float|real|decimal|numeric)$/ },
  integer: { declared: 'bigint', accepts: /^(tinyint|smallint|mediumint|int|integer|bigint|decimal|numeric|double)$/ },
  boolean: { declared: 'boolean', accepts: /^(tinyint|smallint|mediumint|int|integer|bigint)$/ },
  // Not TIMESTAMP: that is an instant, while a page shows a local time in its own zone.
  date: { declared: 'date', accepts: /^(date|datetime|char|varchar|tinytext|text|mediumtext|longtext)$/ },
  datetime: { declared: 'datetime(3)', accepts: /^(datetime|char|varchar|tinytext|text|mediumtext|longtext)$/ },
  currency: { declared: 'char(3)', accepts: /^(char|varchar|tinytext|text|mediumtext|longtext|enum)$/ },
  json: { declared: 'json', accepts: /^(json|text|mediumtext|longtext|varchar)$/ },
};

// SQLite's DATE, DATETIME and BOOLEAN have numeric affinity, which leaves non-numeric text unchanged.
const SQLITE: Record<FieldType, { declared: string; accepts: RegExp }> = {
  text: { declared: 'TEXT', accepts: /^(text|blob)$/ },
  number: { declared: 'REAL', accepts: /^(real|numeric|blob)$/ },
  integer: { declared: 'INTEGER', accepts: /^(integer|numeric|real|blob)$/ },
  boolean: { declared: 'INTEGER', accepts: /^(integer|numeric|blob)$/ },
  date: { declared: 'TEXT', accepts: /^(text|blob|numeric)$/ },
  datetime: { declared: 'TEXT', accepts: /^(text|blob|numeric)$/ },
  currency: { declared: 'TEXT', accepts: /^(text|blob)$/ },
  json: { declared: 'TEXT', accepts: /^(text|blob)$/ },
};

/** Every column written beside the key: the fields, then run_id, url and crawled_at. */
export function neededColumns(db: Pick<Database, 'engine'>, mapping: Mapping): NeededColumn[] {
  const types = db.engine === 'sqlite' ? SQLITE : MYSQL;
  const own = columnsOf(mapping).map(({ name, type }): NeededColumn => {
    const { declared, accepts } = types[type];
    return { name, declared, accepts: (c) => accepts.test(c.type) };
  });
  const text = types.text.accepts;
  const isLong = (c: ColumnInfo, chars: number): boolean =>
    text.test(c.type) && (c.maxLength === null || c.maxLength >= chars);
  const mysql = db.engine === 'mysql';
  return [
    ...own,
    { name: 'run_id', declared: mysql ? 'varchar(64) not null' : 'TEXT not null', accepts: (c) => isLong(c, 32) },
    { name: 'url', declared: mysql ? 'text not null' : 'TEXT not null', accepts: (c) => isLong(c, 255) },
    {
      name: 'crawled_at',
      declared: mysql ? 'datetime(3) not null' : 'TEXT not null',
      accepts: (c) => isLong(c, 24) || /^(datetime|timestamp|numeric)$/.test(c.type),
    },
  ];
}

/** The columns that identify a row of a result table, in key order. */
export function keyColumns(mapping: Mapping): ColumnList {
  return hasRows(mapping) ? ['product_id', 'row_key'] : ['product_id'];
}

export type KeyTypes = Pick<Database, 'engine' | 'byteCollation'>;

/** Maximum characters of product_id in our tables. */
export function maxIdChars(db: Pick<Database, 'engine'>, mapping: Mapping): number {
  return db.engine === 'mysql' && hasRows(mapping) ? MAX_ID_CHARS_BESIDE_ROW_KEY : MAX_ID_CHARS;
}

/** The type of product_id in our tables: compared by its bytes, including trailing spaces. */
export function productIdType(db: KeyTypes, mapping: Mapping): string {
  return byteText(db, maxIdChars(db, mapping));
}

/** The type of row_key in our tables, compared like product_id. */
export function rowKeyType(db: KeyTypes): string {
  return byteText(db, MAX_ROW_KEY_CHARS);
}

/** The type of a text that is compared by its bytes. */
export function byteText(db: KeyTypes, chars: number): string {
  return db.engine === 'sqlite'
    ? 'TEXT collate BINARY'
    : `varchar(${chars}) character set utf8mb4 collate ${db.byteCollation}`;
}

/** How a column compares row keys: `exact` all, `integer` plain whole numbers; null: it may conflate two. */
export function rowKeyKind(db: Pick<Database, 'engine'>, column: ColumnInfo): 'exact' | 'integer' | null {
  if (column.generated) return null;
  if (/^(tinyint|smallint|mediumint|int|integer|bigint)$/.test(column.type)) return 'integer';
  if (db.engine === 'sqlite')
    return /^(text|blob)$/.test(column.type) && column.collation === 'BINARY' ? 'exact' : null;
  if (column.type === 'varbinary') return 'exact';
  // Other binary collations, such as utf8mb4_bin, treat "a" and "a " as equal.
  return column.type === 'varchar' && /_(nopad|0900)_bin$/.test(column.collation ?? '') ? 'exact' : null;
}

/** Which column type a field gets, which existing ones it may go into, and how its values are written. */
import { MAX_ID_CHARS } from '../../shared/domain/product.ts';
import type { Field, FieldType, FieldValue } from '../../shared/domain/mapping.ts';
import { fieldType } from '../../shared/domain/mapping.ts';
import type { SqlValue } from './bulk-insert.ts';
import type { Database } from './connect.ts';
import type { ColumnInfo } from './table-info.ts';

/** A column the result table must have. */
export interface NeededColumn {
  name: string;
  /** For a new table. */
  declared: string;
  accepts: (column: ColumnInfo) => boolean;
}

const MYSQL: Record<FieldType, { declared: string; accepts: RegExp }> = {
  text: { declared: 'text', accepts: /^(char|varchar|tinytext|text|mediumtext|longtext|enum)$/ },
  // DECIMAL rounds to its own digits, which is what whoever declared it wants; whole-number types would drop the fraction unasked.
  number: { declared: 'double', accepts: /^(double|float|real|decimal|numeric)$/ },
  integer: {
    declared: 'bigint',
    accepts: /^(tinyint|smallint|mediumint|int|integer|bigint|decimal|numeric|double)$/,
  },
  json: { declared: 'json', accepts: /^(json|text|mediumtext|longtext|varchar)$/ },
};

const SQLITE: Record<FieldType, { declared: string; accepts: RegExp }> = {
  text: { declared: 'TEXT', accepts: /^(text|blob)$/ },
  number: { declared: 'REAL', accepts: /^(real|numeric|blob)$/ },
  integer: { declared: 'INTEGER', accepts: /^(integer|numeric|real|blob)$/ },
  json: { declared: 'TEXT', accepts: /^(text|blob)$/ },
};

/** Every column we write beside product_id: the fields, then run_id, url and crawled_at. */
export function neededColumns(db: Pick<Database, 'engine'>, fields: readonly Field[]): NeededColumn[] {
  const types = db.engine === 'sqlite' ? SQLITE : MYSQL;
  const own = fields.map((field): NeededColumn => {
    const { declared, accepts } = types[fieldType(field)];
    return { name: field.name, declared, accepts: (c) => accepts.test(c.type) };
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

/** The type of product_id in tables of ours: equal only when the bytes are, trailing spaces included. */
export function productIdType(db: Pick<Database, 'engine' | 'byteCollation'>): string {
  return db.engine === 'sqlite'
    ? 'TEXT collate BINARY'
    : `varchar(${MAX_ID_CHARS}) character set utf8mb4 collate ${db.byteCollation}`;
}

/** A value that a column of the field's type cannot take without being changed. */
export class UnfitValue {
  readonly detail: string;
  constructor(detail: string) {
    this.detail = detail;
  }
}

/** The value as it is bound. MySQL would round 1.5 into an integer column without a word, so such values are refused here. */
export function toSqlValue(field: Field, value: FieldValue | undefined): SqlValue | UnfitValue {
  if (value === undefined || value === null) return null;
  const type = fieldType(field);
  switch (type) {
    case 'json':
      return JSON.stringify(value);
    case 'text':
      if (Array.isArray(value)) return unfit(field, 'a list');
      return typeof value === 'number' ? String(value) : withoutLoneSurrogates(value);
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? value : unfit(field, 'not a number');
    case 'integer':
      return Number.isSafeInteger(value) ? (value as number) : unfit(field, 'not a whole number');
  }
}

/** A lone surrogate has no UTF-8 form; every encoder turns it into U+FFFD, here it is done knowingly. */
function withoutLoneSurrogates(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

function unfit(field: Field, what: string): UnfitValue {
  return new UnfitValue(`${what} in column ${field.name}`);
}

/** The time a page was crawled, in the form of its column. */
export function toCrawledAt(iso: string, column: ColumnInfo): string {
  const text = new Date(iso).toISOString();
  return /^(datetime|timestamp)$/.test(column.type) ? text.replace('T', ' ').replace('Z', '') : text;
}

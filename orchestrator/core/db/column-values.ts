/** How crawled values are written into their columns. A value that a column would alter is refused. */
import type { Column, FieldValue } from '../../../shared/domain/mapping.ts';
import type { SqlValue } from './bulk-insert.ts';
import { MAX_ROW_KEY_CHARS } from './column-types.ts';
import { resolveNumbers } from './ambiguous-values.ts';
import type { ColumnInfo } from './table-info.ts';

/** A value that a column of the field's type would alter. */
export class UnfitValue {
  readonly detail: string;
  constructor(detail: string) {
    this.detail = detail;
  }
}

/** The value as bound, without ambiguous numbers. What MySQL would silently round, as 1.5 in an integer, is refused. */
export function toSqlValue(column: Column, given: FieldValue): SqlValue | UnfitValue {
  const value = resolveNumbers(given, null);
  if (value === null) return null;
  const unfit = (what: string): UnfitValue => new UnfitValue(`${what} in column ${column.name}`);
  switch (column.type) {
    case 'json':
      return JSON.stringify(value);
    case 'text':
    case 'currency':
      if (Array.isArray(value)) return unfit('a list');
      return withoutLoneSurrogates(String(value));
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? value : unfit('not a number');
    case 'integer':
      return Number.isSafeInteger(value) ? (value as number) : unfit('not a whole number');
    case 'boolean':
      return typeof value === 'boolean' ? Number(value) : unfit('not true or false');
    case 'date':
      return typeof value === 'string' && isDate(value) ? value : unfit('not a date from 1000 to 9999');
    case 'datetime':
      return typeof value === 'string' && isDateTime(value) ? value : unfit('not a date and time from 1000 to 9999');
  }
}

/** `2026-11-21`: an existing day in the years that MySQL supports. */
function isDate(text: string): boolean {
  // Days that every month has need no calendar check, and most days are such.
  if (/^[1-9]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])$/.test(text)) return true;
  if (!/^[1-9]\d{3}-\d\d-\d\d$/.test(text)) return false;
  // The parser lets 30 February through as 2 March.
  const parsed = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(parsed) && new Date(parsed).toISOString().startsWith(text);
}

/** `2026-11-21T09:30:00`, at most with milliseconds and without a zone; both databases read the `T`. */
function isDateTime(text: string): boolean {
  return isDate(text.slice(0, 10)) && /^[T ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,3})?$/.test(text.slice(10));
}

/** The key of a row as bound; `kind` is that of its column. */
export function toRowKey(key: string | null, kind: 'exact' | 'integer'): string | UnfitValue {
  if (key === null || key === '') return new UnfitValue('a record without a key for column row_key');
  const text = withoutLoneSurrogates(key);
  if (text.length > MAX_ROW_KEY_CHARS && Array.from(text).length > MAX_ROW_KEY_CHARS)
    return new UnfitValue(`more than ${MAX_ROW_KEY_CHARS} characters in column row_key`);
  // `7` and `007` would be one row; every database stores 18 digits as a whole number.
  if (kind === 'integer' && !/^(0|-?[1-9]\d{0,17})$/.test(text))
    return new UnfitValue('not a whole number in column row_key');
  return text;
}

/** A lone surrogate has no UTF-8 form; every encoder turns it into U+FFFD, so this does it explicitly. */
function withoutLoneSurrogates(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** The time a page was crawled, in the form of its column. */
export function toCrawledAt(iso: string, column: ColumnInfo): string {
  // Instances send exactly the form that a Date gives; parsing and formatting it again would cost as much as the rest
  // of a row.
  const text = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(iso) ? iso : new Date(iso).toISOString();
  return /^(datetime|timestamp)$/.test(column.type) ? text.replace('T', ' ').replace('Z', '') : text;
}

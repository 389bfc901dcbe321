/** Small helpers for reading rows, so that both engines return the same values. */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import type { SqlValue } from './bulk-insert.ts';

/** BIGINT and sums: MySQL returns text, so that nothing is rounded; SQLite returns a number. */
export type SqlNumber = number | string;

export const toNumber = (value: SqlNumber | null | undefined): number => Number(value ?? 0);
/** MySQL and SQLite keep booleans as 0 and 1. */
export const toBoolean = (value: SqlNumber | boolean): boolean => Number(value) !== 0;

/** How a property is kept; null stays null. */
type Kind = 'text' | 'number' | 'boolean' | 'json';

const READERS: Record<Kind, (value: unknown) => unknown> = {
  text: (value) => value,
  number: Number,
  boolean: (value) => Number(value) !== 0,
  json: (value) => JSON.parse(value as string),
};

const toSql = (value: unknown): SqlValue => {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as SqlValue);
};

/** The columns of a record's properties: `launchedAtMs` is kept in `launched_at`, unless `names` has another name. */
export class Columns<T extends object> {
  readonly #fields: (readonly [key: keyof T, column: string, read: (value: unknown) => unknown])[];

  constructor(kinds: Record<keyof T, Kind>, names: Partial<Record<keyof T, string>> = {}) {
    const snake = (key: string): string =>
      key.replace(/Ms$/, '').replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    this.#fields = (Object.entries(kinds) as [keyof T & string, Kind][]).map(([key, kind]) => {
      return [key, names[key] ?? snake(key), READERS[kind]];
    });
  }

  /** The record in a row that has all of these columns; the row may have more. */
  read(row: Readonly<Record<string, unknown>>): T {
    const record: Partial<Record<keyof T, unknown>> = {};
    for (const [key, column, read] of this.#fields) record[key] = row[column] === null ? null : read(row[column]);
    return record as T;
  }

  /** The columns of those properties that are given; whatever else the object holds is left out. */
  write(values: Partial<T>): Record<string, SqlValue> {
    const row: Record<string, SqlValue> = {};
    for (const [key, column] of this.#fields) if (values[key] !== undefined) row[column] = toSql(values[key]);
    return row;
  }
}

/** A value of the user's columns as text: the same for the same value of columns of one type. */
export function sqlText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return value.toString();
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Slices of at most `size`, in order. */
export function inPieces<T>(list: readonly T[], size: number): T[][] {
  const pieces: T[][] = [];
  for (let i = 0; i < list.length; i += size) pieces.push(list.slice(i, i + size));
  return pieces;
}

/** The rows of a query in the shape of its columns: the only place with this unchecked cast. */
export async function rowsOf<T>(query: PromiseLike<unknown>): Promise<T[]> {
  return (await query) as T[];
}

/** The row of a `first()` query. */
export async function rowOf<T>(query: PromiseLike<unknown>): Promise<T | undefined> {
  return (await query) as T | undefined;
}

/** The first row of a statement of our own that has one, on MySQL or MariaDB: a pair of rows and columns answers it. */
export async function mysqlRow<T>(statement: Knex.Raw): Promise<T> {
  const [[row]] = (await statement) as [T[]];
  if (row === undefined) throw new AppError('internal', 'the statement gives no row');
  return row;
}

/** How many rows the query finds. */
export async function countOf(rows: Knex.QueryBuilder): Promise<number> {
  const row = await rowOf<{ found: SqlNumber }>(rows.count({ found: '*' }).first());
  return toNumber(row?.found);
}

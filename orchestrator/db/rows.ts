/** Small helpers for reading rows, so that both engines return the same values. */

/** BIGINT and sums: MySQL returns text, so that nothing is rounded; SQLite returns a number. */
export type SqlNumber = number | string;

export const toNumber = (value: SqlNumber | null | undefined): number => Number(value ?? 0);
export const toNumberOrNull = (value: SqlNumber | null): number | null => (value === null ? null : Number(value));
/** MySQL and SQLite keep booleans as 0 and 1. */
export const toBoolean = (value: SqlNumber | boolean): boolean => Number(value) !== 0;

/** JSON that we wrote, or null. The caller knows its shape. */
export function parseJson(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
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

/** Stages the rows of a part's stored products: a product is staged with all of its rows or not at all. */
import type { Knex } from 'knex';
import { landingOf } from '../../../shared/domain/landing.ts';
import type { Column, FieldValue, KeyedRow, Row } from '../../../shared/domain/mapping.ts';
import type { PageStamp } from '../../../shared/domain/validators.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { tellsApart } from '../decide/end/shared-results.ts';
import { hashOf } from './key-hash.ts';
import { bulkInsert, type SqlValue } from './bulk-insert.ts';
import { keyColumns } from './column-types.ts';
import { UnfitValue, toCrawledAt, toRowKey, toSqlValue } from './column-values.ts';
import type { Database } from './connect.ts';
import { inPieces } from './rows.ts';
import type { RunShape } from './run-shape.ts';
import { findAmbiguous, marksOf, resolveNumbers } from './ambiguous-values.ts';
import { CONTENT_COLUMN, LANDING_COLUMN, MAX_LANDING_CHARS, STAMP_COLUMN, stagingColumns } from './staging.ts';

export type StoredResult = ItemResult & {
  outcome: 'stored';
  /** The rows as they were read, where an assertion has left values out. */
  whole?: KeyedRow[];
};

export interface Staged {
  /** Number of rows staged for each stored product, by id. */
  rows: Map<string, number>;
  /** Why the other products were not staged, by id: names columns and database codes, never values. */
  refused: Map<string, string>;
}

const LIST = 1_000;

/** `results`: by id, each product once, none of them staged yet. Extra memory: one batch of rows. */
export async function stageRows(
  trx: Knex.Transaction,
  db: Database,
  given: RunShape,
  results: readonly StoredResult[],
): Promise<Staged> {
  const staged: Staged = { rows: new Map(), refused: new Map() };
  // Columns that no row of the part fills would only enlarge the statements.
  const ambiguous = results.some(hasAmbiguous) ? given.ambiguous : [];
  const shape = { ...given, ambiguous, stamps: given.stamps && results.some(({ page }) => page !== undefined) };
  /** The product of each row sent to the database. */
  const owners: string[] = [];
  function* rows(): Generator<SqlValue[]> {
    for (const result of results) {
      const own = toRows(shape, result);
      if (own instanceof UnfitValue) {
        staged.refused.set(result.id, own.detail);
        continue;
      }
      staged.rows.set(result.id, own.length);
      for (const [at, row] of own.entries()) {
        owners.push(result.id);
        if (shape.stamps) row.push(at === 0 ? stampOf(result) : null);
        if (shape.shares) row.push(...(at === 0 ? [landingPlace(result), contentOf(shape, result)] : [null, null]));
        yield row;
      }
    }
  }
  const many = shape.rowKey !== null;
  const target = {
    table: shape.staging,
    columns: [
      ...stagingColumns(shape.mapping),
      ...shape.ambiguous.flatMap(({ text, point, comma }) => [text, point, comma]),
      ...(shape.stamps ? [STAMP_COLUMN] : []),
      ...(shape.shares ? [LANDING_COLUMN, CONTENT_COLUMN] : []),
    ],
    existing: 'keep',
    keyColumns: keyColumns(shape.mapping).length,
    together: many,
  } as const;
  const begun: string[] = [];
  for (const { index, detail } of await bulkInsert(trx, db, target, rows())) {
    const owner = owners[index];
    if (owner === undefined) continue;
    staged.rows.delete(owner);
    staged.refused.set(owner, detail);
    begun.push(owner);
  }
  if (many) for (const piece of inPieces(begun, LIST)) await trx(shape.staging).whereIn('product_id', piece).delete();
  return staged;
}

const hasAmbiguous = ({ rows }: StoredResult): boolean =>
  rows.some(({ row }) => Object.values(row).some((value) => findAmbiguous(value) !== null));

/**
 * A page with an ambiguous number has no name: it is read again, because other pages may decide the number later.
 * Neither has one whose values broke an assertion: they may be right the next time.
 */
function stampOf(result: StoredResult): string | null {
  const page = hasAmbiguous(result) || result.whole !== undefined ? null : readPageOf(result);
  return page && JSON.stringify(page);
}

/** The page on which the request ended, if it is not the product's own. */
function landingPlace({ id, url, finalUrl }: StoredResult): string | null {
  const landing = finalUrl === undefined ? null : landingOf(finalUrl, { id, url });
  return landing && landing.slice(0, MAX_LANDING_CHARS);
}

/** 64 bits of a hash of the row, as text; null for a row that may rightly be that of many products. */
function contentOf({ rowKey, titles }: RunShape, { rows }: StoredResult): string | null {
  const [only] = rows;
  if (rowKey !== null || only === undefined || !tellsApart(only.row, titles)) return null;
  return hashOf(JSON.stringify(only.row)).readBigInt64BE(0).toString();
}

/** A page that was read whole, as it is remembered. */
export interface ReadPage extends PageStamp {
  /** Decimal marks that its numbers show, as marksOf() names them. */
  marks: string[];
  /** When it was read, and a hash of its rows; omitted by earlier versions. */
  readAt?: string;
  content?: string;
}

/** What is remembered of a page; null for one to which the site gives no name. */
export function readPageOf(result: StoredResult): ReadPage | null {
  if (result.page === undefined) return null;
  const content = hashOf(JSON.stringify(result.whole ?? result.rows)).toString('base64url');
  return { ...result.page, marks: marksOf(result), readAt: result.at, content };
}

/** The rows of one product in key order; of two with the same key the first wins. */
function toRows(shape: RunShape, result: StoredResult): SqlValue[][] | UnfitValue {
  const { id } = result;
  const page = [result.url, toCrawledAt(result.at, shape.crawledAt)];
  if (result.rows.length === 0 && shape.countsRows) return [];
  if (shape.rowKey === null) {
    const [only] = result.rows;
    if (only === undefined || result.rows.length > 1 || only.key !== null)
      return new UnfitValue(`${result.rows.length} records, where the mapping gives one without a key`);
    const values: SqlValue[] = [id];
    return addValues(values, shape, only.row, page) ?? [values];
  }
  const keyed = keyRows(result.rows, shape.rowKey);
  if (keyed instanceof UnfitValue) return keyed;
  const rows: SqlValue[][] = [];
  // In primary-key order, like the products.
  for (const [key, row] of [...keyed].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const values: SqlValue[] = [id, key];
    const unfit = addValues(values, shape, row, page);
    if (unfit) return unfit;
    rows.push(values);
  }
  return rows;
}

function keyRows(rows: readonly KeyedRow[], kind: 'exact' | 'integer'): Map<string, Row> | UnfitValue {
  const keyed = new Map<string, Row>();
  for (const { key, row } of rows) {
    const text = toRowKey(key, kind);
    if (text instanceof UnfitValue) return text;
    if (!keyed.has(text)) keyed.set(text, row);
  }
  return keyed;
}

/** Appends the fields and the page (its URL, and when it was crawled) to the key; null when every value fits. */
function addValues(values: SqlValue[], shape: RunShape, row: Row, page: readonly string[]): UnfitValue | null {
  const first = values.length;
  let ambiguous: Map<number, OpenValue> | null = null;
  for (let i = 0; i < shape.columns.length; i++) values.push(null);
  for (const name of Object.keys(row)) {
    const own = shape.columnOf.get(name);
    if (own === undefined) continue;
    const value = row[name] ?? null;
    const bound = toSqlValue(own.column, value);
    if (bound instanceof UnfitValue) return bound;
    values[first + own.place] = bound;
    const open = findAmbiguous(value);
    if (open !== null) (ambiguous ??= new Map()).set(own.place, { value, text: open.text });
  }
  values.push(...page);
  for (const { column, place, mayBeEmpty } of shape.ambiguous) {
    const open = ambiguous?.get(place);
    if (open !== undefined && !mayBeEmpty) return noRoom(column);
    const readings = open === undefined ? [null, null, null] : readingsOf(column, open);
    for (const bound of readings) {
      if (bound instanceof UnfitValue) return bound;
      values.push(bound);
    }
  }
  return null;
}

const noRoom = ({ name }: Column): UnfitValue =>
  new UnfitValue(
    `an ambiguous number in column ${name}, which is NOT NULL; make the column nullable, or name the decimal mark in the mapping`,
  );

/** A value with an ambiguous number, and that number's text. */
interface OpenValue {
  value: FieldValue;
  text: string;
}

/** The text of an ambiguous number, and both readings. */
function readingsOf(column: Column, { value, text }: OpenValue): (SqlValue | UnfitValue)[] {
  return [text, toSqlValue(column, resolveNumbers(value, '.')), toSqlValue(column, resolveNumbers(value, ','))];
}

/** The user's result table: checked against the mapping before a launch, created when it does not exist. */
import { AppError } from '../../../shared/domain/errors.ts';
import { hasRows, type Mapping } from '../../../shared/domain/mapping.ts';
import type { Knex } from 'knex';
import type { IdList } from '../model/stores.ts';
import { bulkInsert } from './bulk-insert.ts';
import { keyColumns, maxIdChars, neededColumns, productIdType, rowKeyType } from './column-types.ts';
import type { Database } from './connect.ts';
import type { DataFeature, ResultTable } from './data-feature.ts';
import { classifyDatabaseError, databaseCode, toAppError } from './database-errors.ts';
import { type Fault, isKeyedByRow, keyFaults, modify } from './result-key.ts';
import { inQuery } from './retry.ts';
import { type ColumnInfo, findColumn, readTable, splitTableName, type TableInfo, typeOf } from './table-info.ts';
import { createTable, withTemporaryTable } from './table-statements.ts';

/** Where the changes of its rows are, if they are kept (`results.history`). */
export const historyTable = (resultTable: string): string => `${resultTable}_history`;

export interface ResultTableCheck {
  /** False: createResultTable will create it. */
  exists: boolean;
}

/**
 * Checks that the table can hold the rows of this mapping and these products, without changing anything.
 * Throws `results-schema` with every mismatch at once, and `product-id-invalid` for an ID that is too long beside
 * row_key.
 */
export async function checkResultTable(
  db: Database,
  table: string,
  mapping: Mapping,
  productIds: IdList,
): Promise<ResultTableCheck> {
  checkName(db, table);
  checkIdLength(db, mapping, productIds);
  const info = await inQuery(db, (knex) => readTable(knex, db, table));
  if (!info) return { exists: false };
  if (!hasRows(mapping) && isKeyedByRow(info)) {
    const what = 'its rows are identified by product_id and row_key, but this mapping has no `rows`';
    throw mismatch(table, [{ what, mend: null }], false);
  }
  if (['product_id', 'run_id', 'url', 'crawled_at'].every((name) => findColumn(info, name) === undefined))
    throw new AppError(
      'results-schema',
      `results.table ${table} does not fit: it has none of the columns of results, so it holds something else`,
      {
        hint: 'In results.table name a table that does not exist yet: it will be made. The default is product_snapshots.',
      },
    );
  const faults = [
    ...tableFaults(info, table),
    ...columnFaults(db, info, table, mapping),
    ...keyFaults(db, info, table, mapping),
  ];
  const column = findColumn(info, 'product_id');
  if (faults.length === 0 && column !== undefined) {
    const clash = await findIdClash(db, { table, column, maxChars: maxIdChars(db, mapping) }, productIds);
    if (clash)
      faults.push({ what: clash, mend: modify(db, table, 'product_id', `${productIdType(db, mapping)} not null`) });
  }
  if (faults.length > 0) throw mismatch(table, faults, info.isOurs && missingColumns(db, info, mapping).length > 0);
  return { exists: true };
}

/**
 * The columns that the mapping needs and the table lacks, each as an ALTER TABLE names it. Empty for a table that
 * does not exist or that we have not made: only the user alters the user's own table.
 */
export async function columnsToAdd(db: Database, table: string, mapping: Mapping): Promise<string[]> {
  checkName(db, table);
  const info = await inQuery(db, (knex) => readTable(knex, db, table));
  return info?.isOurs === true ? missingColumns(db, info, mapping) : [];
}

/** Adds them: all or none. */
export async function addColumns(db: Database, table: string, columns: readonly string[]): Promise<void> {
  const clauses = columns.map((column) => `add column ${column}`);
  // MySQL takes all of them in one statement and commits after each; SQLite takes one at a time.
  const statements = db.engine === 'mysql' ? [clauses.join(', ')] : clauses;
  await inQuery(db, (knex) =>
    knex.transaction(async (trx) => {
      for (const statement of statements) await trx.raw(`alter table ?? ${statement}`, [table]);
    }),
  );
}

/**
 * Creates the table unless it exists: product_id, row_key with `rows`, a column per field, run_id, url, crawled_at; and
 * the tables of features beside it.
 */
export async function createResultTable(
  db: Database,
  results: ResultTable,
  mapping: Mapping,
  features: readonly DataFeature[],
): Promise<void> {
  const { table } = results;
  checkName(db, table);
  const needed = neededColumns(db, mapping);
  const lines = [
    `product_id ${productIdType(db, mapping)} not null`,
    ...(hasRows(mapping) ? [`row_key ${rowKeyType(db)} not null`] : []),
    ...needed.map((c) => `?? ${c.declared}`),
  ];
  await inQuery(db, async (knex) => {
    if (await readTable(knex, db, table)) return;
    await createTable(knex, db, {
      table,
      lines,
      markedKey: keyColumns(mapping),
      names: needed.map((c) => c.name),
      indexes: { run_id: 'run_id' },
    });
  });
  for (const { afterPublish } of features) await afterPublish?.createTables?.(db, results, mapping);
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

/** The first ID that is so. */
function findId(ids: IdList, isSo: (id: string) => boolean): string | undefined {
  for (const id of ids) if (isSo(id)) return id;
  return undefined;
}

/** Such an ID does not fit into the key beside row_key, nor into that of the staging table. */
function checkIdLength(db: Database, mapping: Mapping, productIds: IdList): void {
  const most = maxIdChars(db, mapping);
  const long = findId(productIds, (id) => id.length > most && Array.from(id).length > most);
  if (long === undefined) return;
  throw new AppError(
    'product-id-invalid',
    `the product ${JSON.stringify(Array.from(long).slice(0, 40).join(''))}… has an ID of more than ${most} characters; with \`rows\` in the mapping the key of a table holds no longer ones`,
    { hint: 'Leave it out of products.query, or give the mapping no `rows`.' },
  );
}

function tableFaults(info: TableInfo, table: string): Fault[] {
  if (info.kind === 'view') return [{ what: 'it is a view; rows go into a table', mend: null }];
  if (info.engine !== null && !/^innodb$/i.test(info.engine)) {
    // Publishing is one transaction; a non-transactional engine would keep half of it.
    return [{ what: `its engine ${info.engine} has no transactions`, mend: `ALTER TABLE ${table} ENGINE=InnoDB` }];
  }
  return [];
}

const missingColumns = (db: Database, info: TableInfo, mapping: Mapping): string[] =>
  neededColumns(db, mapping)
    .filter(({ name }) => findColumn(info, name) === undefined)
    .map(({ name, declared }) => `${name} ${nullable(declared)}`);

/** In a table with rows a new column has no value. */
const nullable = (declared: string): string => declared.replace(' not null', '');

function columnFaults(db: Database, info: TableInfo, table: string, mapping: Mapping): Fault[] {
  const faults: Fault[] = [];
  const needed = neededColumns(db, mapping);
  for (const { name, declared, accepts } of needed) {
    const column = findColumn(info, name);
    const plain = nullable(declared);
    if (!column)
      faults.push({ what: `column ${name} is missing`, mend: `ALTER TABLE ${table} ADD COLUMN ${name} ${plain}` });
    else if (column.generated) faults.push({ what: `column ${name} is generated`, mend: null });
    else if (!accepts(column)) {
      const what = `column ${name} is ${column.declared || 'untyped'}, but its values need ${plain}`;
      faults.push({ what, mend: modify(db, table, name, plain) });
    }
  }
  const written = new Set([...keyColumns(mapping), ...needed.map((c) => c.name.toLowerCase())]);
  for (const column of info.columns) {
    if (written.has(column.name.toLowerCase()) || column.nullable || column.hasDefault) continue;
    faults.push({
      what: `column ${column.name} must have a value, and the mapping gives none`,
      mend: modify(db, table, column.name, `${column.declared} null`),
    });
  }
  return faults;
}

function mismatch(table: string, faults: readonly Fault[], canAdd: boolean): AppError {
  const mends = faults.flatMap((f) => (f.mend === null ? [] : [f.mend]));
  return new AppError(
    'results-schema',
    `results.table ${table} does not fit: ${faults.map((f) => f.what).join('; ')}`,
    {
      hint: [
        ...(canAdd
          ? ['crawlfleet has made this table: with --add-columns the run adds the missing columns. Or by hand:']
          : []),
        ...mends.map((m) => (m.startsWith('make') ? m : `${m};`)),
        'or name a table that does not exist yet: it will be made.',
      ].join('\n'),
    },
  );
}

const INTEGER = /^(tinyint|smallint|mediumint|int|integer|bigint)$/;
const TEST_TABLE = 'crawlfleet_id_probe';

/**
 * Checks whether an existing product_id column distinguishes these products; null when every product gets its own row.
 * Integer columns and collations that ignore case or trailing spaces are fine as long as no two products are equal
 * under them. No ID is longer than `maxChars`.
 */
async function findIdClash(
  db: Database,
  { table, column, maxChars }: { table: string; column: ColumnInfo; maxChars: number },
  productIds: IdList,
): Promise<string | null> {
  if (productIds.length === 0 || isByteEqual(db, column, maxChars)) return null;
  if (INTEGER.test(column.type) || column.type === 'numeric') {
    const other = findId(productIds, (id) => !/^(0|-?[1-9]\d{0,19})$/.test(id));
    if (other !== undefined)
      return `product_id is ${column.declared}, but the product ${JSON.stringify(other)} is not a plain whole number`;
  }
  const result = await refusalOfIds(db, column, productIds);
  if (result === null) return null;
  if (result === 'clash')
    return `product_id (${column.declared}${column.collation ? `, ${column.collation}` : ''}) treats some of the products as equal`;
  return `product_id (${column.declared}) of ${table} cannot hold all products: ${result}`;
}

function isByteEqual(db: Database, column: ColumnInfo, maxChars: number): boolean {
  if (db.engine === 'sqlite') return /^(text|blob)$/.test(column.type) && column.collation === 'BINARY';
  return column.type === 'varchar' && column.collation === db.byteCollation && (column.maxLength ?? 0) >= maxChars;
}

/**
 * What the column says to these IDs: null, `clash`, or the database's message for a value that does not fit. Other
 * sessions never see the table.
 */
async function refusalOfIds(db: Database, column: ColumnInfo, productIds: IdList): Promise<string | null> {
  const type = db.engine === 'sqlite' ? `${column.declared} collate ${column.collation ?? 'BINARY'}` : typeOf(column);
  const lines = [`product_id ${type} not null ${db.engine === 'sqlite' ? 'unique' : 'primary key'}`];
  try {
    return await db.knex.transaction((trx) =>
      withTemporaryTable(trx, db, { table: TEST_TABLE, lines }, () => insertAll(trx, db, productIds)),
    );
  } catch (error) {
    throw toAppError(error, db.label);
  }
}

async function insertAll(trx: Knex.Transaction, db: Database, productIds: IdList): Promise<string | null> {
  const target = { table: TEST_TABLE, columns: ['product_id'], existing: 'error' } as const;
  try {
    const refused = await bulkInsert(trx, db, target, rowsOf(productIds));
    return refused[0]
      ? `${refused.length} do not fit, the first is ${JSON.stringify(productIds.at(refused[0].index))} (${refused[0].detail})`
      : null;
  } catch (error) {
    if (isDuplicate(error)) return 'clash';
    throw error;
  }
}

function* rowsOf(productIds: IdList): Generator<[string]> {
  for (const id of productIds) yield [id];
}

const DUPLICATE = /^(ER_DUP_ENTRY|ER_DUP_UNKNOWN_IN_INDEX|SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY))$/;

const isDuplicate = (error: unknown): boolean =>
  classifyDatabaseError(error) === 'other' && DUPLICATE.test(databaseCode(error));

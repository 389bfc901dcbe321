/** The user's result table: checked against the mapping before a launch, created when it does not exist. */
import { AppError } from '../../shared/domain/errors.ts';
import { hasRows, type Mapping } from '../../shared/domain/mapping.ts';
import type { RunSettings } from '../control/model/run-settings.ts';
import { createHistoryTable } from './changes.ts';
import { keyColumns, maxIdChars, neededColumns, productIdType, rowKeyType } from './column-types.ts';
import type { Database } from './connect.ts';
import { findIdClash } from './id-clash.ts';
import { type Fault, isKeyedByRow, keyFaults, modify } from './result-key.ts';
import { inQuery } from './retry.ts';
import { findColumn, readTable, splitTableName, type TableInfo } from './table-info.ts';
import { createTable } from './table-statements.ts';

export interface ResultTableCheck {
  /** False: createResultTable will create it. */
  exists: boolean;
}

/**
 * Checks that the table can hold the rows of this mapping and these products, without changing anything.
 * Throws `results-schema` with every mismatch at once, and `product-id-invalid` for an ID that is too long beside row_key.
 */
export async function checkResultTable(
  db: Database,
  table: string,
  mapping: Mapping,
  productIds: readonly string[],
): Promise<ResultTableCheck> {
  checkName(db, table);
  checkIdLength(db, mapping, productIds);
  const info = await inQuery(db, (knex) => readTable(knex, db, table));
  if (!info) return { exists: false };
  if (!hasRows(mapping) && isKeyedByRow(info)) {
    const what = 'its rows are identified by product_id and row_key, but this mapping has no `rows`';
    throw mismatch(table, [{ what, mend: null }]);
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
  if (faults.length === 0) {
    const column = findColumn(info, 'product_id')!;
    const clash = await findIdClash(db, { table, column, maxChars: maxIdChars(db, mapping) }, productIds);
    if (clash)
      faults.push({ what: clash, mend: modify(db, table, 'product_id', `${productIdType(db, mapping)} not null`) });
  }
  if (faults.length > 0) throw mismatch(table, faults);
  return { exists: true };
}

/** Creates the table unless it exists: product_id, row_key with `rows`, a column per field, run_id, url, crawled_at; with `history` also the table of changes. */
export async function createResultTable(
  db: Database,
  { table, history }: Pick<RunSettings['results'], 'table' | 'history'>,
  mapping: Mapping,
): Promise<void> {
  checkName(db, table);
  const needed = neededColumns(db, mapping);
  const lines = [
    `product_id ${productIdType(db, mapping)} not null`,
    ...(hasRows(mapping) ? [`row_key ${rowKeyType(db)} not null`] : []),
    ...needed.map((c) => `?? ${c.declared}`),
    `primary key (${keyColumns(mapping).join(', ')})`,
  ];
  await inQuery(db, async (knex) => {
    if (await readTable(knex, db, table)) return;
    await createTable(knex, db, { table, lines, names: needed.map((c) => c.name), indexes: ['run_id'] });
  });
  if (history === 'changes') await createHistoryTable(db, table, mapping);
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

/** Such an ID does not fit into the key beside row_key, nor into that of the staging table. */
function checkIdLength(db: Database, mapping: Mapping, productIds: readonly string[]): void {
  const most = maxIdChars(db, mapping);
  const long = productIds.find((id) => id.length > most && Array.from(id).length > most);
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

function columnFaults(db: Database, info: TableInfo, table: string, mapping: Mapping): Fault[] {
  const faults: Fault[] = [];
  const needed = neededColumns(db, mapping);
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

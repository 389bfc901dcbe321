/**
 * `results.history: changes`: what a run changes, a row for each field of each row, written in the transaction that
 * publishes and before the rows are replaced. A row without a field is about the product itself: it has vanished, come
 * back, or become partial.
 */
import type { Knex } from 'knex';
import { hasRows, type Mapping } from '../../../shared/domain/mapping.ts';
import { ITEMS } from '../../core/db/chunk-rows.ts';
import { keyColumns, productIdType, rowKeyType } from '../../core/db/column-types.ts';
import { toCrawledAt } from '../../core/db/column-values.ts';
import type { Database } from '../../core/db/connect.ts';
import type { Publication } from '../../core/db/data-feature.ts';
import { fieldValues } from '../../core/db/number-columns.ts';
import { inQuery } from '../../core/db/retry.ts';
import { historyTable } from '../../core/db/result-table.ts';
import {
  type ColumnInfo,
  isOther,
  readStandingTable,
  readTable,
  standingColumn,
  typeOf,
} from '../../core/db/table-info.ts';
import { createTable, insertSelect, withTemporaryTable } from '../../core/db/table-statements.ts';

const CHANGED = 'crawlfleet_changed';

/** Creates the table unless it exists; the result table must. */
export async function createHistoryTable(db: Database, resultTable: string, mapping: Mapping): Promise<void> {
  const table = historyTable(resultTable);
  const id = db.engine === 'mysql' ? 'bigint not null auto_increment' : 'integer';
  await inQuery(db, async (knex) => {
    if (await readTable(knex, db, table)) return;
    const crawledAt = standingColumn(await readStandingTable(knex, db, resultTable), 'crawled_at');
    const lines = [
      `id ${id} primary key`,
      `product_id ${productIdType(db, mapping)} not null`,
      ...(hasRows(mapping) ? [`row_key ${rowKeyType(db)}`] : []),
      'field varchar(64), old_value longtext, new_value longtext',
      `changed_at ${typeOf(crawledAt)} not null, run_id varchar(64) not null`,
    ];
    await createTable(knex, db, { table, lines, indexes: { product_id: 'product_id', run_id: 'run_id' } });
  });
}

/** Writes what replacing the rows is about to change. New products are no change. */
export async function noteChanges(trx: Knex.Transaction, db: Database, publication: Publication): Promise<void> {
  const { runId, shape, decisions, exceptSettled } = publication;
  const { table } = shape.results;
  const info = await readStandingTable(trx, db, table);
  const keys = keyColumns(shape.mapping);
  const fields = shape.columns.map((column) => standingColumn(info, column.name));
  const staged = trx(shape.staging).select(
    ...keys,
    ...fieldValues(shape, decisions).map(({ column, sql, bindings }) =>
      trx.raw(`${sql} as ??`, [...bindings, column.name]),
    ),
    'crawled_at',
  );
  const quoted = (of: string, { name }: ColumnInfo): string => trx.ref(`${of}.${name}`).toQuery();
  const sameRow = keys.map((key) => isSameKey(db, key, standingColumn(info, key))).join(' and ');
  const differences = fields.map((field) => isOther(db, field, quoted('r', field), quoted('s', field)));
  const types = [productIdType(db, shape.mapping), rowKeyType(db)];
  const lines = [...keys.map((key, i) => `${key} ${types[i]} not null`), `primary key (${keys.join(', ')})`];
  await withTemporaryTable(trx, db, { table: CHANGED, lines }, async () => {
    // One pass over all rows finds the few that differ; only those are compared field by field.
    const changed = trx
      .select(keys.map((key) => `s.${key}`))
      .from(staged.clone().modify(exceptSettled).as('s'))
      .joinRaw('join ?? as r on', [table])
      .joinRaw(sameRow)
      .whereRaw(`(${differences.join(' or ')})`);
    await insertSelect(trx, { table: CHANGED, columns: keys }, changed);
    const columns = [...keys, 'field', 'old_value', 'new_value', 'changed_at', 'run_id'];
    for (const [i, field] of fields.entries()) {
      const text = (of: string): Knex.Raw =>
        trx.raw(`cast(${quoted(of, field)} as ${db.engine === 'mysql' ? 'char' : 'text'})`);
      const rows = trx
        .select(
          ...keys.map((key) => `s.${key}`),
          trx.raw('?', [field.name]),
          text('r'),
          text('s'),
          's.crawled_at',
          trx.raw('?', [runId]),
        )
        .from(`${CHANGED} as c`)
        .join(staged.clone().as('s'), (on) => {
          for (const key of keys) void on.on(`c.${key}`, `s.${key}`);
        })
        .joinRaw('join ?? as r on', [table])
        .joinRaw(sameRow)
        .whereRaw(differences[i]!);
      await insertSelect(trx, { table: historyTable(table), columns }, rows);
    }
  });
  await noteProducts(trx, publication);
}

/**
 * What a product may be, by its newest row without a field. One without such a row is `stored`.
 *
 * gone      its page is gone
 * partial   it was stored without some of its further pages: rows of it may be older than the others
 * stored    neither any more
 */
const STANDINGS = {
  gone: { outcome: 'gone' },
  partial: (item: Knex.QueryBuilder) => void item.where({ outcome: 'stored' }).whereNotNull('left_out'),
  stored: { outcome: 'stored', left_out: null },
};

/** Products that have become gone, partial or whole. */
async function noteProducts(trx: Knex.Transaction, publication: Publication): Promise<void> {
  const { runId, shape, exceptSettled, nowMs } = publication;
  const table = historyTable(shape.results.table);
  const at = toCrawledAt(new Date(nowMs).toISOString(), shape.crawledAt);
  // A join, because for a subquery with `order by h.id limit 1` a server without statistics of a new table reads it
  // backwards for each product: a million products took hours.
  const newest = trx(`${table} as h`)
    .whereNull('h.field')
    .whereNotExists((later) => {
      void later
        .select(trx.raw('1'))
        .from(`${table} as l`)
        .whereRaw('l.product_id = h.product_id and l.field is null and l.id > h.id');
    })
    .select('h.product_id', 'h.new_value');
  const before = trx.raw(`coalesce(n.new_value, 'stored')`);
  for (const [to, standing] of Object.entries(STANDINGS)) {
    if (to === 'partial' && shape.rowKey === null) continue;
    const columns = ['product_id', 'old_value', 'new_value', 'changed_at', 'run_id'];
    const items = trx(ITEMS).where({ run_id: runId }).where(standing).modify(exceptSettled).select('product_id');
    const products = trx
      .select('i.product_id', before, ...[to, at, runId].map((value) => trx.raw('?', [value])))
      .from(items.as('i'))
      .leftJoin(newest.clone().as('n'), 'n.product_id', 'i.product_id')
      .whereRaw('? <> ?', [before, to]);
    await insertSelect(trx, { table, columns }, products);
  }
}

/** Finds a staged row's predecessor by the user's key, exactly as the upsert does. */
export function isSameKey(db: Database, key: string, column: ColumnInfo): string {
  if (db.engine === 'sqlite') return `r.${key} = s.${key}`;
  if (column.charset !== null)
    return `r.${key} = convert(s.${key} using ${column.charset}) collate ${column.collation}`;
  // Beside a text MySQL would compare both as doubles, which are equal too often above 2^53.
  if (/int/.test(column.type))
    return `r.${key} = cast(s.${key} as ${/unsigned/.test(column.declared) ? 'unsigned' : 'signed'})`;
  return `r.${key} = cast(s.${key} as binary)`;
}

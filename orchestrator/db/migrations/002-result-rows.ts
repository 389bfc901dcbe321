/**
 * How many rows of the result table a part and a product gave: with `rows` in the mapping that is another number than
 * that of the stored products, and without it nothing would show that some are missing.
 */
import type { Migration } from './migration.ts';

export const resultRows: Migration = {
  version: 2,
  name: 'result-rows',
  tables: {},
  columns: {
    crawlfleet_parts: { result_rows: (t) => t.integer('result_rows').notNullable().defaultTo(0) },
    // Null: one row for a stored product, as every mapping without `rows` gives.
    crawlfleet_items: { result_rows: (t) => t.integer('result_rows') },
  },
  async fill(knex) {
    await knex('crawlfleet_parts')
      .where({ state: 'loaded', result_rows: 0 })
      .update({ result_rows: knex.ref('stored') });
  },
};

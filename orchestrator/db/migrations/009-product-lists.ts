/** The product list of a run, and whether a person accepted its length: later runs of the list are compared with it. */
import type { Migration } from './migration.ts';

export const productLists: Migration = {
  version: 9,
  name: 'product-lists',
  tables: {},
  columns: {
    crawlfleet_runs: {
      // Null for runs of other products, and for runs before this migration, whose list is unknown.
      list_key: (t) => t.string('list_key', 64),
      list_accepted: (t) => t.smallint('list_accepted'),
    },
  },
};

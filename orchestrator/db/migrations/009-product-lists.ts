/** Which product list a run was over, and whether a person has accepted its length: later runs of the list are compared with it. */
import type { Migration } from './migration.ts';

export const productLists: Migration = {
  version: 9,
  name: 'product-lists',
  tables: {},
  columns: {
    crawlfleet_runs: {
      // Null for runs of other products, and for those before this: what list they were over is not known.
      list_key: (t) => t.string('list_key', 64),
      list_accepted: (t) => t.smallint('list_accepted'),
    },
  },
};

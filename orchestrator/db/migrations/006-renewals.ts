/** When an instance was ordered to rotate its address. */
import type { Migration } from './migration.ts';

export const renewals: Migration = {
  version: 6,
  name: 'renewals',
  tables: {},
  columns: {
    crawlfleet_instances: {
      leave_at: (t) => t.bigInteger('leave_at'),
    },
  },
};

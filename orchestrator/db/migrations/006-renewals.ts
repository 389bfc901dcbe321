/** When an instance was asked to make room for a fresh address. */
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

/** The row of a due time says who answers for it; the lease and the fence of schedulers are gone. */
import type { Migration } from './migration.ts';

export const dueTimes: Migration = {
  version: 12,
  name: 'due-times',
  tables: {},
  // A process of the earlier version would go on writing under its fence.
  refusesOpenRuns: true,
  columns: {
    crawlfleet_schedule: {
      // The daemon, as host:pid:start.
      owner: (t) => t.string('owner', 255),
      // Of the run.
      deadline_at: (t) => t.bigInteger('deadline_at'),
    },
  },
  async fill(knex) {
    await knex.schema.dropTableIfExists('crawlfleet_schedulers');
    if (await knex.schema.hasColumn('crawlfleet_schedule', 'fence'))
      await knex.raw('alter table crawlfleet_schedule drop column fence');
  },
};

/** Bans and suspicions with their evidence: one row for each time an address stopped on its own. */
import type { Migration } from './migration.ts';

export const troubles: Migration = {
  version: 3,
  name: 'troubles',
  tables: {
    crawlfleet_troubles: (t) => {
      t.string('run_id', 64).notNullable();
      t.integer('slot').notNullable();
      t.integer('epoch').notNullable();
      // 1, 2, 3 … for one instance.
      t.integer('seq').notNullable();
      t.string('verdict', 16).notNullable();
      t.string('rule', 100).notNullable();
      t.bigInteger('at').notNullable();
      t.bigInteger('until');
      t.bigInteger('released_at');
      t.bigInteger('over_at');
      t.text('evidence', 'mediumtext').notNullable();
      t.primary(['run_id', 'slot', 'epoch', 'seq']);
    },
  },
};

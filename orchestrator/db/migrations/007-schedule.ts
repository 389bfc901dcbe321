/** The record of `orchestrator schedule`: the leader of each schedule, and the result of each due time. */
import type { Migration } from './migration.ts';

export const schedule: Migration = {
  version: 7,
  name: 'schedule',
  tables: {
    crawlfleet_schedulers: (t) => {
      t.string('name', 150).notNullable().primary();
      t.bigInteger('fence').notNullable();
      t.string('owner', 255);
      t.string('token', 64);
      t.bigInteger('expires_at').notNullable();
      // Expression and zone; after a change nothing before `since_at` was ever due.
      t.string('spec', 255).notNullable();
      t.bigInteger('since_at').notNullable();
    },
    crawlfleet_schedule: (t) => {
      t.string('name', 150).notNullable();
      t.bigInteger('due_at').notNullable();
      t.string('state', 16).notNullable();
      t.bigInteger('fence').notNullable();
      t.text('reason');
      t.string('runner', 255);
      // By the writer's clock: a time in the future means that the clock was wrong.
      t.bigInteger('written_at').notNullable();
      t.bigInteger('started_at');
      t.bigInteger('ended_at');
      t.string('run_id', 64);
      t.integer('exit_code');
      // JSON: how the run ended, for the webhook.
      t.text('result');
      t.integer('told').notNullable().defaultTo(0);
      t.primary(['name', 'due_at']);
    },
  },
};

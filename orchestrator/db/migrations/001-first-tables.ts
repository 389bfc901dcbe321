/**
 * The tables of the ledger. Times are milliseconds since 1970. Every text is compared by its bytes: on MySQL and MariaDB
 * through the collation of the table, on SQLite by default.
 */
import type { Knex } from 'knex';
import { MAX_ID_CHARS } from '../../../shared/domain/product.ts';
import type { Migration } from './migration.ts';

/** Our run ids are shorter; a slot key with one stays far below the index limit. */
const RUN_ID_CHARS = 64;

export const firstTables: Migration = {
  version: 1,
  name: 'first-tables',
  tables: {
    crawlfleet_locks: (t) => {
      t.string('name', 32).primary();
      t.bigInteger('fence').notNullable();
      t.string('owner', 255);
      // Identifies the call that took it, so that a repeat after a lost commit recognizes its own lease.
      t.string('token', 64);
      t.string('run_id', RUN_ID_CHARS);
      t.bigInteger('expires_at').notNullable();
    },
    crawlfleet_runs: (t) => {
      t.string('id', RUN_ID_CHARS).primary();
      t.string('parent_id', RUN_ID_CHARS);
      t.string('phase', 16).notNullable();
      t.text('reason');
      t.integer('exit_code');
      t.bigInteger('started_at').notNullable();
      t.bigInteger('deadline_at').notNullable();
      t.bigInteger('finished_at');
      t.boolean('dry_run').notNullable();
      t.text('settings', 'longtext').notNullable();
      t.text('plan', 'longtext').notNullable();
      t.integer('planned').notNullable();
      t.integer('duplicates').notNullable();
      t.text('private_key').notNullable();
      t.text('public_key').notNullable();
      t.text('balancer');
      t.string('request', 16);
      t.text('report', 'longtext');
    },
    crawlfleet_launches: (t) => {
      slotKey(t);
      t.text('request', 'longtext').notNullable();
      t.string('token', 255).notNullable();
      t.bigInteger('claimed_at').notNullable();
    },
    crawlfleet_instances: (t) => {
      slotKey(t);
      t.string('phase', 16).notNullable();
      t.bigInteger('phase_at').notNullable();
      t.text('reason');
      t.string('instance_id', 64);
      t.string('address', 64);
      t.string('zone', 64);
      t.integer('attempts').notNullable();
      t.text('last_error');
      t.bigInteger('launched_at');
      t.bigInteger('terminated_at');
      t.string('cloud_state', 16);
      t.boolean('registered').notNullable();
      t.string('public_key', 255);
      t.bigInteger('counter').notNullable();
      t.bigInteger('last_heartbeat_at');
      t.text('progress');
      t.text('problem');
      t.boolean('sealed').notNullable();
      t.string('manifest_key', 255);
      t.string('manifest_sha256', 64);
      t.text('console_output', 'longtext');
    },
    crawlfleet_chunks: (t) => {
      t.string('run_id', RUN_ID_CHARS).notNullable();
      t.integer('idx').notNullable();
      t.integer('first_n').notNullable();
      t.integer('last_n').notNullable();
      // Products without outcome when this generation began.
      t.integer('products').notNullable();
      t.integer('generation').notNullable();
      t.string('state', 8).notNullable();
      t.integer('slot');
      t.integer('epoch');
      t.bigInteger('granted_at');
      t.primary(['run_id', 'idx']);
      t.index(['run_id', 'state', 'idx'], 'crawlfleet_chunks_state');
    },
    crawlfleet_items: (t) => {
      t.string('run_id', RUN_ID_CHARS).notNullable();
      t.integer('n').notNullable();
      t.string('product_id', MAX_ID_CHARS).notNullable();
      t.string('outcome', 8);
      t.string('reason', 16);
      t.string('detail', 500);
      // The part with its result; null for an outcome set by the main server.
      t.integer('slot');
      t.integer('epoch');
      t.integer('seq');
      t.bigInteger('settled_at');
      t.primary(['run_id', 'n']);
    },
    crawlfleet_parts: (t) => {
      slotKey(t, ['seq']);
      t.string('object_key', 255).notNullable();
      t.string('sha256', 64).notNullable();
      t.bigInteger('size_bytes').notNullable();
      t.integer('products').notNullable();
      t.string('state', 8).notNullable();
      t.integer('stored').notNullable();
      t.integer('gone').notNullable();
      t.integer('failed').notNullable();
      t.text('detail');
      t.bigInteger('loaded_at');
    },
    crawlfleet_events: (t) => {
      t.bigIncrements('id');
      t.string('run_id', RUN_ID_CHARS).notNullable();
      t.bigInteger('at').notNullable();
      t.string('kind', 16).notNullable();
      t.integer('slot');
      t.integer('epoch');
      t.string('from_state', 32);
      t.string('to_state', 32);
      t.text('detail');
      t.index(['run_id', 'id'], 'crawlfleet_events_run');
    },
  },
  async fill(knex) {
    const names = ['fence', 'lease'].map((name) => ({ name, fence: 0, expires_at: 0 }));
    await knex('crawlfleet_locks').insert(names).onConflict('name').ignore();
  },
};

function slotKey(t: Knex.CreateTableBuilder, more: string[] = []): void {
  t.string('run_id', RUN_ID_CHARS).notNullable();
  t.integer('slot').notNullable();
  t.integer('epoch').notNullable();
  for (const column of more) t.integer(column).notNullable();
  t.primary(['run_id', 'slot', 'epoch', ...more]);
}

/**
 * The schema: the tables of version 0.1.0, then its steps since, oldest first. They are numbered from FIRST_VERSION by
 * their place, so none may be removed or moved. Times are milliseconds since 1970. Every text is compared by its bytes:
 * on MySQL and MariaDB through the collation of the table, on SQLite by default.
 */
import type { Knex } from 'knex';
import { MAX_ID_CHARS } from '../../shared/domain/product.ts';

interface Migration {
  name: string;
  tables?: Record<string, (table: Knex.CreateTableBuilder) => void>;
  /** Columns added to tables of earlier migrations, by table and name. */
  columns?: Record<string, Record<string, (table: Knex.AlterTableBuilder) => void>>;
  /** Initial rows, or values of added columns; must be repeatable. */
  fill?(knex: Knex): Promise<void>;
}

/** What the tables of 0.1.0 are numbered: earlier ones existed only during its development. */
export const FIRST_VERSION = 14;

/** Our run ids are shorter; a slot key with one stays far below the index limit. */
const RUN_ID_CHARS = 64;

export const MIGRATIONS: readonly Migration[] = [
  {
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
        // Runs of one table are compared with each other, and of two that wrote the same product the later one wins.
        t.string('results_table', 150);
        // The fill rates of its rows, as JSON; null until it has been measured.
        t.text('fill');
        // The product list, and whether a person accepted its length; null for runs of other products.
        t.string('list_key', 64);
        t.smallint('list_accepted');
        // Of products.query, where the run crawls only what is due.
        t.integer('list_length');
        // JSON: NumberReport[].
        t.text('numbers');
        // When the ledger was removed (`retention`).
        t.bigInteger('pruned_at');
        // When the table of crawls learned of it.
        t.bigInteger('noted_at');
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
        // JSON: EC2's answer to the last launch (LaunchFailure), and why it ended the instance (StateReason).
        t.text('answer');
        t.text('state_reason');
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
        // When it was ordered to rotate its address.
        t.bigInteger('rotate_at');
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
        // Null: one row for a stored product, as with every mapping without `rows`.
        t.integer('result_rows');
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
        // Only this number shows that rows are missing.
        t.integer('result_rows').notNullable().defaultTo(0);
        // JSON: by field, how many products show the point and the comma.
        t.text('number_marks');
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
      // Bans and suspicions with their evidence: one row for each time an address stopped on its own.
      crawlfleet_incidents: (t) => {
        // `seq` is 1, 2, 3 … for one instance.
        slotKey(t, ['seq']);
        t.string('verdict', 16).notNullable();
        t.string('rule', 100).notNullable();
        t.bigInteger('at').notNullable();
        t.bigInteger('until');
        t.bigInteger('returned_at');
        t.bigInteger('over_at');
        t.text('evidence', 'mediumtext').notNullable();
      },
      // What gc found past its time, and when first: it removes nothing that it has not seen twice.
      crawlfleet_gc_marks: (t) => {
        t.string('kind', 16).notNullable();
        // An instance id or the name of a balancer.
        t.string('resource', 128).notNullable();
        t.string('owner', 255).notNullable();
        t.bigInteger('first_seen_at').notNullable();
        t.primary(['kind', 'resource']);
      },
      // The record of `orchestrator schedule`: who answers for each due time, and its result.
      crawlfleet_schedule: (t) => {
        t.string('name', 150).notNullable();
        t.bigInteger('due_at').notNullable();
        t.string('state', 16).notNullable();
        t.text('reason');
        // The daemon, as host:pid:start.
        t.string('owner', 255);
        t.string('runner', 255);
        // By the writer's clock: a time in the future means that the clock was wrong.
        t.bigInteger('written_at').notNullable();
        t.bigInteger('started_at');
        t.bigInteger('ended_at');
        t.string('run_id', RUN_ID_CHARS);
        // Of the run.
        t.bigInteger('deadline_at');
        t.integer('exit_code');
        // JSON: how the run ended, for the webhook.
        t.text('result');
        t.integer('told').notNullable().defaultTo(0);
        t.primary(['name', 'due_at']);
      },
      // Counters over time, for charts.
      crawlfleet_samples: (t) => {
        t.string('run_id', RUN_ID_CHARS).notNullable();
        t.bigInteger('at').notNullable();
        // JSON: a RunSample.
        t.text('sample').notNullable();
        t.primary(['run_id', 'at']);
      },
      // An attempt that stored its product at once is in crawlfleet_items alone.
      crawlfleet_attempts: (t) => {
        t.string('run_id', RUN_ID_CHARS).notNullable();
        t.integer('n').notNullable();
        t.bigInteger('at').notNullable();
        t.integer('slot').notNullable();
        t.integer('epoch').notNullable();
        t.string('reason', 16).notNullable();
        t.string('detail', 500).notNullable();
        // JSON; null where another product of the part shows the same.
        t.text('evidence');
        t.primary(['run_id', 'n', 'at', 'slot', 'epoch']);
      },
    },
    async fill(knex) {
      const names = ['fence', 'lease'].map((name) => ({ name, fence: 0, expires_at: 0 }));
      await knex('crawlfleet_locks').insert(names).onConflict('name').ignore();
    },
  },
  {
    name: 'conditional',
    columns: {
      // Of the stored products: those whose page was unchanged, and the bytes of those pages.
      crawlfleet_parts: {
        unchanged: (t) => t.integer('unchanged'),
        saved_bytes: (t) => t.bigInteger('saved_bytes'),
      },
    },
  },
  // `discover`: products that are paths of the site, and what the run has found.
  {
    name: 'discovery',
    columns: {
      crawlfleet_items: { path: (t) => t.string('path', MAX_ID_CHARS) },
      crawlfleet_runs: {
        // JSON: DiscoveryCounts.
        discovery: (t) => t.text('discovery'),
      },
    },
  },
];

function slotKey(t: Knex.CreateTableBuilder, more: string[] = []): void {
  t.string('run_id', RUN_ID_CHARS).notNullable();
  t.integer('slot').notNullable();
  t.integer('epoch').notNullable();
  for (const column of more) t.integer(column).notNullable();
  t.primary(['run_id', 'slot', 'epoch', ...more]);
}

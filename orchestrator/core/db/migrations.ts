/**
 * The steps of the schema, oldest first: numbered from 1 by their place, so none may be removed or moved. Times are
 * milliseconds since 1970. Every text is compared by its bytes: on MySQL and MariaDB through the collation of the
 * table, on SQLite by default.
 */
import type { Knex } from 'knex';
import { MAX_URL_BYTES } from '../../../shared/domain/own-url.ts';
import { MAX_ID_CHARS } from '../../../shared/domain/product.ts';
import type { Database } from './connect.ts';

interface Migration {
  name: string;
  tables?: Record<string, (table: Knex.CreateTableBuilder) => void>;
  /** Columns added to tables of earlier migrations, by table and name. */
  columns?: Record<string, Record<string, (table: Knex.AlterTableBuilder) => void>>;
  /** New names by old ones; columns under their table's new name. Only if the old name exists, and the new not. */
  renamedTables?: Record<string, string>;
  renamedColumns?: Record<string, Record<string, string>>;
  /** True: the upgrade is refused while a run of an earlier version is in progress. */
  refusesOpenRuns?: boolean;
  /** Initial rows, values of added columns, or wider columns; must be repeatable. */
  fill?(knex: Knex, engine: Database['engine']): Promise<void>;
}

/** Our run ids are shorter; a slot key with one stays far below the index limit. */
const RUN_ID_CHARS = 64;

export const MIGRATIONS: readonly Migration[] = [
  // The tables of the ledger.
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
  },
  // How many rows of the result table a part and a product produced. With `rows` in the mapping this differs from the
  // number of stored products, and only this number shows that rows are missing.
  {
    name: 'result-rows',
    columns: {
      crawlfleet_parts: { result_rows: (t) => t.integer('result_rows').notNullable().defaultTo(0) },
      // Null: one row for a stored product, as with every mapping without `rows`.
      crawlfleet_items: { result_rows: (t) => t.integer('result_rows') },
    },
    async fill(knex) {
      await knex('crawlfleet_parts')
        .where({ state: 'loaded', result_rows: 0 })
        .update({ result_rows: knex.ref('stored') });
    },
  },
  // Bans and suspicions with their evidence: one row for each time an address stopped on its own.
  {
    name: 'troubles',
    tables: {
      crawlfleet_troubles: (t) => {
        // `seq` is 1, 2, 3 … for one instance.
        slotKey(t, ['seq']);
        t.string('verdict', 16).notNullable();
        t.string('rule', 100).notNullable();
        t.bigInteger('at').notNullable();
        t.bigInteger('until');
        t.bigInteger('released_at');
        t.bigInteger('over_at');
        t.text('evidence', 'mediumtext').notNullable();
      },
    },
  },
  // The fill rates of a run's rows, for the guard of later runs, and its result table: runs of one table are compared
  // with each other, and of two that wrote the same product the one that began later wins.
  {
    name: 'fill-rates',
    columns: {
      crawlfleet_runs: {
        results_table: (t) => t.string('results_table', 150),
        // JSON; null until the run has been measured.
        fill: (t) => t.text('fill'),
      },
    },
    async fill(knex) {
      const runs: { id: string; settings: string }[] = await knex('crawlfleet_runs')
        .whereNull('results_table')
        .select('id', 'settings');
      for (const { id, settings } of runs) {
        const { results } = JSON.parse(settings) as { results: { table: string } };
        await knex('crawlfleet_runs').where({ id }).update({ results_table: results.table });
      }
    },
  },
  // What gc found past its time, and when first: it removes nothing that it has not seen twice.
  {
    name: 'sightings',
    tables: {
      crawlfleet_sightings: (t) => {
        t.string('kind', 16).notNullable();
        // An instance id or the name of a balancer.
        t.string('resource', 128).notNullable();
        t.string('owner', 255).notNullable();
        t.bigInteger('first_seen_at').notNullable();
        t.primary(['kind', 'resource']);
      },
    },
  },
  // When an instance was ordered to rotate its address.
  { name: 'renewals', columns: { crawlfleet_instances: { leave_at: (t) => t.bigInteger('leave_at') } } },
  // The record of `orchestrator schedule`: the leader of each schedule, and the result of each due time.
  {
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
        t.string('run_id', RUN_ID_CHARS);
        t.integer('exit_code');
        // JSON: how the run ended, for the webhook.
        t.text('result');
        t.integer('told').notNullable().defaultTo(0);
        t.primary(['name', 'due_at']);
      },
    },
  },
  // EC2's answer to a launch, and why it ended an instance: as JSON, so that no decision depends on the wording of a
  // text.
  {
    name: 'launch-answers',
    columns: {
      crawlfleet_instances: {
        // A LaunchFailure. Rows of earlier versions store it in `last_error` (readAnswer in fleet-store.ts).
        answer: (t) => t.text('answer'),
        // A StateReason.
        state_reason: (t) => t.text('state_reason'),
      },
    },
  },
  // The product list of a run, and whether a person accepted its length: later runs of the list are compared with it.
  {
    name: 'product-lists',
    columns: {
      crawlfleet_runs: {
        // Null for runs of other products, and for runs before this migration, whose list is unknown.
        list_key: (t) => t.string('list_key', 64),
        list_accepted: (t) => t.smallint('list_accepted'),
      },
    },
  },
  // The decimal marks shown by a part's numbers, and how the run has read the numbers that these decide.
  {
    name: 'number-marks',
    columns: {
      // JSON: by field, how many products show the point and the comma.
      crawlfleet_parts: { number_marks: (t) => t.text('number_marks') },
      // JSON: NumberReport[].
      crawlfleet_runs: { numbers: (t) => t.text('numbers') },
    },
  },
  // Renames tables, columns and event kinds to the terms of docs/glossary.md.
  {
    name: 'field-terms',
    // A main server of the earlier version would go on writing to the old names.
    refusesOpenRuns: true,
    renamedTables: { crawlfleet_troubles: 'crawlfleet_incidents', crawlfleet_sightings: 'crawlfleet_gc_marks' },
    renamedColumns: {
      crawlfleet_incidents: { released_at: 'returned_at' },
      crawlfleet_instances: { leave_at: 'rotate_at' },
    },
    async fill(knex) {
      await knex('crawlfleet_events').where({ kind: 'projection' }).update({ kind: 'forecast' });
      await knex('crawlfleet_instances').where({ reason: 'address-renewed' }).update({ reason: 'address-rotated' });
    },
  },
  // The row of a due time says who answers for it; the lease and the fence of schedulers are gone.
  {
    name: 'due-times',
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
  },
  // What charts and the story of a product are made from: counters over time, and attempts that did not succeed.
  {
    name: 'history',
    tables: {
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
  },
  // What `retention` has removed, and what `products.recrawl` knows of.
  {
    name: 'nights',
    columns: {
      crawlfleet_runs: {
        // When the ledger was removed (`retention`).
        pruned_at: (t) => t.bigInteger('pruned_at'),
        // When the table of crawls learned of it.
        noted_at: (t) => t.bigInteger('noted_at'),
        // Of products.query, where the run crawls only what is due.
        list_length: (t) => t.integer('list_length'),
      },
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
  // Runs of different sites may share a database: a lock for each host and each result table.
  {
    name: 'locks-by-site',
    refusesOpenRuns: true,
    tables: {
      crawlfleet_leases: (t) => {
        // A host name has up to 253 characters.
        t.string('name', 300).primary();
        t.bigInteger('fence').notNullable().index();
        t.string('owner', 255);
        // Identifies the call that took it, so that a repeat after a lost commit recognizes its own lease.
        t.string('token', 64);
        t.string('run_id', RUN_ID_CHARS);
        t.bigInteger('expires_at').notNullable();
      },
      crawlfleet_fences: (t) => {
        t.bigIncrements('fence');
        t.string('owner', 255).notNullable();
      },
    },
    async fill(knex) {
      await knex.schema.dropTableIfExists('crawlfleet_locks');
    },
  },
  // When a stored product was refused, before its rows were published.
  { name: 'refused-rows', columns: { crawlfleet_items: { refused_at: (t) => t.bigInteger('refused_at') } } },
  // What the values of a run look like, for the guard of later runs with the same mapping.
  {
    name: 'value-profiles',
    columns: {
      crawlfleet_runs: {
        value_rules: (t) => t.string('value_rules', 64),
        // JSON; null until the run has been measured.
        value_profile: (t) => t.text('value_profile', 'mediumtext'),
      },
      // JSON: how many values of the part's rows broke an assertion, by field.
      crawlfleet_parts: { assert_counts: (t) => t.text('assert_counts') },
    },
  },
  // 1 for a page of a discovery that only has links; else null.
  { name: 'link-pages', columns: { crawlfleet_items: { link_page: (t) => t.integer('link_page') } } },
  // What the hosts of the site ask for, once one of them has asked for a slower pace in mid-run. JSON: HostPace[].
  { name: 'paces', columns: { crawlfleet_runs: { paces: (t) => t.text('paces') } } },
  // Who was ever granted which chunk. Runs that began before have no such record, and their settings say so.
  {
    name: 'grants',
    tables: { crawlfleet_grants: (t) => slotKey(t, ['idx']) },
    // Results of a part for products that its instance was never granted; null: none.
    columns: { crawlfleet_parts: { put_aside: (t) => t.integer('put_aside') } },
  },
  // What the operator asks of the run. JSON: OperatorPace.
  { name: 'operator-pace', columns: { crawlfleet_runs: { operator_pace: (t) => t.text('operator_pace') } } },
  // Further pages that products were stored without.
  {
    name: 'partial-products',
    columns: {
      // Of a partial product, whose rows may not be all: how many pages it was stored without; else null.
      crawlfleet_items: { left_out: (t) => t.integer('left_out') },
      crawlfleet_parts: {
        // Of the stored products: those that are partial; null: none.
        partial: (t) => t.integer('partial'),
        // JSON: LeftOutCounts of all its stored products; null: nothing was left out.
        left_out: (t) => t.text('left_out'),
      },
    },
  },
  // The key that the secrets of a site are encrypted to, of an instance's last process; null where it needs none.
  { name: 'secrets-keys', columns: { crawlfleet_instances: { secrets_key: (t) => t.string('secrets_key', 200) } } },
  // `site.hosts`: the path of an item may be a whole URL, which has ASCII characters only.
  {
    name: 'own-urls',
    async fill(knex, engine) {
      // SQLite keeps texts of any length in any column. MySQL changes the column in place: no row is rewritten.
      if (engine === 'mysql') await knex.raw(`alter table crawlfleet_items modify path varchar(${MAX_URL_BYTES})`);
    },
  },
  // Chunks cut by host: each host has one owner at a time. While a slice waits that is kept for the owner of its host,
  // `slot` and `epoch` name that owner. All three are null where all products are at one site.
  {
    name: 'chunks-by-host',
    columns: {
      crawlfleet_chunks: {
        // Index of the first slice of the host that the chunk is a slice of; null: it has whole hosts.
        slice_of: (t) => t.integer('slice_of'),
        // How long its longest host takes at its pace, the slices that follow included. Milliseconds.
        left_ms: (t) => t.bigInteger('left_ms'),
        // Waiting: it is not offered before; null: at once. Granted: when its crawl begins; null: its owner has given
        // the host away.
        due_at: (t) => t.bigInteger('due_at'),
      },
    },
  },
  // The hosts of all runs of many hosts: each has one owner at a time in the whole database.
  {
    name: 'hosts',
    tables: {
      crawlfleet_hosts: (t) => {
        // What one pace holds for: a registrable domain, or a name or address without one.
        t.string('host', 255).primary();
        // Who had the last grant of it, and its products in the chunks granted then; null: never granted.
        t.string('run_id', RUN_ID_CHARS);
        t.integer('slot');
        t.integer('epoch');
        t.integer('first_n');
        t.integer('last_n');
        // The largest Crawl-delay known. Milliseconds.
        t.bigInteger('delay_ms');
        // No request before, by the clock of main servers.
        t.bigInteger('not_before');
        // How often it has refused that run: 1: once; 2: it rests or has rested; 3: it is asked nothing more.
        t.integer('refusals');
        // What an operator asks: 1 for no request at all, and a gap in milliseconds.
        t.integer('denied');
        t.bigInteger('pace_ms');
        // When an operator last asked for something there: runs under way look for what is new.
        t.bigInteger('wished_at').index('crawlfleet_hosts_wished');
        t.index(['run_id', 'slot', 'epoch'], 'crawlfleet_hosts_owner');
      },
    },
  },
  // Of many hosts: products whose page, or whose robots.txt, is at another host, which alone may ask there.
  {
    name: 'moved-products',
    columns: {
      crawlfleet_items: {
        // Where its page has moved to; null: it is where the list says.
        moved_to: (t) => t.string('moved_to', MAX_URL_BYTES),
        // The robots.txt of another host that holds for its origin; null: that of the origin.
        robots_url: (t) => t.string('robots_url', MAX_URL_BYTES),
        // How often it was passed on to another host; null: never.
        moves: (t) => t.integer('moves'),
      },
    },
    tables: {
      // How many products of a run have moved to one page.
      crawlfleet_moved_to: (t) => {
        t.string('run_id', RUN_ID_CHARS).notNullable();
        // A hash of the URL.
        t.string('page', 64).notNullable();
        t.string('url', MAX_URL_BYTES).notNullable();
        t.integer('products').notNullable();
        t.primary(['run_id', 'page']);
      },
    },
  },
  // When each run asked which of many hosts, for a year: its request logs, summed up by instance and host.
  {
    name: 'host-requests',
    tables: {
      crawlfleet_host_requests: (t) => {
        // In the order in which rows are added. The host as in crawlfleet_hosts.
        t.string('run_id', RUN_ID_CHARS).notNullable();
        t.integer('slot').notNullable();
        t.integer('epoch').notNullable();
        t.string('host', 255).notNullable().index('crawlfleet_host_requests_host');
        // The instance's row goes earlier.
        t.string('address', 64);
        t.bigInteger('first_at').notNullable();
        t.bigInteger('last_at').notNullable();
        t.integer('requests').notNullable();
        // What was due between two requests at the end.
        t.bigInteger('interval_ms').notNullable();
        t.primary(['run_id', 'slot', 'epoch', 'host']);
      },
    },
  },
  // Of many hosts: no other instance asks those that this one had last before then. Null: it has returned none.
  {
    name: 'host-rests',
    columns: { crawlfleet_instances: { hosts_free_at: (t) => t.bigInteger('hosts_free_at') } },
  },
  // Runs with `site.host_key: host` have names where others have domains, and exclude each other.
  {
    name: 'host-names',
    columns: {
      crawlfleet_hosts: {
        // The registrable domain, also of a domain itself, once a run has claimed one of its names; null: none has.
        domain: (t) => t.string('domain', 255).index('crawlfleet_hosts_domain'),
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

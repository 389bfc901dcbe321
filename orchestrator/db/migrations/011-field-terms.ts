/** Renames tables, columns and event kinds to the terms of docs/glossary.md. */
import type { Migration } from './migration.ts';

export const fieldTerms: Migration = {
  version: 11,
  name: 'field-terms',
  tables: {},
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
};

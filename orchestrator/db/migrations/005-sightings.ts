/** What gc found past its time, and when first: it removes nothing that it has not seen twice. */
import type { Migration } from './migration.ts';

export const sightings: Migration = {
  version: 5,
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
};

/**
 * The fill rates of a run's rows, for the guard of later runs, and its result table: runs of one table are compared
 * with each other, and of two that wrote the same product the one that began later wins.
 */
import type { Migration } from './migration.ts';

export const fillRates: Migration = {
  version: 4,
  name: 'fill-rates',
  tables: {},
  columns: {
    crawlfleet_runs: {
      results_table: (t) => t.string('results_table', 150),
      // JSON; null until the run has been measured.
      fill: (t) => t.text('fill'),
    },
  },
  async fill(knex) {
    const runs = (await knex('crawlfleet_runs').whereNull('results_table').select('id', 'settings')) as {
      id: string;
      settings: string;
    }[];
    for (const { id, settings } of runs) {
      const { results } = JSON.parse(settings) as { results: { table: string } };
      await knex('crawlfleet_runs').where({ id }).update({ results_table: results.table });
    }
  },
};

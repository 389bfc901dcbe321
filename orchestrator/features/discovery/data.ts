/** Runs whose products are found while they crawl. */
import type { Feature } from '../../core/feature.ts';
import { LinkIntake } from './link-intake.ts';
import { KnexFrontier } from './run-feed.ts';
import { DISCOVER_SECTION } from './section.ts';
import { settleFrontier } from './settle-frontier.ts';

export const discovery: Feature = {
  sections: [DISCOVER_SECTION],
  productFeed: { openRun: (db, binding) => new KnexFrontier(db, binding) },
  afterPublish: {
    openIntake: (knex, run) => LinkIntake.open(knex, run),
    furtherTables(config) {
      const discover = DISCOVER_SECTION.of(config);
      return discover === null ? [] : [discover.into.table];
    },
    async afterRun(db, { resultTable, discover }) {
      const waiting = discover === undefined ? 0 : await settleFrontier(db, resultTable, discover.seen);
      return waiting === 0 ? null : `  frontier    ${waiting} URLs wait for the next discovery`;
    },
  },
};

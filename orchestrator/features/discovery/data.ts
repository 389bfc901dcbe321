/** Runs whose products are found while they crawl. */
import type { DataFeature } from '../../core/db/data-feature.ts';
import { LinkIntake } from './link-intake.ts';
import { KnexFrontier } from './run-feed.ts';
import { settleFrontier } from './settle-frontier.ts';

export const discovery: DataFeature = {
  productFeed: { openRun: (db, binding) => new KnexFrontier(db, binding) },
  afterPublish: {
    openIntake: (knex, run) => LinkIntake.open(knex, run),
    async afterRun(db, { resultTable, discover }) {
      const waiting = discover === undefined ? 0 : await settleFrontier(db, resultTable, discover.seen);
      return waiting === 0 ? null : `  frontier    ${waiting} URLs wait for the next discovery`;
    },
  },
};

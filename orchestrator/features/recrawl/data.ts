/** Which products are due, and what a run has found of them. */
import type { DataFeature } from '../../core/db/data-feature.ts';
import { noteCrawls } from './crawls.ts';
import { chooseNight } from './fit-night.ts';

export const recrawl: DataFeature = {
  productFeed: { choose: chooseNight },
  afterPublish: {
    // Otherwise the next run does it, but `plan` would know nothing of this one.
    async afterRun(db, { resultTable, recrawls }) {
      if (recrawls) await noteCrawls(db, resultTable, db.clock.now());
      return null;
    },
  },
};

/**
 * What publishing changes (`results.history`), and what the site calls the pages of rows that stand
 * (`site.conditional`).
 */
import type { DataFeature } from '../../core/db/data-feature.ts';
import { createHistoryTable, noteChanges } from './changes.ts';
import { createValidatorsTable, noteValidators, openIntake, openPageNames } from './validators.ts';

export const history: DataFeature = {
  productFeed: { openPageNames },
  afterPublish: {
    async createTables(db, { table, history: kept, conditional }, mapping) {
      if (kept === 'changes') await createHistoryTable(db, table, mapping);
      if (conditional !== undefined) await createValidatorsTable(db, table);
    },
    openIntake: (_knex, run) => Promise.resolve(openIntake(run)),
    async publishing(trx, db, publication) {
      const { shape } = publication;
      if (shape.results.history === 'changes') await noteChanges(trx, db, publication);
      if (shape.stamps) await noteValidators(trx, db, publication);
    },
  },
};

/** The stores of the control core on one database. */
import type { RunBinding, RunStores, Stores } from '../model/stores.ts';
import type { Database } from './connect.ts';
import { KnexFleetStore } from './fleet-store.ts';
import { KnexFrontier } from '../../features/discovery/frontier.ts';
import { KnexResultStore } from './result-store.ts';
import { KnexRunRow, KnexRunStore } from './run-store.ts';
import { KnexWorkStore } from './work-store.ts';

/** No lock is ever held under this number. */
const NO_FENCE = -1;

/** Needs the tables of migrate(); opens no connection itself. */
export function createStores(db: Database): Stores {
  const bind = (binding: RunBinding): RunStores => ({
    run: new KnexRunRow(db, binding),
    fleet: new KnexFleetStore(db, binding),
    work: new KnexWorkStore(db, binding),
    results: new KnexResultStore(db, binding),
    frontier: new KnexFrontier(db, binding),
  });
  return { runs: new KnexRunStore(db), of: (runId) => bind({ runId, fence: NO_FENCE, clock: db.clock }), bind };
}

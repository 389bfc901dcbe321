/** The stores of the control core on one database. */
import type { RunBinding, RunStores, Stores } from '../control/model/stores.ts';
import { BoundRun } from './bound-run.ts';
import type { Database } from './connect.ts';
import { KnexFleetStore } from './fleet-store.ts';
import { KnexFrontier } from './frontier.ts';
import { KnexResultStore } from './result-store.ts';
import { KnexRunRow, KnexRunStore } from './run-store.ts';
import { KnexWorkStore } from './work-store.ts';

/** No lock is ever held under this number. */
const NO_FENCE = -1;

/** Needs the tables of migrate(); opens no connection itself. */
export function createStores(db: Database): Stores {
  const bind = (binding: RunBinding): RunStores => {
    const run = new BoundRun(db, binding);
    return {
      run: new KnexRunRow(run),
      fleet: new KnexFleetStore(run),
      work: new KnexWorkStore(run),
      results: new KnexResultStore(run),
      frontier: new KnexFrontier(run),
    };
  };
  return { runs: new KnexRunStore(db), of: (runId) => bind({ runId, fence: NO_FENCE, clock: db.clock }), bind };
}

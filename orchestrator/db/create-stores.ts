/** The stores of the control core on one database. */
import type { FleetStore, ResultStore, RunStore, WorkStore } from '../control/model/stores.ts';
import type { Database } from './connect.ts';
import { KnexFleetStore } from './fleet-store.ts';
import { KnexResultStore } from './result-store.ts';
import { KnexRunStore } from './run-store.ts';
import { KnexWorkStore } from './work-store.ts';

/** Needs the tables of migrate(); opens no connection itself. */
export function createStores(db: Database): {
  runs: RunStore;
  fleet: FleetStore;
  work: WorkStore;
  results: ResultStore;
} {
  return {
    runs: new KnexRunStore(db),
    fleet: new KnexFleetStore(db),
    work: new KnexWorkStore(db),
    results: new KnexResultStore(db),
  };
}

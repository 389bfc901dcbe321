/** The stores of the control core on one database. */
import type { RunBinding, RunStores, StoreReaders, Stores } from '../model/stores.ts';
import type { Database } from './connect.ts';
import type { DataFeature } from './data-feature.ts';
import { KnexFleetStore } from './fleet-store.ts';
import { KnexResultStore } from './result-store.ts';
import { KnexRunRow, KnexRunStore } from './run-store.ts';
import { KnexWorkStore } from './work-store.ts';

/** No lock is ever held under this number. */
const NO_FENCE = -1;

/** Needs the tables of migrate(); opens no connection itself. */
export function createStores(db: Database, features: readonly DataFeature[]): Stores {
  const bind = (binding: RunBinding): RunStores => ({
    run: new KnexRunRow(db, binding),
    fleet: new KnexFleetStore(db, binding),
    work: new KnexWorkStore(db, binding, features),
    results: new KnexResultStore(db, binding, features),
    feed: features.flatMap(({ productFeed }) => productFeed?.openRun?.(db, binding) ?? [])[0] ?? null,
  });
  return { runs: new KnexRunStore(db), of: (runId) => bind({ runId, fence: NO_FENCE, clock: db.clock }), bind };
}

/** Stores to read with, without what features add to writing. */
export const createReaders = (db: Database): StoreReaders => createStores(db, []);

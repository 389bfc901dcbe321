/** The stores of the control core on one database in memory. */
import type { RunBinding, RunStores, Stores } from '../../model/stores.ts';
import { MemoryDatabase } from './memory-database.ts';
import { MemoryFleetStore } from './memory-fleet-store.ts';
import { MemoryResultStore } from './memory-result-store.ts';
import { MemoryRunRow, MemoryRunStore, type OneRunStore } from './memory-run-store.ts';
import { MemoryWorkStore } from './memory-work-store.ts';

/** The stores of a modelled world. */
export type MemoryStores = Omit<Stores, 'runs'> & { runs: OneRunStore };

export function createMemoryStores(db = new MemoryDatabase()): MemoryStores {
  const bind = (binding: RunBinding): RunStores => ({
    run: new MemoryRunRow(db, binding),
    fleet: new MemoryFleetStore(db, binding),
    work: new MemoryWorkStore(db, binding),
    results: new MemoryResultStore(db, binding),
    feed: null,
  });
  return { runs: new MemoryRunStore(db), of: (runId) => bind({ runId, fence: NaN, clock: { now: () => NaN } }), bind };
}

/** The stores of the control core on one database in memory. */
import type { FleetStore, ResultStore, RunStore, WorkStore } from '../../control/model/stores.ts';
import { MemoryDatabase } from './memory-database.ts';
import { MemoryFleetStore } from './memory-fleet-store.ts';
import { MemoryResultStore } from './memory-result-store.ts';
import { MemoryRunStore } from './memory-run-store.ts';
import { MemoryWorkStore } from './memory-work-store.ts';

export interface MemoryStores {
  runs: RunStore;
  fleet: FleetStore;
  work: WorkStore;
  results: ResultStore;
}

export function createMemoryStores(db = new MemoryDatabase()): MemoryStores {
  return {
    runs: new MemoryRunStore(db),
    fleet: new MemoryFleetStore(db),
    work: new MemoryWorkStore(db),
    results: new MemoryResultStore(db),
  };
}

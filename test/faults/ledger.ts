/** What the checkers read of a run, past all faults: in memory for runs, from the real SQL stores for discoveries. */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import type { InstanceRecord, RunReader } from '../../orchestrator/core/model/stores.ts';
import type { VerifyFacts } from '../../orchestrator/core/verify/verify-facts.ts';
import { createMemoryStores } from '../../orchestrator/core/simulation/stores/create-memory-stores.ts';
import { chunkOf, type MemoryDatabase } from '../../orchestrator/core/simulation/stores/memory-database.ts';
import { readMemoryFacts } from '../support/memory-facts.ts';

export interface Ledger {
  reader: RunReader;
  /** Empty before the run is stored. */
  instances(): Promise<readonly InstanceRecord[]>;
  items(): Promise<LedgerItem[]>;
  facts(): Promise<VerifyFacts>;
}

export interface LedgerItem {
  n: number;
  /** What instances know it by. */
  id: string;
  outcome: string | null;
  reason: string | null;
  /** Who its chunk is granted to. */
  owner: EpochId | null;
  /** In the result table. */
  title: unknown;
  /** The ledger has it as partial. */
  partial: boolean;
  /** The result table has rows of an earlier night for it; null where there is none. */
  hasOlder: boolean | null;
}

export function memoryLedger(db: MemoryDatabase, runId: string): Ledger {
  return {
    reader: createMemoryStores(db).of(runId),
    instances: async () => [...(db.runs.get(runId)?.instances.values() ?? [])],
    items: async () => {
      const run = db.run(runId);
      const { items, rows, older } = run;
      return items.map(({ n, id, outcome, reason, leftOut }) => {
        const { grant } = chunkOf(run, n);
        const owner = grant && { slot: grant.slot, epoch: grant.epoch };
        const stands = { partial: leftOut !== undefined, hasOlder: older.has(id) };
        return { n, id, outcome, reason, owner, title: rows.get(id)?.title, ...stands };
      });
    },
    facts: () => readMemoryFacts(db, runId),
  };
}

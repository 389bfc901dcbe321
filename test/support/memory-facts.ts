/** The facts for `verify` from a database in memory. */
import type { VerifyFacts } from '../../orchestrator/control/verify/verify-facts.ts';
import { compareFacts } from '../../orchestrator/db/verify-source.ts';
import type { MemoryDatabase } from '../../orchestrator/simulation/stores/memory-database.ts';

/** Throws `run-unknown`. */
export async function readMemoryFacts(db: MemoryDatabase, runId: string): Promise<VerifyFacts> {
  const { record, items, parts, rows } = db.run(runId);
  return compareFacts({
    run: record,
    items: items.map((item) => ({
      ...item,
      refused: item.refused === true,
      part: item.seq === null ? '' : `${item.slot}/${item.epoch}/${item.seq}`,
    })),
    parts: [...parts.values()],
    results: () => [...rows.keys()].map((id): [string, number] => [id, 1]),
    replaced: () => [],
  });
}

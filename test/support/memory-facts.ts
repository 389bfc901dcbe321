/** The facts for `verify` from a database in memory. */
import type { VerifyFacts } from '../../orchestrator/core/verify/verify-facts.ts';
import { compareFacts } from '../../orchestrator/core/db/verify-source.ts';
import { type MemoryDatabase, wereGranted } from '../../orchestrator/core/simulation/stores/memory-database.ts';

/** Throws `run-unknown`. */
export async function readMemoryFacts(db: MemoryDatabase, runId: string): Promise<VerifyFacts> {
  const run = db.run(runId);
  const { record, items, parts, rows } = run;
  return compareFacts({
    run: record,
    items: items.map((item) => ({
      ...item,
      partial: item.leftOut !== undefined,
      refused: item.refused === true,
      granted: item.seq === null || wereGranted(run, { slot: item.slot!, epoch: item.epoch! })(item.n),
      part: item.seq === null ? '' : `${item.slot}/${item.epoch}/${item.seq}`,
    })),
    parts: [...parts.values()],
    results: () => [...rows.keys()].map((id): [string, number] => [id, 1]),
    replaced: () => [],
    partlyReplaced: () => [],
  });
}

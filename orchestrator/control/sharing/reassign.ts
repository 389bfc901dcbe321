/** Takes back the products that a banned instance has dropped, as soon as all its results are in the ledger. */
import type { Core } from '../model/core.ts';
import { loadParts } from '../results/load-parts.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';

/**
 * Its parts are loaded first, so that only products without a result go out again, each chunk as its next generation.
 * The instance keeps its epoch: once its ban is over it takes new chunks. Every step is idempotent.
 */
export async function reassignProducts(core: Core, world: World, slot: number, epoch: number): Promise<void> {
  const record = await core.fleet.get(world.run.id, slot, epoch);
  if (!record?.incident || record.incident.returnedAtMs !== null) return;
  // A product whose result is still on its way would be crawled twice. That costs a page; waiting for ever would cost
  // the run.
  const patienceMs = record.incident.atMs + world.limits.uploadMs;
  if (core.clock.now() < patienceMs && !(await isAllUploaded(core, record))) return;
  await loadParts(core, { slot, epoch });
  const returned = await core.work.returnChunks(world.run.id, slot, epoch, core.fence, core.clock.now());
  await core.fleet.recordReturned(world.run.id, slot, epoch, core.fence, core.clock.now());
  core.log.info({ slot, epoch, returned }, 'products of a banned instance go out again');
}

/** True when the ledger has parts for every outcome that the instance counts. */
async function isAllUploaded(core: Core, record: InstanceRecord): Promise<boolean> {
  const { stored, gone, failed } = record.progress ?? { stored: 0, gone: 0, failed: 0 };
  const { slot, epoch } = record;
  const parts = await core.results.parts(core.runId, { slot, epoch });
  return parts.reduce((sum, p) => sum + p.products, 0) >= stored + gone + failed;
}

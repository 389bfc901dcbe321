/**
 * Chunks that change hands: transferred from a slow instance, or taken back from a banned one. The database alone
 * decides who owns a chunk; what is remembered here only keeps this main server from requesting twice
 * (docs/decisions/0018-rebalancing.md).
 */
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import { isUnavailable } from '../../decide/ban-policy.ts';
import { hostsFreeAtMs } from '../../decide/host-rest.ts';
import { type Core, momentOf } from '../../model/core.ts';
import { eventOf } from '../../model/run-event.ts';
import type { InstanceRecord } from '../../model/stores.ts';
import type { World } from '../../model/world.ts';
import { loadParts } from '../results/load-parts.ts';

/** The heartbeats without a returned chunk after which the instance has begun all of its chunks. */
const PATIENCE_HEARTBEATS = 8;

export class Transfers {
  readonly #core: Core;
  /** When the instance last returned chunks, by `slot.epoch`. */
  readonly #gaveAtMs = new Map<string, number>();
  /** Since when requests have been without success (monotonic ms), by `slot.epoch`. */
  readonly #askedSinceMs = new Map<string, number>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** Makes the returned chunks wait for an owner, unless they already have one. */
  async take(record: InstanceRecord, transferred: readonly string[]): Promise<void> {
    if (transferred.length === 0) return;
    const core = this.#core;
    const { slot, epoch } = record;
    const products = await core.work.transferChunks(record, transferred);
    const atMs = core.clock.now();
    this.#gaveAtMs.set(epochKey(record), atMs);
    this.#askedSinceMs.delete(epochKey(record));
    if (products === 0) return;
    core.processState.lastTransferMs = atMs;
    const detail = `slot ${slot} has given back ${products} products that others can crawl sooner`;
    core.log.info({ slot, epoch, products }, detail);
    await core.run.addEvent(eventOf('chunk', atMs, detail, record));
  }

  /** Ids of the chunks that the instance has to return now: the last granted ones, which it would crawl last. */
  wanted(world: World, record: InstanceRecord): Promise<string[]> | string[] {
    const core = this.#core;
    const { forecast, limits } = world;
    const key = epochKey(record);
    const count = forecast?.balance.give.get(record.slot) ?? 0;
    // A forecast from before its last transfer does not include it.
    const gaveMs = this.#gaveAtMs.get(key) ?? -Infinity;
    // A time in the future is from before the clock was set back.
    const isSettled = gaveMs < (forecast?.atMs ?? -Infinity) || gaveMs > core.clock.now();
    if (count === 0 || !isSettled || record.sealed || isUnavailable(record)) {
      this.#askedSinceMs.delete(key);
      return [];
    }
    const sinceMs = this.#askedSinceMs.get(key) ?? core.clock.monotonic();
    this.#askedSinceMs.set(key, sinceMs);
    if (core.clock.monotonic() - sinceMs > PATIENCE_HEARTBEATS * limits.heartbeatMs)
      core.processState.nothingToGive.add(key);
    return core.work.chunksOf(record).then((chunks) => chunks.slice(0, count).map((c) => c.id));
  }
}

/**
 * Its parts are loaded first, so that only products without a result go out again, each chunk as its next generation.
 * The instance keeps its epoch: once its ban is over it takes new chunks. Every step is idempotent.
 */
export async function reassignProducts(core: Core, { run, limits }: World, { slot, epoch }: EpochId): Promise<void> {
  const record = await core.fleet.get({ slot, epoch });
  if (!record?.incident || record.incident.returnedAtMs !== null) return;
  // A product whose result is still on its way would be crawled twice. That costs a page; waiting without a limit would
  // cost the run.
  const patienceMs = record.incident.atMs + limits.uploadMs;
  if (core.clock.now() < patienceMs && !(await isAllUploaded(core, record))) return;
  await loadParts(core, { slot, epoch });
  const freeAtMs = hostsFreeAtMs(run, record, 'lost', momentOf(core));
  const returned = await core.work.returnChunks({ slot, epoch }, freeAtMs);
  await core.fleet.recordReturned({ slot, epoch });
  core.log.info({ slot, epoch, returned }, 'products of a banned instance go out again');
}

/** True when the ledger has parts for every outcome that the instance counts. */
async function isAllUploaded(core: Core, record: InstanceRecord): Promise<boolean> {
  const { stored, gone, failed } = record.progress ?? { stored: 0, gone: 0, failed: 0 };
  const { slot, epoch } = record;
  const parts = await core.results.parts({ slot, epoch });
  return parts.reduce((sum, p) => sum + p.products, 0) >= stored + gone + failed;
}
